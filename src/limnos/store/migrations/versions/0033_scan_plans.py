"""Scan plans with parts left to fetch.

Revision ID: 0033
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import scan_plan

revision = "0033"
down_revision = "0035"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release plans no scans."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(scan_plan.name):
        scan_plan.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    scan_plan.drop(op.get_bind())
