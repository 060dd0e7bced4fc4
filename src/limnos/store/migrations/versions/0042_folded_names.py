# SPDX-License-Identifier: Apache-2.0
"""Folded names of nodes, for searches; and indexes for searches by name and by uuid.

Revision ID: 0042
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.names.folding import fold
from limnos.store.schema.tree import document, document_uuid, node, node_folded, node_unfolded

revision = "0042"
down_revision = "0041"
AT_ONCE = 10_000
_PAGE = sa.text("SELECT id, name FROM node WHERE id > :after ORDER BY id LIMIT :limit")
_FOLD = sa.text("UPDATE node SET folded = :folded WHERE id = :id")


def upgrade() -> None:
    """Add the column, fill it, and create the indexes.

    The previous release neither reads nor writes the column. Rows that it inserts have NULL there, which the background
    work of this release fills. A store created by this release has the column and the indexes already.
    """
    bind = op.get_bind()
    known = sa.inspect(bind)
    if node.c.folded.name not in {each["name"] for each in known.get_columns(node.name)}:
        op.add_column(node.name, sa.Column(node.c.folded.name, node.c.folded.type))
        after = -1
        while rows := bind.execute(_PAGE, {"after": after, "limit": AT_ONCE}).all():
            bind.execute(_FOLD, [{"id": row[0], "folded": fold(row[1])} for row in rows])
            after = rows[-1][0]
    for index, table in ((node_folded, node), (node_unfolded, node), (document_uuid, document)):
        if index.name not in {each["name"] for each in known.get_indexes(table.name)}:
            index.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    bind = op.get_bind()
    for index in (node_folded, node_unfolded, document_uuid):
        index.drop(bind)
    op.drop_column(node.name, node.c.folded.name)
