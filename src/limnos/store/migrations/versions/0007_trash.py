"""What was dropped and can be brought back for a while.

Revision ID: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import trash

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the table; a store made by this release has it from the start.

    The release before takes no notice of it: what it drops is gone at once, and it sweeps the grants on what lies in the trash.
    """
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(trash.name):
        trash.create(bind)


def downgrade() -> None:
    """Take it away; what lay in it is gone for good."""
    trash.drop(op.get_bind())
