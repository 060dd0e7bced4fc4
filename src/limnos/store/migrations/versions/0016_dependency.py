"""Dependencies between SQL++ objects.

Revision ID: 0016
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import dependency

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Create the table. A store created by this release has it already.

    The previous release has no SQL++ objects.
    """
    if not sa.inspect(op.get_bind()).has_table(dependency.name):
        dependency.create(op.get_bind())


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    dependency.drop(op.get_bind())
