# SPDX-License-Identifier: Apache-2.0
"""Adds the columns of ended tasks, which stay visible with their error or result.

The columns are nullable, so a node of the previous release works with this schema. An ended task is never due, so such
a node does not run it.

Revision ID: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of
from limnos.store.schema.base import Id

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns. A store created by this release has them already."""
    if "ended_at" not in columns_of("task"):
        op.add_column("task", sa.Column("ended_at", Id))
        op.add_column("task", sa.Column("result", sa.Text))


def downgrade() -> None:
    """Delete the ended tasks, which the previous release does not support, and drop the columns."""
    op.execute("DELETE FROM task WHERE ended_at IS NOT NULL")
    op.drop_column("task", "result")
    op.drop_column("task", "ended_at")
