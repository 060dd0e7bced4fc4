"""Long requests of the query service, and results that clients fetch later.

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
    """Create the tables. A store created by this release has them already. The previous release keeps no results."""
    bind = op.get_bind()
    for table in TABLES:
        if not sa.inspect(bind).has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    for table in reversed(TABLES):
        table.drop(op.get_bind())
