"""Findings, checkpoints and operations of table maintenance.

Revision ID: 0041
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import maintenance_checkpoint, maintenance_finding, maintenance_operation

revision = "0041"
down_revision = "0040"
_TABLES = (maintenance_finding, maintenance_checkpoint, maintenance_operation)


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release does not use them."""
    bind = op.get_bind()
    for table in _TABLES:
        if not sa.inspect(bind).has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    for table in _TABLES:
        table.drop(op.get_bind())
