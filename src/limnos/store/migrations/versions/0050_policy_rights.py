# SPDX-License-Identifier: Apache-2.0
"""Who attached a policy, and the second user whose rights the token of a policy's operation needs.

Revision ID: 0050
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of

revision = "0050"
down_revision = "0049"
_COLUMNS = (("policy_object", "attached_by"), ("token", "second_user_id"))


def upgrade() -> None:
    """Add the columns. A store created by this release has them already."""
    for table, name in _COLUMNS:
        if name not in columns_of(table):
            op.add_column(table, sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop the columns."""
    for table, name in _COLUMNS:
        op.drop_column(table, name)
