"""Attachments of tags. Tags themselves are nodes, which exist already.

Revision ID: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import tag_object

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release ignores it."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(tag_object.name):
        tag_object.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    tag_object.drop(op.get_bind())
