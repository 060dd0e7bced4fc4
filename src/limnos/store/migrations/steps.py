# SPDX-License-Identifier: Apache-2.0
"""Steps that migrations share.

A store created by this release has the newest schema from the start, so every step skips tables, columns and indexes
that exist.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import metadata


def create_tables(*names: str) -> None:
    """Create tables of the schema, with their indexes, unless they exist."""
    bind = op.get_bind()
    for name in names:
        if not sa.inspect(bind).has_table(name):
            metadata.tables[name].create(bind)


def drop_tables(*names: str) -> None:
    """Drop tables of the schema."""
    for name in names:
        metadata.tables[name].drop(op.get_bind())


def columns_of(table: str) -> set[str]:
    """Return the names of a table's columns."""
    return {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
