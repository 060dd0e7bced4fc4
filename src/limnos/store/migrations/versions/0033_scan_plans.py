"""Plans of scans of which something is left to be fetched.

Revision ID: 0033
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import scan_plan

revision = "0033"
down_revision = "0035"


def upgrade() -> None:
    """Make the table; a store made by this release has it from the start. The release before plans no scans."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(scan_plan.name):
        scan_plan.create(bind)


def downgrade() -> None:
    """Take it away."""
    scan_plan.drop(op.get_bind())
