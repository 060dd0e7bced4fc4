"""Tokens tell what their worth rests on and which line they are of; users from which token on tokens are theirs.

What is there already counts as believed. A node of the release before goes on beside this schema: it names the columns
it writes, and the defaults are the cautious ones.

Revision ID: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import GONE, Id

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns and the index; a store made by this release has them from the start."""
    found = sa.inspect(op.get_bind())
    if "trust" not in {column["name"] for column in found.get_columns("token")}:
        op.add_column("token", sa.Column("trust", sa.Text, nullable=False, server_default="believed"))
        op.add_column("token", sa.Column("root_id", Id))
        op.add_column("principal", sa.Column("tokens_from", Id, nullable=False, server_default="0"))
        op.create_index(
            "principal_former", "principal", ["metalake_id", "kind", "name"],
            sqlite_where=sa.text(GONE), postgresql_where=sa.text(GONE),
        )  # fmt: skip


def downgrade() -> None:
    """Take them away."""
    op.drop_index("principal_former", "principal")
    op.drop_column("principal", "tokens_from")
    op.drop_column("token", "root_id")
    op.drop_column("token", "trust")
