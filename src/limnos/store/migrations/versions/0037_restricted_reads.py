"""Directories of files that were rewritten for restricted readers.

Revision ID: 0037
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import restricted_read

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Make the table; a store made by this release has it from the start. The release before names directories by periods, and leaves others alone."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(restricted_read.name):
        restricted_read.create(bind)


def downgrade() -> None:
    """Take it away."""
    restricted_read.drop(op.get_bind())
