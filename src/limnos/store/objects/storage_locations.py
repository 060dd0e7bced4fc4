# SPDX-License-Identifier: Apache-2.0
"""The register of storage locations: one table with the locations of all catalogs and of objects of all kinds.

Must not know rules: `services.request.location_rules` defines which locations may overlap. Locations are stored as keys
(`files.locations.place_key`). A row exists while files of its object may exist. Whether an object is in the trash, or
was permanently dropped, is read from its node, so that a drop and an undrop write nothing here.

A writer of a new location first takes locks that conflict with writers in other catalogs: exclusive on the location,
shared on those above it. On SQLite the file's write lock covers all of them. Then conflicts are found with one index
probe for each parent location and one range scan below the location: the cost grows with the path's depth, not with the
number of locations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from limnos.model.storage_locations import OF_CATALOGS, ROOTS, LocationClaim, LocationKind, LocationState
from limnos.store.objects.trash import TrashWrites
from limnos.store.sql import Load, Query, Row, Sql, Value
from limnos.store.transaction import Writes

_SLASH = re.compile("(?<=[^/:])/")


def parent_locations(location: str) -> tuple[str, ...]:
    """Return the parent locations of a location in normal form, outermost first."""
    return _down_to(location[: location.rfind("/")])[0]


@lru_cache(maxsize=1024)
def _down_to(parent: str) -> tuple[tuple[str, ...], str]:
    """Return a location and its parent locations, as a tuple and as a JSON array.

    Cached, since most tables of a catalog share a parent.
    """
    parent_paths = tuple(f"{parent}/"[: slash.start()] for slash in _SLASH.finditer(f"{parent}/"))
    return parent_paths, msgspec.json.encode(parent_paths).decode()


def location_locks(locations: Iterable[str]) -> dict[str, bool]:
    """Return the locks to take for new locations: exclusive (True) for each new location, shared (False) for its parent
    locations.
    """
    lock_modes = dict.fromkeys(locations, True)
    return dict.fromkeys((above for each in lock_modes for above in parent_locations(each)), False) | lock_modes


def overlap_params(location: str) -> dict[str, Value]:
    """Return the query parameters that find the parent locations of a location and the locations inside it.

    Locations below it sort between `<location>/` and `<location>0`, the next character.
    """
    return {"above": _down_to(location[: location.rfind("/")])[1], "low": f"{location}/", "high": f"{location}0"}


def lower_params(location: str, *, but: int, limit: int, after: tuple[str, int, int] | None = None) -> dict[str, Value]:
    """Return the query parameters that find a page of the locations inside a location, without those of owner `but`,
    after a row (location, owner, kind).
    """
    low, owner_id, kind = (f"{location}/", -1, -1) if after is None else after
    return {"low": low, "after_id": owner_id, "after_kind": kind, "high": f"{location}0", "id": but, "limit": limit}


RIVALS_MAX: Final = 500
"""The maximum number of locations below a location that one statement reads."""
_ROOTS = ", ".join(str(int(kind)) for kind in sorted(ROOTS))
_OF_CATALOGS = ", ".join(str(int(kind)) for kind in sorted(OF_CATALOGS))
_METALAKE = "(SELECT c.parent_id FROM node c WHERE c.id = :catalog)"
_COLUMNS = "location, owner_id, kind, catalog_id, metalake_id, state, conflicting, claimant_id, since, had_files"
_OUTER = f"(p.kind NOT IN ({_ROOTS}) OR p.metalake_id <> {_METALAKE})"
"""The condition that excludes roots of the same metalake above an object, which do not conflict with it."""
_ABOVE = (
    "SELECT 1 FROM place p WHERE p.location = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(:above AS jsonb)))) AND"
    f" {_OUTER}"
)
_ABOVE_SQLITE = f"SELECT 1 FROM json_each(:above) AS a CROSS JOIN place p ON p.location = a.value WHERE {_OUTER}"
"""The query uses a join in this order: IN would first build an index of the ancestors, which costs as much as the whole
insert.
"""
_HERE = "SELECT 1 FROM place p WHERE p.location = :place"
_BELOW = "SELECT 1 FROM place p WHERE p.location > :low AND p.location < :high"
_REST = f":id, :place_kind, :catalog, {_METALAKE}, 0, FALSE, NULL, :now, CAST(:had_files AS boolean)"
FREE = f"NOT EXISTS ({_ABOVE}) AND NOT EXISTS ({_HERE}) AND NOT EXISTS ({_BELOW})"
INSERT_FREE = Sql(
    f"INSERT INTO place ({_COLUMNS}) SELECT :place, {_REST} WHERE {FREE}",
    # If there is a conflict, the location is null and the row is ignored.
    on_sqlite=(
        f"INSERT OR IGNORE INTO place ({_COLUMNS}) VALUES ((SELECT :place WHERE NOT EXISTS ({_ABOVE_SQLITE})"
        f" AND NOT EXISTS ({_HERE}) AND NOT EXISTS ({_BELOW})), {_REST})"
    ),
)
PUT = Sql(
    f"INSERT INTO place ({_COLUMNS}, keys_until) VALUES (:place, :id, :place_kind, :catalog, {_METALAKE}, 0, FALSE,"
    " :claimant, :now, :had_files, :keys_until) ON CONFLICT DO NOTHING"
)
STATE = (
    "CASE WHEN p.state <> 0 THEN p.state WHEN n.deleted IS NULL OR n.deleted = 0 THEN"
    " CASE WHEN c.deleted <> 0 AND n.id IS NOT NULL THEN 2 ELSE 0 END"
    " WHEN (SELECT 1 FROM trash t WHERE t.node_id = p.owner_id) IS NOT NULL THEN 1 ELSE 2 END"
)
"""The state of a location. For EXISTS, PostgreSQL would first read the whole trash."""
ROW = (
    f"SELECT p.location, p.kind, p.owner_id, p.catalog_id, p.metalake_id, {STATE}, p.conflicting, p.claimant_id,"
    " p.since, p.keys_until, p.had_files FROM"
)
JOIN = "LEFT JOIN node n ON n.id = p.owner_id LEFT JOIN node c ON c.id = p.catalog_id"
_OTHERS = "p.owner_id <> :id"
_UPWARDS = (
    f"{ROW} place p {JOIN} WHERE p.location = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(:upwards AS jsonb))))"
    f" AND {_OTHERS}"
)
_UPWARDS_SQLITE = f"{ROW} json_each(:upwards) AS a CROSS JOIN place p ON p.location = a.value {JOIN} WHERE {_OTHERS}"
UPWARDS = Sql(_UPWARDS, on_sqlite=_UPWARDS_SQLITE)
"""The query for rows at a location, or above it."""
_AFTER = "(p.location, p.owner_id, p.kind) > (:low, :after_id, :after_kind)"
_LOWER = f"{ROW} place p {JOIN} WHERE {_AFTER} AND p.location < :high AND {_OTHERS}"
_PAGED = "ORDER BY p.location, p.owner_id, p.kind LIMIT :limit"
LOWER = Sql(f"{_LOWER} {_PAGED}")
LOWER_OF_ROOT = Sql(
    f"{_LOWER} AND (p.metalake_id <> :metalake OR p.kind = {int(LocationKind.LANCE_DIRECTORY)}) {_PAGED}"
)
"""The query for rows below a root that may conflict with it: within its own metalake only the directories of catalogs
of Lance tables.
"""
_NEAR = f"{{}} UNION ALL SELECT * FROM ({_LOWER} {_PAGED}) AS lower"
NEAR = Sql(_NEAR.format(_UPWARDS), on_sqlite=_NEAR.format(_UPWARDS_SQLITE))
"""The query for rows at a location, above it, or below it."""
OWN = Sql(f"{ROW} place p {JOIN} WHERE p.owner_id = :id ORDER BY p.kind, p.location")
MOVED = Sql(
    f"UPDATE place SET kind = {int(LocationKind.DATA_PATH)}, since = :now WHERE owner_id = :id AND kind = :place_kind"
    " AND location <> :place"
)
DOUBLED = Sql(
    "DELETE FROM place WHERE owner_id = :id AND kind = :place_kind AND location <> :place AND EXISTS (SELECT 1 FROM"
    f" place d WHERE d.owner_id = :id AND d.location = place.location AND d.kind = {int(LocationKind.DATA_PATH)})"
)
"""The statement that deletes rows of a kind whose location is also registered as `DATA_PATH`, their next kind."""
END = Sql(
    "UPDATE place SET state = :state, since = :now, claimant_id = coalesce(:claimant, (SELECT o.principal_id FROM owner"
    " o WHERE o.object_id = :id), (SELECT t.dropped_by_id FROM trash t WHERE t.node_id = :id)) WHERE owner_id = :id"
)
EXPIRE = Sql(
    f"UPDATE place SET state = {int(LocationState.RELEASED)}, since = :now, keys_until = :keys_until,"
    " claimant_id = coalesce(:claimant, (SELECT o.principal_id FROM owner o WHERE o.object_id = :id),"
    " (SELECT t.dropped_by_id FROM trash t WHERE t.node_id = :id)) WHERE owner_id = :id AND location = :place"
)
EXPIRE_PURGED = Sql(
    f"UPDATE place SET state = {int(LocationState.RELEASED)}, keys_until = since + :keys_ms WHERE location = :place"
    f" AND catalog_id = :catalog AND state = {int(LocationState.DELETING)} AND since + :keys_ms > :now"
)
END_EXPIRED = Sql(
    f"DELETE FROM place WHERE keys_until <= :now AND (kind = {int(LocationKind.STAGED_TABLE)} OR state ="
    f" {int(LocationState.RELEASED)})"
)
METALAKE = Sql("SELECT parent_id FROM node WHERE id = :catalog")
DELETED_AT = Sql(
    f"DELETE FROM place WHERE location = :place AND catalog_id = :catalog AND state = {int(LocationState.DELETING)}"
)
KEPT_AT = Sql(
    f"UPDATE place SET state = {int(LocationState.RELEASED)} WHERE location = :place AND catalog_id = :catalog"
    f" AND state = {int(LocationState.DELETING)}"
)
_DELETING_OF = (
    "SELECT {} FROM place WHERE location = :place AND catalog_id = :catalog AND state ="
    f" {int(LocationState.DELETING)}"
)
DELETING_OWNER = Sql(_DELETING_OF.format("owner_id"))
DELETING_OF_OWNER = Sql(
    f"SELECT location FROM place WHERE state = {int(LocationState.DELETING)} AND owner_id IN"
    f" ({_DELETING_OF.format('owner_id')}) ORDER BY location"
)
RELEASE_ONE = Sql(
    f"UPDATE place SET state = {int(LocationState.RELEASED)}, since = :now WHERE owner_id = :id AND location = :place"
    f" AND kind = :place_kind AND state <> {int(LocationState.RELEASED)}"
)
FREE_ONE = Sql(
    "DELETE FROM place WHERE owner_id = :id AND location = :place AND kind = :place_kind AND state ="
    f" {int(LocationState.RELEASED)}"
)
CLEAR = Sql("DELETE FROM place WHERE owner_id = :id")
CLEAR_ONE = Sql(
    "DELETE FROM place WHERE owner_id = :id AND location = :place AND (:place_kind = 0 OR kind = :place_kind)"
)
CLEAR_LOCATION = Sql(
    f"DELETE FROM place WHERE owner_id = :id AND kind IN ({int(LocationKind.TABLE)}, {int(LocationKind.VIEW)},"
    f" {int(LocationKind.LANCE_TABLE)})"
)
CLEAR_ROOTS = Sql(f"DELETE FROM place WHERE owner_id = :id AND kind IN ({_OF_CATALOGS})")
CLEAR_METALAKE = Sql(
    f"DELETE FROM place WHERE kind IN ({_OF_CATALOGS}) AND owner_id IN"
    " (SELECT n.id FROM clock c CROSS JOIN node n WHERE n.id = c.zone AND n.parent_id = :id)"
)
MARK = Sql("UPDATE place SET conflicting = :conflicting WHERE owner_id = :id AND location = :place")
IS_OWNER = Sql("SELECT 1 FROM owner WHERE object_id = :id AND principal_id = :actor")
NAMED = Sql("SELECT parent_id, name FROM node WHERE id = :id")
CATALOG_ROOTS = Sql(
    "SELECT p.location, n.id FROM node m CROSS JOIN node n CROSS JOIN place p WHERE m.parent_id = 0 AND m.name_space ="
    " 'metalake' AND m.deleted = 0 AND n.parent_id = m.id AND n.name_space = 'catalog' AND n.deleted = 0 AND"
    f" p.owner_id = n.id AND p.kind IN ({', '.join(str(int(kind)) for kind in sorted(ROOTS))}) ORDER BY p.location"
)
PAGE = Sql(
    f"{ROW} place p {JOIN} WHERE (p.location, p.owner_id, p.kind) > (:location, :id, :place_kind) AND p.location <>"
    " '' ORDER BY p.location, p.owner_id, p.kind LIMIT :limit"
)


class RegisteredLocation(NamedTuple):
    """A location in the register of locations: its owner and use (`claim`), and the time of its registration."""

    location: str
    claim: LocationClaim
    claimant_id: int | None
    """The principal who may take over the location of a permanently dropped or staged object."""
    since: int
    keys_until: int | None = None
    """The end of the claim of a staged create, or of an object that is gone; None if the claim has no such end."""
    had_files: bool = False
    """Whether it had files of nobody when it was claimed: clients get no credentials for them."""

    def is_over(self, now_ms: int) -> bool:
        """Return whether the claim has ended: it stays in the register until the next upkeep."""
        return self.keys_until is not None and self.keys_until <= now_ms


def registered_location_of(row: Row) -> RegisteredLocation:
    """Build a registered location from a row of the register."""
    claim = LocationClaim(
        kind=LocationKind(row[1]),
        owner_id=row[2],
        catalog_id=row[3],
        metalake_id=row[4],
        state=LocationState(row[5]),
        is_conflicting=bool(row[6]),
    )
    return RegisteredLocation(
        location=row[0], claim=claim, claimant_id=row[7], since=row[8], keys_until=row[9], had_files=bool(row[10])
    )


def rivals_read(location: str, *, but: int = 0) -> Load[list[RegisteredLocation]]:
    """Read the locations of objects other than `but` that equal a location, contain it, or lie below it (at most
    `RIVALS_MAX`).
    """
    upwards = yield UPWARDS, {"upwards": _upwards(location), "id": but}
    lower = yield LOWER, lower_params(location, but=but, limit=RIVALS_MAX)
    return [registered_location_of(row) for row in (*upwards, *lower)]


def near_query(location: str) -> Query:
    """Return the query for all claims at a location, above it, and the first `RIVALS_MAX` below it."""
    return NEAR, lower_params(location, but=0, limit=RIVALS_MAX) | {"upwards": _upwards(location)}


def own_locations_read(owner_id: int) -> Load[list[RegisteredLocation]]:
    """Read the locations of an object."""
    rows = yield OWN, {"id": owner_id}
    return [registered_location_of(row) for row in rows]


def _upwards(location: str) -> str:
    return msgspec.json.encode((location, *parent_locations(location))).decode()


class LocationWrites(Writes):
    """Reads and writes the register of storage locations inside a transaction."""

    def lock(self, locations: Iterable[str]) -> None:
        """Lock locations against concurrent claims from other catalogs, in one statement. No-op on SQLite."""
        if self.tx.session.has_location_locks:
            self.tx.session.lock_locations(location_locks(locations))

    def insert_free(self, claim: LocationClaim, location: str, *, had_files: bool = False) -> bool:
        """Insert an object's location if nothing conflicts with it. Returns whether it was inserted."""
        params = self.params(claim, location, had_files=had_files) | overlap_params(location)
        return self.tx.count(INSERT_FREE, params) > 0

    def put(
        self,
        claim: LocationClaim,
        location: str,
        *,
        claimant_id: int | None = None,
        keys_until: int | None = None,
        had_files: bool = False,
    ) -> None:
        """Insert a location without a check for conflicts, which the caller has made.

        `keys_until` is the end of a staged create's claim.
        """
        more: dict[str, Value] = {"claimant": claimant_id, "keys_until": keys_until}
        self.tx.count(PUT, self.params(claim, location, had_files=had_files) | more)

    def params(self, claim: LocationClaim, location: str, *, had_files: bool = False) -> dict[str, Value]:
        """Return the statement parameters for a row of an object: its use (`claim`) and its location."""
        return {
            "place": location,
            "id": claim.owner_id,
            "place_kind": int(claim.kind),
            "catalog": claim.catalog_id,
            "now": self.tx.now_ms,
            "had_files": True if had_files else None,
        }

    def upwards(self, location: str, *, but: int) -> list[RegisteredLocation]:
        """Read the locations that equal or contain `location`, except those of object `but`."""
        return [
            registered_location_of(row) for row in self.tx.rows(UPWARDS, {"upwards": _upwards(location), "id": but})
        ]

    def lower(
        self, location: str, *, but: int, after: RegisteredLocation | None = None, root_of: int | None = None
    ) -> list[RegisteredLocation]:
        """Read a page of other objects' locations below a location, after `after`.

        With `root_of`, read only those that may conflict with a catalog root in that metalake.
        """
        last = None if after is None else (after.location, after.claim.owner_id, int(after.claim.kind))
        params = lower_params(location, but=but, limit=RIVALS_MAX, after=last)
        rows = (
            self.tx.rows(LOWER, params)
            if root_of is None
            else self.tx.rows(LOWER_OF_ROOT, params | {"metalake": root_of})
        )
        return [registered_location_of(row) for row in rows]

    def of(self, owner_id: int) -> list[RegisteredLocation]:
        """Read the locations of an object or a catalog."""
        return [registered_location_of(row) for row in self.tx.rows(OWN, {"id": owner_id})]

    def is_own(self, place: RegisteredLocation) -> bool:
        """Return whether the caller owned, dropped or staged the object. Always True if access control is off."""
        tx = self.tx
        if tx.actor_id is None or place.claimant_id == tx.actor_id:
            return True
        if place.claim.state is LocationState.DROPPED:
            return TrashWrites(tx).is_own(place.claim.owner_id)
        return bool(tx.rows(IS_OWNER, {"id": place.claim.owner_id, "actor": tx.actor_id}))

    def keep_former_as_data(self, owner_id: int, *, kind: LocationKind, location: str) -> None:
        """Change the kind of an object's other locations of a kind to `DATA_PATH` after a move to `location`.

        Their files still exist, so the locations stay registered. Some may be registered as `DATA_PATH` already.
        """
        params: dict[str, Value] = {"id": owner_id, "place_kind": int(kind), "place": location, "now": self.tx.now_ms}
        self.tx.count(DOUBLED, params)
        self.tx.count(MOVED, params)

    def end(self, owner_id: int, *, state: LocationState, claimant_id: int | None) -> None:
        """Set the state of an object's locations when it is permanently dropped: released (its files exist) or being
        deleted.

        `claimant_id` is the principal who may take over its location; None means its owner, else the user who dropped
        it.
        """
        self.tx.count(END, {"id": owner_id, "state": int(state), "claimant": claimant_id, "now": self.tx.now_ms})

    def expire(self, place: RegisteredLocation, *, keys_ms: int, claimant_id: int | None) -> None:
        """Free one location of an object that is gone, at once or, with `keys_ms`, when credentials have expired."""
        if not keys_ms:
            self.clear(place.claim.owner_id, location=place.location)
            return
        now_ms = self.tx.now_ms
        more: dict[str, Value] = {"now": now_ms, "keys_until": now_ms + keys_ms, "claimant": claimant_id}
        self.tx.count(EXPIRE, self._row(place) | more)

    def end_expired(self) -> int:
        """Delete claims whose credentials have expired. Returns their number."""
        return self.tx.count(END_EXPIRED, {"now": self.tx.now_ms})

    def metalake_of(self, catalog_id: int) -> int:
        """Read the id of a catalog's metalake; 0 if the catalog does not exist."""
        rows = self.tx.rows(METALAKE, {"catalog": catalog_id})
        return rows[0][0] if rows else 0

    def record_purge(self, location: str, *, catalog_id: int, whole: bool, keys_ms: int = 0) -> None:
        """Record that a task has deleted the files at a location.

        With `whole` (no file remains) the location is deleted from the register, `keys_ms` after the object was
        dropped, since its credentials live until then; otherwise its state becomes released.
        """
        params: dict[str, Value] = {"place": location, "catalog": catalog_id}
        if whole and keys_ms:
            self.tx.count(EXPIRE_PURGED, params | {"keys_ms": keys_ms, "now": self.tx.now_ms})
        self.tx.count(DELETED_AT if whole else KEPT_AT, params)

    def is_being_deleted(self, location: str, *, catalog_id: int) -> tuple[int, list[str]]:
        """Read the object whose files a task is deleting at a location, and all of its locations under deletion.

        The object's id is 0 if no task deletes files there.
        """
        params: dict[str, Value] = {"place": location, "catalog": catalog_id}
        owners = self.tx.rows(DELETING_OWNER, params)
        return (owners[0][0] if owners else 0), [row[0] for row in self.tx.rows(DELETING_OF_OWNER, params)]

    def release_one(self, place: RegisteredLocation) -> bool:
        """Set one location of a permanently dropped object to released. Returns False if it is released already."""
        return self.tx.count(RELEASE_ONE, self._row(place) | {"now": self.tx.now_ms}) > 0

    def free_one(self, place: RegisteredLocation) -> bool:
        """Delete a released location from the register. Returns whether it was still released."""
        return self.tx.count(FREE_ONE, self._row(place)) > 0

    def _row(self, place: RegisteredLocation) -> dict[str, Value]:
        return {"id": place.claim.owner_id, "place": place.location, "place_kind": int(place.claim.kind)}

    def clear(self, owner_id: int, *, location: str | None = None, kind: int = 0) -> None:
        """Delete all locations of an object, or only `location`, and that only for one `kind` unless it is 0."""
        if location is None:
            self.tx.count(CLEAR, {"id": owner_id})
        else:
            self.tx.count(CLEAR_ONE, {"id": owner_id, "place": location, "place_kind": int(kind)})

    def replace(self, owner_id: int) -> None:
        """Delete the location of a dropped object for the caller's new object, and release its other locations."""
        self.end(owner_id, state=LocationState.RELEASED, claimant_id=self.tx.actor_id)
        self.tx.count(CLEAR_LOCATION, {"id": owner_id})

    def clear_roots(self, catalog_id: int) -> None:
        """Delete the locations registered for the catalog itself (its roots), not those of its objects."""
        self.tx.count(CLEAR_ROOTS, {"id": catalog_id})

    def clear_metalake(self, metalake_id: int) -> None:
        """Delete the roots of all catalogs of a metalake, not the locations of their objects."""
        self.tx.count(CLEAR_METALAKE, {"id": metalake_id})

    def mark(self, place: RegisteredLocation, *, conflicting: bool) -> None:
        """Mark a location as violating an overlap rule, or remove the mark."""
        self.tx.count(MARK, {"id": place.claim.owner_id, "place": place.location, "conflicting": conflicting})

    def path_of(self, node_id: int) -> str:
        """Return the dotted names of a node and its ancestors, dropped or not."""
        return ".".join(self.names_of(node_id))

    def names_of(self, node_id: int) -> tuple[str, ...]:
        """Return the names of a node's ancestors and its own, from the metalake down, dropped or not."""
        names: list[str] = []
        while rows := self.tx.rows(NAMED, {"id": node_id}):
            names.append(rows[0][1])
            node_id = rows[0][0]
        return tuple(reversed(names))

    def catalog_roots(self) -> list[tuple[str, int]]:
        """Read the warehouses and other roots of all catalogs, each with its catalog's id, sorted by location."""
        return [(row[0], row[1]) for row in self.tx.rows(CATALOG_ROOTS, {})]

    def page(self, after: tuple[str, int, int], *, limit: int) -> list[RegisteredLocation]:
        """Read the next `limit` locations sorted by (location, owner, kind), beginning after the key `after`."""
        params: dict[str, Value] = {"location": after[0], "id": after[1], "place_kind": after[2], "limit": limit}
        return [registered_location_of(row) for row in self.tx.rows(PAGE, params)]
