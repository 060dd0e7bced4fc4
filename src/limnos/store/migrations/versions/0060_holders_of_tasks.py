# SPDX-License-Identifier: Apache-2.0
"""Holders of leased tasks, by which a restarted node knows that the holder has ended.

Revision ID: 0060
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of

revision = "0060"
down_revision = "0059"


def upgrade() -> None:
    """Add the column, empty: leases of running tasks end by their time. A store created by this release has it."""
    if "holder" not in columns_of("task"):
        op.add_column("task", sa.Column("holder", sa.Text, nullable=True))


def downgrade() -> None:
    """Drop the column: leases of tasks end by their time."""
    op.drop_column("task", "holder")
