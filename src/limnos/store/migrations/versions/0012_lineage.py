"""Lineage: external datasets, edges, columns.

Revision ID: 0012
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import lineage_column, lineage_dataset, lineage_edge

revision = "0012"
down_revision = "0011"
TABLES = (lineage_dataset, lineage_edge, lineage_column)


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release keeps no lineage."""
    bind = op.get_bind()
    for table in TABLES:
        if not sa.inspect(bind).has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    for table in reversed(TABLES):
        table.drop(op.get_bind())
