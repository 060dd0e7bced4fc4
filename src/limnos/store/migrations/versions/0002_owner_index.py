# SPDX-License-Identifier: Apache-2.0
"""Drops an unused index that made every creation of an object write one more page.

Revision ID: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Drop the index of owners by principal. A store created by this release never had it."""
    op.execute("DROP INDEX IF EXISTS owner_principal")


def downgrade() -> None:
    """Create the index of owners by principal again."""
    op.create_index("owner_principal", "owner", ["principal_id"])
