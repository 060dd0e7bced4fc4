"""Managed versions of Lance tables.

Revision ID: 0014
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import lance_version

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release keeps no versions."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(lance_version.name):
        lance_version.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    lance_version.drop(op.get_bind())
