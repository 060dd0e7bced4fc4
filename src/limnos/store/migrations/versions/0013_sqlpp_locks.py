"""Locks of SQL++ statements, and which nodes live that hold some.

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
    """Make the tables; a store made by this release has them from the start. The release before runs no statements."""
    bind = op.get_bind()
    for table in TABLES:
        if not sa.inspect(bind).has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Take them away."""
    for table in reversed(TABLES):
        table.drop(op.get_bind())
