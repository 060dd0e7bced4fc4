# SPDX-License-Identifier: Apache-2.0
"""Columns for budgets and fair shares: the bytes that an operation on a table rewrites, and the time of its lease.

Revision ID: 0048
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of

revision = "0048"
down_revision = "0047"
_TABLE, _INDEX = "maintenance_operation", "maintenance_operation_leased"
_COLUMNS = ("bytes", "leased_at")


def upgrade() -> None:
    """Add the columns. A store created by this release has them already."""
    present = columns_of(_TABLE)
    for name in _COLUMNS:
        if name not in present:
            op.add_column(_TABLE, sa.Column(name, sa.BigInteger, nullable=True))
    if _INDEX not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(_TABLE)}:
        op.create_index(_INDEX, _TABLE, ["leased_at"])


def downgrade() -> None:
    """Drop the columns for budgets and fair shares."""
    op.drop_index(_INDEX, _TABLE)
    for name in _COLUMNS:
        op.drop_column(_TABLE, name)
