# SPDX-License-Identifier: Apache-2.0
"""Sign-ins with an external issuer: the time of a user's newest token, and the memberships that come from it.

Revision ID: 0031
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0025"


def upgrade() -> None:
    """Add the columns. A store created by this release has them already.

    The previous release treats all memberships alike.
    """
    if not _has("principal", "signed_in"):
        op.add_column("principal", sa.Column("signed_in", sa.BigInteger))
    if not _has("group_member", "issued"):
        op.add_column("group_member", sa.Column("issued", sa.Boolean, nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    op.drop_column("group_member", "issued")
    op.drop_column("principal", "signed_in")


def _has(table: str, name: str) -> bool:
    return name in {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
