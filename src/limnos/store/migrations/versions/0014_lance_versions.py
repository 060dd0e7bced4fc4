"""Versions of Lance tables that the store keeps.

Revision ID: 0014
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import lance_version

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Make the table; a store made by this release has it from the start. The release before keeps no versions."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(lance_version.name):
        lance_version.create(bind)


def downgrade() -> None:
    """Take it away."""
    lance_version.drop(op.get_bind())
