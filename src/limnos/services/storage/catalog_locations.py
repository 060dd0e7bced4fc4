# SPDX-License-Identifier: Apache-2.0
"""Catalog locations: a catalog's warehouse, other roots, the directory that it shows, and its directory for restricted
reads.

The locations are computed from the catalog's record and the server's warehouse.
"""

from __future__ import annotations

from limnos.files import place_key
from limnos.model.errors import BadRequest
from limnos.model.records import CatalogRecord
from limnos.model.storage_locations import LocationClaim, LocationKind
from limnos.services.request import catalog_storage
from limnos.services.storage.location_claims import location_check, rivals_near
from limnos.store.objects.storage_locations import RegisteredLocation
from limnos.store.tx import Tx


def catalog_locations(record: CatalogRecord, *, catalog_id: int, warehouse: str) -> dict[str, tuple[LocationKind, str]]:
    """Return the kind and original form of each location of a catalog, by key. `warehouse` is the server's warehouse.

    If two kinds have the same location, the stricter kind represents both.
    """
    fallback = f"{warehouse}/{catalog_id}"
    results: dict[str, tuple[LocationKind, str]] = {}
    directory = record.properties.get(catalog_storage.DIRECTORY)
    if record.provider in catalog_storage.PROVIDERS_WITH_WAREHOUSE:
        for root in catalog_storage.roots_of(record, fallback):
            results[_key(root)] = LocationKind.ALLOWED_LOCATION, root
        home = catalog_storage.warehouse_of(record, fallback)
        if home:
            results[_key(home)] = LocationKind.WAREHOUSE, home
            aside = f"{home}/{catalog_storage.RESTRICTED_READS_DIRECTORY}"
            results[_key(aside)] = LocationKind.RESTRICTED_READS, aside
    if directory:
        results[_key(directory)] = LocationKind.LANCE_DIRECTORY, directory
    results.pop("", None)
    return results


def _key(location: str) -> str:
    """Return a location's key; empty for an invalid one that an older release accepted."""
    try:
        return place_key(location)
    except BadRequest:
        return ""


def catalog_locations_claim(
    tx: Tx, catalog_id: int, *, record: CatalogRecord, warehouse: str, keeps: bool = False
) -> None:
    """Register the new locations of a catalog's record, and delete the locations that the record no longer has.

    Only new locations are checked: older conflicts do not prevent altering a catalog.

    Args:
        tx: The transaction.
        catalog_id: The id of the catalog.
        record: The catalog's new record.
        warehouse: The server's warehouse.
        keeps: Whether a location that violates a rule within its metalake is registered as conflicting instead of
            refused. Locations of two metalakes never overlap.

    Raises:
        BadRequest: A location rule forbids a location.
        ServiceUnavailable: Files at a location are being deleted.
    """
    requested = catalog_locations(record, catalog_id=catalog_id, warehouse=warehouse)
    before = {(each.location, each.claim.kind) for each in tx.places.of(catalog_id)}
    tx.places.lock(key for key, (kind, _) in requested.items() if (key, kind) not in before)
    for key, (kind, location) in requested.items():
        if (key, kind) in before:
            continue
        claim = LocationClaim(kind=kind, owner_id=catalog_id, catalog_id=catalog_id, metalake_id=0)
        is_kept = False
        try:
            location_check(tx, claim, key=key, location=location)
        except BadRequest:
            if not keeps or _meets_other_metalake(tx, claim, key=key):
                raise
            is_kept = True
        tx.places.put(claim, key)
        if is_kept:
            tx.places.mark(RegisteredLocation(location=key, claim=claim, claimant_id=None, since=0), conflicting=True)
    for key, kind in before:
        if requested.get(key, (None, ""))[0] is not kind:
            tx.places.clear(catalog_id, location=key, kind=kind)


def _meets_other_metalake(tx: Tx, claim: LocationClaim, *, key: str) -> bool:
    """Return whether another metalake has a location at, above or below a catalog's new location."""
    claim = claim._replace(metalake_id=tx.places.metalake_of(claim.catalog_id))
    return any(each.claim.metalake_id != claim.metalake_id for each in rivals_near(tx, claim, key=key))
