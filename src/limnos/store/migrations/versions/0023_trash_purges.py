# SPDX-License-Identifier: Apache-2.0
"""Adds whether the files of an object are deleted when it leaves the trash.

Revision ID: 0023
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add the column. A store created by this release has it already.

    Files of tables that the previous release drops are not deleted.
    """
    if "purges" not in {column["name"] for column in sa.inspect(op.get_bind()).get_columns("trash")}:
        op.add_column("trash", sa.Column("purges", sa.Boolean, nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    op.drop_column("trash", "purges")
