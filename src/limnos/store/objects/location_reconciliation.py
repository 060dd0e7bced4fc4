# SPDX-License-Identifier: Apache-2.0
"""Statements that bring the register of storage locations up to date: documents and filesets that it lacks, the mark
of a complete register, and locations that violate a rule.

Must not know rules: `services.storage.location_reconciliation` uses them at the server's start and in its upkeep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from limnos.model.kinds import Kind
from limnos.model.storage_locations import LocationClaim, LocationKind, LocationState
from limnos.store.objects.storage_locations import (
    JOIN,
    ROW,
    STATE,
    LocationWrites,
    RegisteredLocation,
    registered_location_of,
)
from limnos.store.sql import Load, Sql, Value
from limnos.store.transaction import Writes

_CONFLICTS = f"{ROW} place p {JOIN} WHERE p.conflicting AND (p.owner_id, p.location) > (:id, :location)"
_BY_OWNER = "ORDER BY p.owner_id, p.location LIMIT :limit"
CONFLICTS = Sql(f"{_CONFLICTS} {_BY_OWNER}")
LIVE_CONFLICTS = Sql(
    f"{_CONFLICTS} AND p.kind <> {int(LocationKind.RESTRICTED_READS)} AND ({STATE}) = {int(LocationState.LIVE)}"
    f" {_BY_OWNER}"
)
"""The query for conflicts of live objects, without directories for restricted reads, whose warehouse is marked as
well.
"""
UNSETTLED = Sql("SELECT 1 FROM place WHERE location = ''")
SETTLED = Sql("DELETE FROM place WHERE location = ''")
"""The statement that deletes the row that the migration creates for the first start."""
LAST_DOCUMENT = Sql(
    "SELECT max(d.node_id) FROM (SELECT node_id FROM document WHERE node_id > :after ORDER BY node_id LIMIT :limit)"
    " AS d"
)
MISSED = Sql(
    "SELECT d.node_id, n.zone, n.kind, n.format, d.location FROM document d JOIN node n ON n.id = d.node_id WHERE"
    " d.node_id > :after AND d.node_id <= :last AND NOT EXISTS (SELECT 1 FROM place p WHERE p.owner_id = d.node_id)"
)
MISSED_FILESETS = Sql(
    "SELECT f.node_id, n.zone, f.managed, f.location FROM fileset_place f JOIN node n ON n.id = f.node_id WHERE"
    " f.node_id > :after AND f.node_id <= :last AND n.deleted = 0 AND NOT EXISTS (SELECT 1 FROM place p WHERE"
    " p.owner_id = f.node_id)"
)
LAST_ID: Final = 2**63 - 1
_NEEDLES = ("first", "second", "third")
_WITH = (
    "SELECT d.node_id, n.zone, d.body FROM document d JOIN node n ON n.id = d.node_id WHERE d.node_id > :after AND ({})"
    " ORDER BY d.node_id LIMIT 50"
)
DOCUMENTS_WITH = Sql(
    _WITH.format(" OR ".join(f"position(CAST(:{each} AS bytea) IN d.body) > 0" for each in _NEEDLES)),
    on_sqlite=_WITH.format(" OR ".join(f"instr(d.body, :{each}) > 0" for each in _NEEDLES)),
)


def conflicts_read(limit: int) -> Load[list[RegisteredLocation]]:
    """Read up to `limit` locations that were registered before the overlap rules existed and violate one of them."""
    rows = yield CONFLICTS, {"id": 0, "location": "", "limit": limit}
    return [registered_location_of(row) for row in rows]


class ReconciliationWrites(Writes):
    """Reads and writes of the register as a whole inside a transaction."""

    def is_unsettled(self) -> bool:
        """Return whether the register is incomplete, as after the upgrade of a store from an earlier release."""
        return bool(self.tx.rows(UNSETTLED, {}))

    def mark_complete(self) -> None:
        """Record that the register of locations is complete."""
        self.tx.count(SETTLED, {})

    def find_unregistered(self, *, after: int, limit: int) -> tuple[int | None, list[tuple[LocationClaim, str]]]:
        """Find documents and filesets that have no location in the register, with ids above `after`.

        Returns the id of the last of up to `limit` checked documents (None: no more documents), and (claim, location)
        pairs.
        """
        last = self.tx.rows(LAST_DOCUMENT, {"after": after, "limit": limit})[0][0]
        results: list[tuple[LocationClaim, str]] = []
        if last is not None:
            for node_id, catalog, kind, table_format, location in self.tx.rows(MISSED, {"after": after, "last": last}):
                is_lance = LocationKind.LANCE_TABLE if table_format == "lance" else LocationKind.TABLE
                place_kind = LocationKind.VIEW if kind == Kind.VIEW else is_lance
                results.append((self._claim(place_kind, node_id, catalog=catalog), location))
        until = LAST_ID if last is None else last
        for node_id, catalog, managed, location in self.tx.rows(MISSED_FILESETS, {"after": after, "last": until}):
            place_kind = LocationKind.FILESET if managed else LocationKind.EXTERNAL_FILESET
            results.append((self._claim(place_kind, node_id, catalog=catalog), location))
        return last, results

    def _claim(self, kind: LocationKind, node_id: int, *, catalog: int) -> LocationClaim:
        metalake = LocationWrites(self.tx).metalake_of(catalog)
        return LocationClaim(kind=kind, owner_id=node_id, catalog_id=catalog, metalake_id=metalake)

    def documents_with(self, names: Sequence[str], *, after: int) -> list[tuple[int, int, bytes]]:
        """Read up to 50 documents whose bytes contain one of three property names, with ids above `after`.

        Returns (id, catalog id, bytes).
        """
        params: dict[str, Value] = {key: name.encode() for key, name in zip(_NEEDLES, names, strict=True)}
        return [(row[0], row[1], bytes(row[2])) for row in self.tx.rows(DOCUMENTS_WITH, params | {"after": after})]

    def conflicts(
        self, *, after: tuple[int, str] = (0, ""), limit: int, only_live: bool = False
    ) -> Sequence[RegisteredLocation]:
        """Read up to `limit` locations marked as conflicting, sorted by (owner, location), beginning after the key
        `after`.

        With `only_live`, locations of dropped objects and directories for restricted reads are omitted.
        """
        params: dict[str, Value] = {"id": after[0], "location": after[1], "limit": limit}
        return [registered_location_of(row) for row in self.tx.rows(LIVE_CONFLICTS if only_live else CONFLICTS, params)]
