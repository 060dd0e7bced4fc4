# SPDX-License-Identifier: Apache-2.0
"""A webhook can send the changes of some operations alone.

Revision ID: 0070
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0070"
down_revision = "0069"


def upgrade() -> None:
    """Add the operations of a webhook; those that exist send all changes. A new store has the column already."""
    if "operations" not in {each["name"] for each in sa.inspect(op.get_bind()).get_columns("webhook")}:
        op.add_column("webhook", sa.Column("operations", sa.Text(), nullable=True))


def downgrade() -> None:
    """No-op: an older release sends all changes."""
