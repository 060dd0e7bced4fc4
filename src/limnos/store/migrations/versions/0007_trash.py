"""The trash: dropped objects that can be restored.

Revision ID: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import trash

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the table. A store created by this release has it already.

    The previous release ignores it: its drops are final, and it sweeps the grants on objects in the trash.
    """
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(trash.name):
        trash.create(bind)


def downgrade() -> None:
    """Drop the table; its objects can no longer be restored."""
    trash.drop(op.get_bind())
