# SPDX-License-Identifier: Apache-2.0
"""The tables of the random queries, as values of the evaluator and as rows of DuckDB.

May import `sqlpp`, DuckDB and this package. It must not know how results are compared.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import duckdb

from conformance.sqlpp_random.sql_queries import TABLES, TYPES, rows
from limnos.rooms.sqlpp.language import BoundQuery, bind, parse_body, results
from limnos.rooms.sqlpp.language.binder import BoundDataset
from limnos.rooms.sqlpp.language.functions.types import json_text
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.stored import object_shaper, storage_form_of_record

if TYPE_CHECKING:
    from limnos.rooms.sqlpp.language.values.model import Value

DATAVERSE: Final = ("random",)


class TableNames:
    """The names of the tables, for the binder."""

    def has_dataverse(self, dataverse: tuple[str, ...]) -> bool:
        """Return whether a dataverse exists."""
        return dataverse == DATAVERSE

    def resolve(self, dataverse: tuple[str, ...], name: str) -> BoundDataset | None:
        """Return a table."""
        return BoundDataset(dataverse, name) if name in TYPES else None

    def function(self, dataverse: tuple[str, ...], name: str, *, arity: int) -> None:
        """Return no function: there are none."""


def bound(text: str) -> BoundQuery:
    """Return a query with its names resolved."""
    return bind(parse_body(text), TableNames(), dataverse=DATAVERSE)


def constant_of(table: str) -> str:
    """Return a table's rows as an expression of SQL++."""
    text = json.dumps([{**row, **({"day": f"<{row['day']}>"} if row.get("day") else {})} for row in rows(table)])
    return text.replace('"<', "date('").replace('>"', "')")


class EvaluatorTables:
    """The tables as values, and the evaluator's results of queries."""

    def __init__(self) -> None:
        self._objects = {name: self._values(name) for name in TYPES}

    @staticmethod
    def _values(table: str) -> list[dict[str, Value]]:
        (source,) = results(bound(constant_of(table)), lambda *_: ())
        shape = object_shaper(storage_form_of_record(type_of(TYPES[table]), (("id",),)))
        return [shape(each) for each in source] if isinstance(source, tuple) else []

    def results(self, text: str) -> list[object]:
        """Return the evaluator's results of a query. Raises SqlppError."""
        return [json.loads(json_text(value)) for value in results(bound(text), lambda _, name: self._objects[name])]


def duckdb_with_tables() -> duckdb.DuckDBPyConnection:
    """Return a connection to a database in memory that has the tables. A division by zero is NULL."""
    connection = duckdb.connect()
    connection.execute("SET ieee_floating_point_ops = false")
    for statement in TABLES:
        connection.execute(statement)
    for table in TYPES:
        for row in rows(table):
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in row)})", list(row.values()))
    return connection
