# SPDX-License-Identifier: Apache-2.0
"""Columns with their origins, found by a check without data."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.pipeline.checks import check
from limnos.pipeline.file import read
from limnos.pipeline.table_lineage import TableLineage, origin_kind

pytestmark = pytest.mark.integration

TEXT = """\
pipeline: shop
catalog: main
parameters: {least: {type: double, default: 5}}
sources:
  orders: {files: data/orders.csv, schema: "id bigint, customer string, amount decimal(9,2)"}
  untyped: data/untyped.csv
  db: {jdbc: "jdbc:postgresql://h/d", table: t}
  columns: {system: owners}
steps:
  raw.orders: {load: orders}
  raw.history: {load: orders, write: {mode: history, keys: id}}
  raw.unknown: {load: untyped}
  raw.db: {load: db}
  marts.sums:
    sql: "SELECT customer, sum(amount) AS total, o.id + :least AS i FROM raw.orders o WHERE amount > 0 GROUP BY ALL"
  marts.pair:
    sql: "WITH a AS (SELECT * FROM raw.orders) SELECT a.id, b.total FROM a JOIN marts.sums b USING (customer)"
  marts.python: {python: "m:f", inputs: {x: marts.sums}}
  marts.after: {sql: SELECT * FROM marts.python}
  marts.past: {sql: SELECT * FROM marts.sums VERSION AS OF 1}
  marts.other: {sql: SELECT * FROM main.else.where}
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the module of the functions."""
    path = tmp_path_factory.mktemp("columns")
    (path / "m.py").write_text("def f(x):\n    return x\n")
    return path


@pytest.fixture(scope="module")
def tables(directory: Path) -> dict[str, TableLineage]:
    """The columns of the pipeline's tables and sources, by their names below the catalog."""
    result = check(read(TEXT, file="p.yaml", directory=directory), with_columns=True)
    assert result.problems == ()
    assert result.columns is not None
    return {".".join(parts[1:] or parts): one for parts, one in result.columns.tables.items()}


def origins(tables: dict[str, TableLineage], table: str) -> dict[str, list[str]]:
    """Return the origins of each column of a table, as text."""
    return {
        column.name: [f"{'.'.join(each.source)}: {each.column} ({origin_kind(each)})" for each in column.origins]  # type: ignore[arg-type]
        for column in tables[table].columns
    }


def test_columns_have_types_and_origins(tables: dict[str, TableLineage]) -> None:
    """Columns of a query have their types, and come from columns of tables under their full names."""
    types = [(one.name, one.type) for one in tables["marts.sums"].columns]

    assert types == [("customer", "STRING"), ("total", "DECIMAL(19,2)"), ("i", "DOUBLE")]
    assert origins(tables, "marts.sums") == {
        "customer": ["main.raw.orders: customer (same)"],
        "total": ["main.raw.orders: amount (aggregated)"],
        "i": ["main.raw.orders: id (computed)"],
    }
    assert {f"{one.column} {origin_kind(one)}" for one in tables["marts.sums"].rows} == {
        *("amount filter", "customer group", "id group")
    }


def test_origins_pass_through_with_clauses_and_joins(tables: dict[str, TableLineage]) -> None:
    """A CTE is no origin: columns come from the tables below it, and each side of a join has its own."""
    assert origins(tables, "marts.pair") == {
        "id": ["main.raw.orders: id (same)"],
        "total": ["main.marts.sums: total (same)"],
    }


def test_loaded_columns_come_from_the_source(tables: dict[str, TableLineage]) -> None:
    """A copy has the same columns as its source; columns that a history adds come from nowhere."""
    assert origins(tables, "raw.orders")["amount"] == ["orders: amount (same)"]
    assert origins(tables, "raw.history") == {
        **{name: [f"orders: {name} (same)"] for name in ("id", "customer", "amount")},
        **{key: [] for key in ("valid_from", "valid_to", "is_current")},
    }


def test_unknown_columns_have_reasons(tables: dict[str, TableLineage]) -> None:
    """Where columns are not known there are none, and the reason is said."""
    reasons = {name: one.unknown for name, one in tables.items() if one.unknown}

    assert reasons == {
        "untyped": "the source has no 'schema': the first run finds its columns",
        "db": "the database has its columns, which only a run asks",
        "else.where": "no server was asked",
        "raw.unknown": "they depend on untyped",
        "raw.db": "they depend on db",
        "marts.python": "the function m:f makes them, which a check does not call",
        "marts.after": "they depend on main.marts.python",
        "marts.past": "they depend on a state of a table",
        "marts.other": "they depend on main.else.where",
    }
    assert all(not one.columns for one in tables.values() if one.unknown)


def test_embeddings_come_from_their_columns(directory: Path) -> None:
    """The vector and the hash of a Lance table are computed from the origins of the embedded columns."""
    text = """\
pipeline: texts
catalog: main
sources: {docs: {files: data/docs.csv, schema: "id bigint, title string, body string"}}
steps:
  lance.docs:
    sql: SELECT id, concat(title, body) AS text FROM docs
    embed: {function: "m:f", columns: text, dimension: 8}
"""

    result = check(read(text, file="p.yaml", directory=directory), with_columns=True)

    assert result.problems == ()
    assert result.columns is not None
    table = {"docs": result.columns.tables["main", "lance", "docs"]}
    both = ["docs: body (computed)", "docs: title (computed)"]
    assert origins(table, "docs") == {
        "id": ["docs: id (same)"],
        "text": both,
        "embedding": both,
        "embedding_hash": both,
    }


def test_columns_are_not_resolved_unless_requested(directory: Path) -> None:
    """A plain check returns no columns, and spends no time on their origins."""
    assert check(read(TEXT, file="p.yaml", directory=directory)).columns is None
