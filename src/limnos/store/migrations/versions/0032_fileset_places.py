# SPDX-License-Identifier: Apache-2.0
"""Locations of filesets.

Revision ID: 0032
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.model.kinds import Kind
from limnos.model.records import FilesetRecord
from limnos.store.migrations.steps import create_tables, drop_tables
from limnos.store.schema.tree import fileset_place

revision = "0032"
down_revision = "0027"
_FILESETS = sa.text(f"SELECT id, record FROM node WHERE kind = {int(Kind.FILESET)}")


def upgrade() -> None:
    """Create the table, and insert the locations of existing filesets. The previous release does not use it.

    A sweep deletes the rows of filesets that are permanently deleted.
    """
    bind = op.get_bind()
    create_tables("fileset_place")
    for node_id, data in bind.execute(_FILESETS).all():
        record = FilesetRecord.read(bytes(data))
        for location in dict.fromkeys(record.locations.values()):
            row = {"node_id": node_id, "location": location, "managed": not record.external, "going": False}
            bind.execute(fileset_place.insert().values(**row))


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("fileset_place")
