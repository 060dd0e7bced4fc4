"""What tags are on. Tags themselves are nodes, which were there before.

Revision ID: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import tag_object

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table; a store made by this release has it from the start. The release before takes no notice of it."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(tag_object.name):
        tag_object.create(bind)


def downgrade() -> None:
    """Take it away."""
    tag_object.drop(op.get_bind())
