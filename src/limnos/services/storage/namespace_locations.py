# SPDX-License-Identifier: Apache-2.0
"""Namespace locations: the location of a namespace's tables: its own or inherited property `location`, else a directory
below the warehouse.

Performs no I/O. A default is computed from the namespace's id and not stored. Ids are never reused and the location
contains no name. So renaming or moving a namespace does not move its tables' files, and a later namespace of the same
name does not overlap them. Objects of other namespaces are refused there.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, cast

from limnos.files import is_local, normalise, place_key
from limnos.model.decisions import SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.records import NamespaceRecord
from limnos.model.storage_locations import LocationKind
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.catalog_traits import NO_TABLES
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import format_of
from limnos.store.tx import Tx

LOCATION: Final = "location"
_DIRECTORY: Final = re.compile("/n([0-9]{1,18})(?=/|$)")
"""A segment of a location that may be the directory of a namespace."""


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


def namespace_location(namespace: Node, above: str | None) -> str | None:
    """Return a namespace's location for responses: its own, else a directory named after its id below `above`; None if
    there is neither.

    Clients choose the location of a new table below it.
    """
    own_location = cast("NamespaceRecord", namespace.record).properties.get(LOCATION)
    return own_location or (None if above is None else f"{above}/n{namespace.id}")


def namespace_base_location(request_view: RequestView, chain: SecurableChain) -> str | None:
    """Return the location that contains the default locations of namespaces below the first object of `chain`: an
    inherited one, else the warehouse; None in a catalog that cannot contain tables.
    """
    if format_of(request_view) == NO_TABLES:
        return None
    location = inherited_location(request_view, chain)
    if location is not None:
        return location
    catalog_storage = catalog_storage_of(request_view)
    if catalog_storage.home is not None and is_local(catalog_storage.home):
        return catalog_storage.home  # the warehouse's URI, because the setting may be a plain path
    return catalog_storage.warehouse


def check_namespace_directory(tx: Tx, *, key: str, location: str, namespace_id: int) -> None:
    """Refuse a new location at or below a directory that the server hands out to another namespace than the object's:
    `n` and an id, directly below a catalog's warehouse or below the location of a namespace around that one.

    Args:
        tx: The transaction.
        key: The location, as a key of the register.
        location: The location as the caller spelled it, for the message.
        namespace_id: The id of the object's namespace.

    Raises:
        BadRequest: The directory is another namespace's, which may be a later one's.
    """
    for match in _DIRECTORY.finditer(key):
        above, owner = key[: match.start()], int(match[1])
        if owner != namespace_id and (_is_warehouse(tx, above) or _is_base(tx, above, namespace_id=owner)):
            raise BadRequest(
                f"Location {location} is in the directory of another namespace's tables: choose one below the location"
                " of its own namespace, or leave it out"
            )


def _is_warehouse(tx: Tx, key: str) -> bool:
    return any(
        each.location == key and each.claim.kind is LocationKind.WAREHOUSE for each in tx.places.upwards(key, but=0)
    )


def _is_base(tx: Tx, key: str, *, namespace_id: int) -> bool:
    """Return whether the default directory of a namespace lies directly in a location, which a namespace around it
    has set.
    """
    node = tx.nodes.live(namespace_id)
    node = None if node is None or node.kind is not Kind.NAMESPACE else tx.nodes.live(node.parent_id)
    while node is not None and node.kind is Kind.NAMESPACE:
        location = cast("NamespaceRecord", node.record).properties.get(LOCATION)
        if location:
            return place_key(location) == key
        node = tx.nodes.live(node.parent_id)
    return False


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
    normal_location = normalise(location) if is_local(location) else location.rstrip("/")
    return replace(after, properties={**after.properties, LOCATION: normal_location})
