# SPDX-License-Identifier: Apache-2.0
"""Location reconciliation: updates the register of locations at the server's start, for changed settings and older
releases.

A store of an earlier release is reconciled once, before this node serves: locations are replaced by their keys (normal
forms), data paths are registered, and locations that violate a rule are marked as conflicting. After an interruption
the next start begins again. Conflicting locations are kept, and logged at each start.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, NamedTuple

from limnos.files import key_of, place_key
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.errors import LimnosError
from limnos.model.permits import upkeep_permit
from limnos.model.storage_locations import LocationClaim, LocationKind
from limnos.services.request.location_rules import find_conflicting_claims, relation_of
from limnos.services.request.node_services import NodeServices
from limnos.services.storage.catalog_locations import catalog_locations
from limnos.services.storage.location_claims import rivals_near
from limnos.store.interface import Store
from limnos.store.objects.catalogs import catalogs_read
from limnos.store.objects.location_reconciliation import conflicts_read
from limnos.store.objects.storage_locations import RegisteredLocation
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.places")
PAGE: Final = 2000
CATALOGS_PAGE: Final = 200
LOGGED_MAX: Final = 20
DESCRIBED_MAX: Final = 1000
UNMARK_PAGE: Final = 200
CONFLICTS_MAX: Final = 10_000
"""The maximum number of owners with conflicting locations that a node loads; they get no credentials."""
MEND: Final[dict[LocationKind, str]] = {
    LocationKind.LANCE_DIRECTORY: "give the catalog another lance-directory, or drop it",
    LocationKind.WAREHOUSE: "narrow the catalog's warehouse, or that of the other metalake's catalog",
    LocationKind.ALLOWED_LOCATION: "narrow the catalog's allowed-locations, or those of the other metalake's catalog",
    LocationKind.EXTERNAL_FILESET: "drop the fileset, and create it again at another location",
    LocationKind.DATA_PATH: "copy the table to another location, without this data path, then drop it",
}
_MEND_OBJECT: Final = "copy it to another location, then drop it"
EFFECT: Final[dict[LocationKind, str]] = {
    LocationKind.LANCE_DIRECTORY: "its objects are not served",
    LocationKind.WAREHOUSE: "its objects keep their files",
    LocationKind.ALLOWED_LOCATION: "its objects keep their files",
}
_EFFECT_OBJECT: Final = "its files are not served to clients"


async def locations_reconcile(services: NodeServices) -> None:
    """Update the register of locations at the server's start, and log conflicting locations."""
    store, warehouse = services.store, services.defaults.warehouse
    permit = upkeep_permit("limnos")
    is_whole = not await store.submit(permit, lambda tx: tx.location_reconciliation.is_unsettled())
    catalogs = [node_id for node_id, _ in await store.submit(permit, catalogs_read)]
    for at in range(0, len(catalogs), CATALOGS_PAGE):
        some = frozenset(catalogs[at : at + CATALOGS_PAGE])
        await store.submit(permit, partial(_register_roots, some=some, warehouse=warehouse, marks=is_whole))
    if not is_whole:
        await _settle_rest(store)
        await store.submit(permit, lambda tx: tx.location_reconciliation.mark_complete())
    await _read_conflicts(services)
    results = await store.submit(permit, partial(describe_conflicts, limit=LOGGED_MAX + 1))
    for fields in results[:LOGGED_MAX]:
        log.warning("a location violates a rule of locations", **fields)
    if len(results) > LOGGED_MAX:
        log.warning("more locations violate a rule of locations: see 'limnos server check'")


async def _read_conflicts(services: NodeServices) -> None:
    locations = await services.gate.look_up(lambda: conflicts_read(CONFLICTS_MAX))
    services.defaults.location_conflicts.ids = frozenset(each.claim.owner_id for each in locations)


async def locations_refresh(services: NodeServices) -> None:
    """Register locations of objects that nodes of an earlier release created, remove the marks of resolved conflicts,
    and load the marks into the node's settings.
    """
    permit, conflicts = upkeep_permit("limnos"), services.defaults.location_conflicts
    while True:
        last = await services.store.submit(permit, partial(_claim_missed, after=conflicts.seen_id))
        if last is None:
            break
        conflicts.seen_id = last
    after: tuple[int, str] | None = (0, "")
    while after is not None:
        after = await services.store.submit(permit, partial(_clear_marks, after=after))
    await _read_conflicts(services)


def _claim_missed(tx: Tx, *, after: int) -> int | None:
    """Register the missing locations of some documents and filesets, and mark conflicts.

    Returns the last id read; None at the end.
    """
    last, missed = tx.location_reconciliation.find_unregistered(after=after, limit=PAGE)
    for claim, location in missed:
        key = key_of(location)
        tx.places.put(claim, key)
        _mark(tx, claim, key=key)
    return last


def _clear_marks(tx: Tx, *, after: tuple[int, str]) -> tuple[int, str] | None:
    """Remove the marks of some locations that no longer violate a rule. Returns the last location read; None at the
    end.
    """
    last = None
    for each in tx.location_reconciliation.conflicts(after=after, limit=UNMARK_PAGE):
        last = each.claim.owner_id, each.location
        if _rival_of(tx, each) is None:
            tx.places.mark(each, conflicting=False)
    return last


def _rival_of(tx: Tx, place: RegisteredLocation) -> RegisteredLocation | None:
    """Return the location with the stronger claim that conflicts with a marked one; None if the conflict is
    resolved.
    """
    claim = place.claim._replace(is_conflicting=False)
    for other in rivals_near(tx, claim, key=place.location):
        relation, rival = relation_of(place.location, other.location), other.claim._replace(is_conflicting=False)
        if relation is not None and any(
            each is claim for each in find_conflicting_claims(claim, rival, relation=relation)
        ):
            return other
    return None


def describe_conflicts(tx: Tx, *, limit: int = DESCRIBED_MAX) -> list[dict[str, object]]:
    """Describe the first conflicting locations: their owners, the other locations, the effects, and the steps to
    resolve them.

    Locations of dropped objects are omitted, and so are resolved conflicts, whose marks a background task removes.
    """
    results: list[dict[str, object]] = []
    for each in tx.location_reconciliation.conflicts(limit=limit, only_live=True):
        rival = _rival_of(tx, each)
        if rival is not None:
            kind = each.claim.kind
            results.append(
                {
                    **_names(tx, each),
                    "other": _names(tx, rival),
                    "effect": EFFECT.get(kind, _EFFECT_OBJECT),
                    "mend": MEND.get(kind, _MEND_OBJECT),
                }
            )
    return results


def _names(tx: Tx, place: RegisteredLocation) -> dict[str, object]:
    return {
        "name": tx.places.path_of(place.claim.owner_id),
        "kind": place.claim.kind.name.lower(),
        "id": place.claim.owner_id,
        "location": place.location,
    }


def is_unsettled(tx: Tx) -> bool:
    """Return whether the first start on a store of an earlier release still has to reconcile it."""
    return tx.location_reconciliation.is_unsettled()


def _register_roots(tx: Tx, *, some: frozenset[int], warehouse: str, marks: bool) -> None:
    """Register the locations of the catalogs in `some`, computed from their records and the settings, and delete their
    other locations.

    With `marks`, new locations that violate a rule are marked as conflicting.
    """
    for catalog_id, record in catalogs_read(tx):
        if catalog_id not in some:
            continue
        requested = catalog_locations(record, catalog_id=catalog_id, warehouse=warehouse)
        before = {(each.location, each.claim.kind) for each in tx.places.of(catalog_id)}
        for key, kind in before:
            if requested.get(key, (None, ""))[0] is not kind:
                tx.places.clear(catalog_id, location=key, kind=kind)
        for key, (kind, _) in requested.items():
            if (key, kind) not in before:
                claim = LocationClaim(
                    kind=kind, owner_id=catalog_id, catalog_id=catalog_id, metalake_id=tx.places.metalake_of(catalog_id)
                )
                tx.places.put(claim, key)
                if marks:
                    _mark(tx, claim, key=key)


def _mark(tx: Tx, claim: LocationClaim, *, key: str) -> None:
    """Mark a new location, or other locations, as conflicting where they violate a rule."""
    own_location = next(
        each for each in tx.places.of(claim.owner_id) if each.location == key and each.claim.kind is claim.kind
    )
    for rival in list(rivals_near(tx, claim, key=key)):
        relation = relation_of(key, rival.location)
        for marked in (
            () if relation is None else find_conflicting_claims(own_location.claim, rival.claim, relation=relation)
        ):
            registered_location = own_location if marked is own_location.claim else rival
            tx.places.mark(registered_location, conflicting=True)
            if registered_location is own_location:
                own_location = own_location._replace(claim=own_location.claim._replace(is_conflicting=True))


async def _settle_rest(store: Store) -> None:
    permit = upkeep_permit("limnos")
    await _each_page(store, _replace_by_keys)
    after = 0
    while last := await store.submit(permit, partial(_register_data_paths, after=after)):
        after = last
    sweep = ConflictSweep([])
    await _each_page(store, sweep.take)


async def _each_page(store: Store, take: object) -> None:
    """Pass all locations to `take`, ordered by location, page by page."""
    permit, after = upkeep_permit("limnos"), ("", -1, -1)
    while True:
        page = await store.submit(permit, lambda tx, after=after: tx.places.page(after, limit=PAGE))  # type: ignore[misc]
        if not page:
            return
        await store.submit(permit, lambda tx, page=page: take(tx, page))  # type: ignore[misc, operator]
        last = page[-1]
        after = (last.location, last.claim.owner_id, int(last.claim.kind))


def _replace_by_keys(tx: Tx, page: Iterable[RegisteredLocation]) -> None:
    """Replace the locations of a page by their keys: the migration wrote them as in the documents."""
    for each in page:
        try:
            key = key_of(each.location)
        except LimnosError:
            continue
        if key != each.location:
            tx.places.put(each.claim, key)
            tx.places.clear(each.claim.owner_id, location=each.location, kind=each.claim.kind)


def _register_data_paths(tx: Tx, *, after: int) -> int | None:
    """Register the data paths of some tables that have any. Returns the last table's id; None at the end."""
    last = None
    for node_id, catalog_id, body in tx.location_reconciliation.documents_with(
        iceberg_metadata.DATA_PATHS, after=after
    ):
        last = node_id
        for location in iceberg_metadata.outside_paths(iceberg_metadata.decode(body)).values():
            try:
                key = place_key(location)
            except LimnosError:
                log.warning(
                    "a table's data path is not a location", id=node_id, catalog=catalog_id, location=location[:300]
                )
                continue
            tx.places.put(
                LocationClaim(kind=LocationKind.DATA_PATH, owner_id=node_id, catalog_id=catalog_id, metalake_id=0), key
            )
    return last


class ConflictSweep(NamedTuple):
    """Marks conflicting locations in one pass ordered by location.

    `open_places` is the stack of locations that may contain the next one.
    """

    open_places: list[RegisteredLocation]

    def take(self, tx: Tx, page: Iterable[RegisteredLocation]) -> None:
        """Compare one page of registered locations, and record conflicts."""
        for registered_location in page:
            while self.open_places and not registered_location.location.startswith(self.open_places[-1].location):
                self.open_places.pop()
            self.open_places.append(self._mark_conflicts(tx, registered_location))

    def _mark_conflicts(self, tx: Tx, place: RegisteredLocation) -> RegisteredLocation:
        for index, other in enumerate(self.open_places):
            relation = relation_of(place.location, other.location)
            for claim in (
                () if relation is None else find_conflicting_claims(place.claim, other.claim, relation=relation)
            ):
                marked = claim._replace(is_conflicting=True)
                if claim is place.claim:
                    tx.places.mark(place, conflicting=True)
                    place = place._replace(claim=marked)
                else:
                    tx.places.mark(other, conflicting=True)
                    self.open_places[index] = other._replace(claim=marked)
        return place
