# SPDX-License-Identifier: Apache-2.0
"""Adds trust and root of tokens, and for each user the first token id that belongs to this user.

Existing tokens get the trust `believed`. A node of the previous release works with this schema: its INSERTs name their
columns, and the defaults of the new columns grant the least trust.

Revision ID: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of
from limnos.store.schema.base import GONE, Id

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns and the index. A store created by this release has them already."""
    if "trust" not in columns_of("token"):
        op.add_column("token", sa.Column("trust", sa.Text, nullable=False, server_default="believed"))
        op.add_column("token", sa.Column("root_id", Id))
        op.add_column("principal", sa.Column("tokens_from", Id, nullable=False, server_default="0"))
        op.create_index(
            "principal_former",
            "principal",
            ["metalake_id", "kind", "name"],
            sqlite_where=sa.text(GONE),
            postgresql_where=sa.text(GONE),
        )


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    op.drop_index("principal_former", "principal")
    op.drop_column("principal", "tokens_from")
    op.drop_column("token", "root_id")
    op.drop_column("token", "trust")
