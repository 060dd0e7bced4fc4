# SPDX-License-Identifier: Apache-2.0
"""The register of storage locations.

Revision ID: 0039
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.model.kinds import Kind
from limnos.model.storage_locations import LocationKind, LocationState
from limnos.store.migrations.steps import drop_tables
from limnos.store.schema.tree import place

revision = "0039"
down_revision = "0038"
_INTO = "INSERT INTO place (location, owner_id, kind, catalog_id, metalake_id, state, conflicting, claimant_id, since)"
_DOCUMENTS = sa.text(
    f"{_INTO} SELECT d.location, d.node_id, CASE WHEN n.kind = {int(Kind.VIEW)} THEN {int(LocationKind.VIEW)}"
    f" WHEN n.format = 'lance' THEN {int(LocationKind.LANCE_TABLE)} ELSE {int(LocationKind.TABLE)} END,"
    " n.zone, coalesce(c.parent_id, 0), 0, FALSE, NULL, n.created_at FROM document d JOIN node n ON n.id = d.node_id"
    " LEFT JOIN node c ON c.id = n.zone"
)
_FILESETS = sa.text(
    f"{_INTO} SELECT f.location, f.node_id, CASE WHEN f.managed THEN {int(LocationKind.FILESET)} ELSE"
    f" {int(LocationKind.EXTERNAL_FILESET)} END, n.zone, coalesce(c.parent_id, 0), CASE WHEN f.going THEN"
    f" {int(LocationState.DELETING)} ELSE 0 END, FALSE, NULL, n.created_at FROM fileset_place f JOIN node n ON n.id ="
    " f.node_id LEFT JOIN node c ON c.id = n.zone WHERE f.going OR n.deleted = 0 OR EXISTS (SELECT 1 FROM trash t"
    " WHERE t.node_id = f.node_id)"
)
_UNSETTLED = sa.text(f"{_INTO} VALUES ('', 0, 0, 0, 0, 0, FALSE, NULL, 0)")


def upgrade() -> None:
    """Create the table, and insert the locations of tables, views and filesets. The previous release does not use it.

    The first start adds the locations that need settings or metadata: roots of catalogs, data paths, and conflicts. A
    row with an empty location marks that this is pending.
    """
    bind = op.get_bind()
    if sa.inspect(bind).has_table(place.name):
        return
    place.create(bind)
    bind.execute(_DOCUMENTS)
    bind.execute(_FILESETS)
    if bind.execute(sa.text("SELECT 1 FROM node LIMIT 1")).first() is not None:
        bind.execute(_UNSETTLED)


def downgrade() -> None:
    """Drop the register of storage locations. Locations of each kind are then checked separately."""
    drop_tables("place")
