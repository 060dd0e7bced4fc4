# SPDX-License-Identifier: Apache-2.0
"""Positions of scans in the order of folded names, and indexes of namespaces and of the trash of one parent.

Revision ID: 0058
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.types import TypeEngine

from limnos.store.migrations.steps import columns_of
from limnos.store.schema import metadata
from limnos.store.schema.base import Id, Name

revision = "0058"
down_revision = "0057"
_COLUMNS: dict[str, TypeEngine[Any]] = {"scan_folded": Name, "scan_id": Id}


def upgrade() -> None:
    """Add the columns, empty: scans that have begun begin again. A store created by this release has all of it."""
    present = columns_of("search_position")
    for name, kind in _COLUMNS.items():
        if name not in present:
            op.add_column("search_position", sa.Column(name, kind, nullable=True))
    indexes = {index["name"]: index for index in sa.inspect(op.get_bind()).get_indexes("trash")}
    if len(indexes["trash_parent"]["column_names"]) == 1:
        op.drop_index("trash_parent", "trash")
    for table, index in (("node", "node_namespace"), ("trash", "trash_parent")):
        (new_index,) = (each for each in metadata.tables[table].indexes if each.name == index)
        new_index.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    """Drop the columns and the index of namespaces: scans that have begun begin again."""
    op.drop_index("node_namespace", "node")
    for name in _COLUMNS:
        op.drop_column("search_position", name)
