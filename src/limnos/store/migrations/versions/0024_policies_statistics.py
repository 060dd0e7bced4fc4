"""What policies are on, and statistics of tables.

Revision ID: 0024
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import policy_object, statistic

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Make the tables; a store made by this release has them from the start. The release before has neither."""
    for table in (policy_object, statistic):
        if not sa.inspect(op.get_bind()).has_table(table.name):
            table.create(op.get_bind())


def downgrade() -> None:
    """Take them away."""
    for table in (statistic, policy_object):
        table.drop(op.get_bind())
