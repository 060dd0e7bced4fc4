# SPDX-License-Identifier: Apache-2.0
"""Indexes of the objects of a tag in the order of their ids, and the failing background work of nodes.

Revision ID: 0061
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of
from limnos.store.schema import metadata

revision = "0061"
down_revision = "0060"
_INDEXES = {"tag_object": "tag_object_tag", "column_attachment": "column_attachment_attached"}


def upgrade() -> None:
    """Replace the indexes and add the column, empty. A store created by this release has all of it."""
    for table, name in _INDEXES.items():
        indexes = {index["name"]: index for index in sa.inspect(op.get_bind()).get_indexes(table)}
        if name in indexes and len(indexes[name]["column_names"]) == 1:
            op.drop_index(name, table)
        (new_index,) = (each for each in metadata.tables[table].indexes if each.name == name)
        new_index.create(op.get_bind(), checkfirst=True)
    if "failing" not in columns_of("node_seen"):
        op.add_column("node_seen", sa.Column("failing", sa.Text, nullable=True))


def downgrade() -> None:
    """Drop the column; the indexes serve an older release as well."""
    op.drop_column("node_seen", "failing")
