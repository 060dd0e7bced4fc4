"""Attachments of policies, and statistics of tables.

Revision ID: 0024
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import policy_object, statistic

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release has neither."""
    for table in (policy_object, statistic):
        if not sa.inspect(op.get_bind()).has_table(table.name):
            table.create(op.get_bind())


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    for table in (statistic, policy_object):
        table.drop(op.get_bind())
