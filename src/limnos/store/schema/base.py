# SPDX-License-Identifier: Apache-2.0
"""The common parts of all tables of the schema: metadata, column types for both backends, and common columns.

Must not know tables.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

metadata = MetaData()
Id = BigInteger().with_variant(Integer, "sqlite")
Name = Text().with_variant(Text(collation="C"), "postgresql")
LIVE = "deleted = 0"
GONE = "deleted <> 0"
MADE_BY = "created_by text, created_at bigint, modified_by text?, modified_at bigint?"
"""The columns for creator and last modifier, with times in milliseconds."""
_TYPES: Final[dict[str, TypeEngine[Any]]] = {
    "bigint": Id,
    "binary": LargeBinary(),
    "boolean": Boolean(),
    "integer": Integer(),
    "name": Name,
    "smallint": SmallInteger(),
    "text": Text(),
}


def table(name: str, *parts: str | SchemaItem, sqlite_with_rowid: bool = True) -> Table:
    """Define a table.

    A string in `parts` lists columns with their types, separated by commas: `*` after a type marks a column of the
    primary key, `?` a column that may be NULL. The column type `name` is a string that sorts by code point.
    """
    items = [item for part in parts for item in (_columns(part) if isinstance(part, str) else (part,))]
    return Table(name, metadata, *items, sqlite_with_rowid=sqlite_with_rowid)


def _columns(text_: str) -> list[Column[object]]:
    results = []
    for column in text_.split(","):
        name, kind = column.split()
        type_ = _TYPES[kind.rstrip("*?")]
        if kind.endswith("*"):
            results.append(Column(name, type_, primary_key=True, autoincrement=False))
        else:
            results.append(Column(name, type_, nullable=kind.endswith("?")))
    return results


def partial_index(name: str, table: Table, *columns: str, where: str, unique: bool = False) -> Index:
    """Build an index over the rows that meet a condition."""
    condition = text(where)
    return Index(
        name, *(table.c[each] for each in columns), unique=unique, sqlite_where=condition, postgresql_where=condition
    )


def live_index(name: str, table: Table, *columns: str) -> Index:
    """Build a unique index over live rows only."""
    return partial_index(name, table, *columns, where=LIVE, unique=True)
