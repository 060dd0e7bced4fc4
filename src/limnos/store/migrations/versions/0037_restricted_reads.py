"""Directories of files that were rewritten for restricted users.

Revision ID: 0037
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import restricted_read

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Create the table. A store created by this release has it already.

    The previous release names directories by periods, and leaves other directories alone.
    """
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(restricted_read.name):
        restricted_read.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    restricted_read.drop(op.get_bind())
