"""Whether the files of what lies in the trash go with it.

Revision ID: 0023
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add the column; a store made by this release has it from the start. What the release before drops keeps its files."""
    if "purges" not in {column["name"] for column in sa.inspect(op.get_bind()).get_columns("trash")}:
        op.add_column("trash", sa.Column("purges", sa.Boolean, nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Take it away."""
    op.drop_column("trash", "purges")
