"""Passwords of local users, and what a token is for: everything, or what a login gave for a while.

Revision ID: 0036
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import password

revision = "0036"
down_revision = "0033"


def upgrade() -> None:
    """Add them; a store made by this release has them from the start. The release before takes what a login gave for tokens that end soon."""
    inspector = sa.inspect(op.get_bind())
    if not inspector.has_table("password"):
        password.create(op.get_bind())
    if "purpose" not in {column["name"] for column in inspector.get_columns("token")}:
        op.add_column("token", sa.Column("purpose", sa.Text, nullable=False, server_default="api"))


def downgrade() -> None:
    """Take them away, with what logins gave: the release before would list it."""
    op.execute("DELETE FROM token WHERE purpose <> 'api'")
    op.drop_column("token", "purpose")
    op.drop_table("password")
