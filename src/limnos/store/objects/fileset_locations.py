# SPDX-License-Identifier: Apache-2.0
"""Locations of filesets: a row for each, so that filesets at, above or below a location are found by an index.

Must not know files. A row exists while its fileset is live or in the trash, and while its files are being deleted:
until then no other object may use the location.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from limnos.store.objects.documents import CLAIMS_MAX
from limnos.store.objects.storage_locations import overlap_params
from limnos.store.objects.trash import KEPT
from limnos.store.sql import Params, Sql
from limnos.store.transaction import Writes

PUT = Sql(
    "INSERT INTO fileset_place (node_id, location, managed, going) VALUES (:id, :location, :managed, FALSE) ON CONFLICT"
    " DO NOTHING"
)
_LIVE = "EXISTS (SELECT 1 FROM node n WHERE n.id = {0}.node_id AND n.deleted = 0)"
_KEPT = KEPT.format("p.node_id")
_STANDS = f"(p.going = TRUE OR {_LIVE.format('p')} OR {_KEPT})"
_ROW = f"SELECT p.node_id, p.location, p.managed, p.going, CASE WHEN {_KEPT} THEN 1 ELSE 0 END FROM fileset_place p"
_OTHERS = f"p.node_id <> :id AND {_STANDS}"
_HIGHER = "SELECT jsonb_array_elements_text(CAST(:above AS jsonb))"
_TEXT = (
    f"{_ROW} WHERE p.location = :location AND {_OTHERS} UNION ALL {_ROW} WHERE p.location IN ({{higher}}) AND {_OTHERS}"
    f" UNION ALL SELECT * FROM ({_ROW} WHERE p.location > :low AND p.location < :high AND {_OTHERS} ORDER BY p.location"
    " LIMIT :limit) AS lower"
)
RIVALS = Sql(
    _TEXT.replace("{higher}", _HIGHER), on_sqlite=_TEXT.replace("{higher}", "SELECT value FROM json_each(:above)")
)
BEGIN = Sql("UPDATE fileset_place SET going = TRUE WHERE node_id = :id RETURNING location")
CLEAR = Sql("DELETE FROM fileset_place WHERE node_id = :id")
SWEEP = Sql(
    f"DELETE FROM fileset_place WHERE going = FALSE AND NOT {_LIVE.format('fileset_place')} AND NOT"
    f" {KEPT.format('fileset_place.node_id')}"
)


class FilesetLocation(NamedTuple):
    """A location of a fileset: whether the server manages its files (`managed`) and is deleting them (`going`), and
    whether the fileset is in the trash.
    """

    node_id: int
    location: str
    managed: bool
    going: bool
    is_trashed: bool


def fileset_location_rows(node_id: int, locations: Iterable[str], *, managed: bool) -> list[Params]:
    """Build the rows of a fileset, one for each distinct location."""
    return [{"id": node_id, "location": each, "managed": managed} for each in dict.fromkeys(locations)]


class FilesetLocationWrites(Writes):
    """Reads and writes fileset locations inside a transaction."""

    def create(self, node_id: int, locations: Iterable[str], *, managed: bool) -> None:
        """Insert the locations of a fileset."""
        for row in fileset_location_rows(node_id, locations, managed=managed):
            self.tx.count(PUT, row)

    def rivals(self, location: str, *, but: int) -> list[FilesetLocation]:
        """Read conflicting filesets: those with locations at a location, above it, or (at most `CLAIMS_MAX`) below it.

        The fileset with the id `but` is excluded.
        """
        params: Params = {**overlap_params(location), "location": location, "id": but, "limit": CLAIMS_MAX}
        rows = self.tx.rows(RIVALS, params)
        return [
            FilesetLocation(
                node_id=row[0], location=row[1], managed=bool(row[2]), going=bool(row[3]), is_trashed=bool(row[4])
            )
            for row in rows
        ]

    def begin(self, node_id: int) -> list[str]:
        """Record that a fileset's files are being deleted. Returns its locations."""
        return [row[0] for row in self.tx.rows(BEGIN, {"id": node_id})]

    def clear(self, node_id: int) -> None:
        """Delete the locations of a fileset."""
        self.tx.count(CLEAR, {"id": node_id})
