"""What may not be dropped.

Revision ID: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import protection

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the table; a store made by this release has it from the start. The release before protects nothing."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(protection.name):
        protection.create(bind)


def downgrade() -> None:
    """Take it away; nothing is protected then."""
    protection.drop(op.get_bind())
