# SPDX-License-Identifier: Apache-2.0
"""Console sessions: the token with which each session was opened, and its absolute expiry time.

Revision ID: 0043
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
_COLUMNS = ("opened_by", "ends_at")


def upgrade() -> None:
    """Add the columns. A store created by this release has them already. The previous release does not use them."""
    existing = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("token")}
    for name in _COLUMNS:
        if name not in existing:
            op.add_column("token", sa.Column(name, sa.BigInteger, nullable=True))


def downgrade() -> None:
    """Drop the columns, and delete the sessions: the previous release would accept their cookies as tokens."""
    op.execute("DELETE FROM token WHERE purpose IN ('console', 'console-code')")
    for name in _COLUMNS:
        op.drop_column("token", name)
