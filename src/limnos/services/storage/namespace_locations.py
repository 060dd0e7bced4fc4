"""Namespace locations: the location of a namespace's tables: its own or inherited property `location`, else a directory
below the warehouse.

May import `model`, `files` for the normal form of locations, `services.request.catalog_storage` and the request view.
Performs no I/O. A default is computed from the namespace's id and not stored. Ids are never reused and the location
contains no name. So renaming or moving a namespace does not move its tables' files, and a later namespace of the same
name does not overlap them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, cast

from limnos.files import is_local, normalise
from limnos.model.decisions import SecurableChain
from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.model.records import NamespaceRecord
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.request_view import RequestView

LOCATION: Final = "location"


def inherited_location(request_view: RequestView, chain: SecurableChain) -> str | None:
    """Return the location of the nearest namespace of `chain` that has a location, without a trailing slash; None if no
    namespace has one.
    """
    for link in chain:
        if link.kind is not Kind.NAMESPACE:
            return None
        location = cast("NamespaceRecord", request_view.node(link.id).record).properties.get(LOCATION)
        if location:
            return location.rstrip("/")
    return None


def namespace_location(namespace: Node, above: str) -> str:
    """Return a namespace's location for responses: its own, else a directory named after its id below `above`.

    Clients choose the location of a new table below it.
    """
    own = cast("NamespaceRecord", namespace.record).properties.get(LOCATION)
    return own or f"{above}/n{namespace.id}"


def namespace_base_location(request_view: RequestView, chain: SecurableChain) -> str:
    """Return the location that contains the default locations of namespaces below the first object of `chain`: an
    inherited one, else the warehouse.
    """
    location = inherited_location(request_view, chain)
    if location is not None:
        return location
    place = catalog_storage_of(request_view)
    if place.home is not None and is_local(place.home):
        return place.home  # the warehouse's URI, because the setting may be a plain path
    return place.warehouse


def check_new_location(
    before: NamespaceRecord | None, after: NamespaceRecord, place: CatalogStorage
) -> NamespaceRecord:
    """Check a location that a change sets, and add a scheme to a plain path. Raises OutsideRoots outside of the
    catalog's roots, BadRequest if invalid.
    """
    location = after.properties.get(LOCATION)
    if location is None or (before is not None and location == before.properties.get(LOCATION)):
        return after
    place.check(location)
    spelled = normalise(location) if is_local(location) else location.rstrip("/")
    return replace(after, properties={**after.properties, LOCATION: spelled})
