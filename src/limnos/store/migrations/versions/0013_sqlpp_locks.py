"""Locks of SQL++ statements, and leases of the nodes that hold them.

Revision ID: 0013
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import sqlpp_lock, sqlpp_lock_node

revision = "0013"
down_revision = "0012"
TABLES = (sqlpp_lock, sqlpp_lock_node)


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release runs no statements."""
    bind = op.get_bind()
    for table in TABLES:
        if not sa.inspect(bind).has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    for table in reversed(TABLES):
        table.drop(op.get_bind())
