# SPDX-License-Identifier: Apache-2.0
"""Passwords of local users, and the purposes of tokens.

Revision ID: 0036
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of
from limnos.store.schema.access import password

revision = "0036"
down_revision = "0033"


def upgrade() -> None:
    """Create the table and the column. A store created by this release has them already.

    The previous release treats session tokens as short-lived tokens.
    """
    inspector = sa.inspect(op.get_bind())
    if not inspector.has_table("password"):
        password.create(op.get_bind())
    if "purpose" not in columns_of("token"):
        op.add_column("token", sa.Column("purpose", sa.Text, nullable=False, server_default="api"))


def downgrade() -> None:
    """Drop the table and the column, and delete session tokens, which the previous release would list."""
    op.execute("DELETE FROM token WHERE purpose <> 'api'")
    op.drop_column("token", "purpose")
    op.drop_table("password")
