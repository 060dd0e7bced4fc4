"""What may be read of tables.

Revision ID: 0034
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import restriction

revision = "0034"
down_revision = "0032"


def upgrade() -> None:
    """Make the table; a store made by this release has it from the start. The release before restricts nobody."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(restriction.name):
        restriction.create(bind)


def downgrade() -> None:
    """Take it away; nothing is restricted then."""
    restriction.drop(op.get_bind())
