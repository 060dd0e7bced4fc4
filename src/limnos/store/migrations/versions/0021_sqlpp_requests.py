"""Requests of the query service that take a while, and results that are fetched later.

Revision ID: 0021
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import sqlpp_request, sqlpp_result

revision = "0021"
down_revision = "0020"
TABLES = (sqlpp_request, sqlpp_result)


def upgrade() -> None:
    """Make the tables; a store made by this release has them from the start. The release before keeps no results."""
    bind = op.get_bind()
    for table in TABLES:
        if not sa.inspect(bind).has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Take them away."""
    for table in reversed(TABLES):
        table.drop(op.get_bind())
