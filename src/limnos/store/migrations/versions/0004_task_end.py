"""Tasks that were given up, or have something to tell, stay to be seen.

Columns that may be empty: a node of the release before goes on beside this schema. What has ended is due in no foreseeable
time, so such a node does not take it up.

Revision ID: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import Id

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns; a store made by this release has them from the start."""
    found = sa.inspect(op.get_bind())
    if "ended_at" not in {column["name"] for column in found.get_columns("task")}:
        op.add_column("task", sa.Column("ended_at", Id))
        op.add_column("task", sa.Column("result", sa.Text))


def downgrade() -> None:
    """Take them away, and what has ended with them."""
    op.execute("DELETE FROM task WHERE ended_at IS NOT NULL")
    op.drop_column("task", "result")
    op.drop_column("task", "ended_at")
