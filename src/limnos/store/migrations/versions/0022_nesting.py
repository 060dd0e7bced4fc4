"""Renaming of namespaces so that they may nest, and the separator for which stored names were checked.

Revision ID: 0022
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import name_change, name_migration

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Create tables and column. A store created by this release has them already. The previous release uses neither."""
    inspector = sa.inspect(op.get_bind())
    for table in (name_migration, name_change):
        if not inspector.has_table(table.name):
            table.create(op.get_bind())
    if "separator" not in {column["name"] for column in inspector.get_columns("store")}:
        op.add_column("store", sa.Column("separator", sa.Text))


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    op.drop_column("store", "separator")
    for table in (name_change, name_migration):
        table.drop(op.get_bind())
