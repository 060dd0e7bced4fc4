"""The parts of every table of the schema: the metadata, types that are equal on every backend, and common columns.

May import only SQLAlchemy. Knows no table.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table, Text, text

metadata = MetaData()
Id = BigInteger().with_variant(Integer, "sqlite")
Name = Text().with_variant(Text(collation="C"), "postgresql")
LIVE = "deleted = 0"
GONE = "deleted <> 0"


def live_index(name: str, table: Table, *columns: str) -> Index:
    """Build a unique index over live rows only."""
    return Index(
        name,
        *(table.c[column] for column in columns),
        unique=True,
        sqlite_where=text(LIVE),
        postgresql_where=text(LIVE),
    )


def made_by() -> list[Column[object]]:
    """Return the columns for creator and last modifier, with times in milliseconds."""
    return [
        Column("created_by", Text, nullable=False),
        Column("created_at", Id, nullable=False),
        Column("modified_by", Text),
        Column("modified_at", Id),
    ]
