"""Snapshots that runs and plans need.

Revision ID: 0038
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import snapshot_pin

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release pins nothing."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(snapshot_pin.name):
        snapshot_pin.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    snapshot_pin.drop(op.get_bind())
