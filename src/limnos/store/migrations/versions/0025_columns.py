"""Attachments and statistics of columns, and values of tags.

Revision ID: 0025
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import column_attachment, column_statistic, tag_value

revision = "0025"
down_revision = "0028"
_TABLES = (column_attachment, tag_value, column_statistic)


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release uses none of them."""
    for table in _TABLES:
        if not sa.inspect(op.get_bind()).has_table(table.name):
            table.create(op.get_bind())


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    for table in reversed(_TABLES):
        table.drop(op.get_bind())
