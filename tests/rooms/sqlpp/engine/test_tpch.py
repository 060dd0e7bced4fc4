# SPDX-License-Identifier: Apache-2.0
"""TPC-H queries as SQL text for Spark, executed by DuckDB and compared with the same queries written in SQL. DuckDB
finds errors that the Python model shares, without Spark's start time.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import duckdb
import pytest

from conformance.sqlpp_tpch.__main__ import same
from conformance.sqlpp_tpch.queries import QUERIES
from conformance.sqlpp_tpch.tables import TYPES, generated
from limnos.rooms.sqlpp.engine.sql import statement_of
from limnos.rooms.sqlpp.language import bind, parse_body, plan
from limnos.rooms.sqlpp.language.functions.types import json_text
from limnos.rooms.sqlpp.language.relations import translate_query
from tests.rooms.sqlpp.language.relations.test_tpch import DATAVERSE, Names, type_of_table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SLOW = {2, 16}
"""Queries for which DuckDB computes cross products and Spark does not; `conformance/run sqlpp_tpch` runs them on
Spark.
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBPyConnection]:
    """The benchmark's tables at scale 0.01."""
    files = generated(tmp_path_factory.mktemp("tpch"), scale=0.01)
    with duckdb.connect() as connection:
        for name, (fields, _) in TYPES.items():
            named = [field.strip().partition(": ") for field in fields.split(",")]
            columns = ", ".join(
                f"CAST({column} AS {type_.replace('string', 'varchar')}) AS {column}" for column, _, type_ in named
            )
            connection.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM '{files / f'{name}.parquet'}'")
        yield connection


def _duck(text: str) -> str:
    """Convert Spark's SQL to DuckDB's."""
    text = re.sub(r"(\d)D\b", r"\1", text).replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
    text = re.sub(r"date_from_unix_date\((-?\d+)\)", r"(DATE '1970-01-01' + \1)", text)
    return re.sub(r":(p\d+)", r"$\1", text).replace("`", '"').replace("signum", "sign")


def _plain(value: object) -> object:
    """Convert a date to the number of days that relations use."""
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else value


@pytest.mark.parametrize("number", sorted(set(QUERIES) - SLOW))
def test_translated_query_returns_rows_of_original_sql(database: DuckDBPyConnection, number: int) -> None:
    """The SQL that is made of a SQL++ query gives the same rows as the original SQL query, in its order."""
    both = QUERIES[number]
    expression = bind(parse_body(both.sqlpp), Names(), dataverse=DATAVERSE).expression
    assert isinstance(expression, plan.Subquery)
    translation = translate_query(expression.query, type_of_table)
    text, parameters = statement_of(translation.relation, translation.layout, sources=lambda read: read.name)

    rows = database.execute(_duck(text), parameters or None).fetchall()
    plain = database.execute(_duck(both.plain))
    names = [column[0] for column in plain.description or ()]
    expected = [
        {
            name: value.isoformat() if isinstance(value, dt.date) else value
            for name, value in zip(names, row, strict=True)
        }
        for row in plain.fetchall()
    ]

    assert same([json.loads(json_text(translation.layout.make(list(map(_plain, row))))) for row in rows], expected)  # type: ignore[arg-type]
