"""What objects of SQL++ need of one another.

Revision ID: 0016
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import dependency

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Make the table; a store made by this release has it from the start. The release before has no objects of SQL++."""
    if not sa.inspect(op.get_bind()).has_table(dependency.name):
        dependency.create(op.get_bind())


def downgrade() -> None:
    """Take it away."""
    dependency.drop(op.get_bind())
