# SPDX-License-Identifier: Apache-2.0
"""Tokens: the time of the sign-in from which a token comes.

Revision ID: 0051
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"


def upgrade() -> None:
    """Add the column. A store created by this release has it already. Existing tokens keep their lifetimes."""
    existing = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("token")}
    if "signed_in_at" not in existing:
        op.add_column("token", sa.Column("signed_in_at", sa.BigInteger, nullable=True))


def downgrade() -> None:
    """Drop the column, and delete the tokens of statements and tasks: the previous release does not know them."""
    op.execute("DELETE FROM token WHERE purpose = 'work'")
    op.drop_column("token", "signed_in_at")
