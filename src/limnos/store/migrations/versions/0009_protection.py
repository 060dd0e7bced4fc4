"""Protection of objects from drops.

Revision ID: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import protection

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release protects nothing."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(protection.name):
        protection.create(bind)


def downgrade() -> None:
    """Drop the table of protection; no object is protected any more."""
    protection.drop(op.get_bind())
