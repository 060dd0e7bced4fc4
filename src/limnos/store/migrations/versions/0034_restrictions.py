"""Read restrictions.

Revision ID: 0034
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import restriction

revision = "0034"
down_revision = "0032"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release has no restrictions."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(restriction.name):
        restriction.create(bind)


def downgrade() -> None:
    """Drop the table of restrictions; no object is restricted any more."""
    restriction.drop(op.get_bind())
