"""Where a namespace's tables lie: the property `location`, its own or inherited, else a place below the warehouse.

May import `model`, `files` for the spelling of locations, `services.request.places` and the request view. Does no input or output.

What is not given is computed from the namespace's id, and stored nowhere: ids are never used twice and no name is in
them, so a namespace that is renamed or moved leaves its tables where they are, and a successor meets none of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from limnos.files import is_local, normalise
from limnos.model.kinds import Kind
from limnos.services.request.catalog_storage import catalog_storage_of

if TYPE_CHECKING:
    from limnos.model.decisions import SecurableChain
    from limnos.model.entities import Node
    from limnos.model.records import NamespaceRecord
    from limnos.services.request.catalog_storage import CatalogStorage
    from limnos.services.request.request_view import RequestView

LOCATION: Final = "location"


def inherited_location(request_view: RequestView, chain: SecurableChain) -> str | None:
    """Return the location that the nearest of the chain's namespaces has been given, without a slash at the end."""
    for link in chain:
        if link.kind is not Kind.NAMESPACE:
            return None
        location = cast("NamespaceRecord", request_view.node(link.id).record).properties.get(LOCATION)
        if location:
            return location.rstrip("/")
    return None


def namespace_location(namespace: Node, above: str) -> str:
    """Return the location that a namespace answers, below `above` when it has none of its own.

    Clients that choose a table's location choose it below that.
    """
    own = cast("NamespaceRecord", namespace.record).properties.get(LOCATION)
    return own or f"{above}/n{namespace.id}"


def namespace_base_location(request_view: RequestView, chain: SecurableChain) -> str:
    """Return what the homes of namespaces below a chain lie in: a location that was given, else the warehouse."""
    location = inherited_location(request_view, chain)
    if location is not None:
        return location
    place = catalog_storage_of(request_view)
    if place.home is not None and is_local(place.home):
        return place.home  # the warehouse with a scheme, which a plain path lacks
    return place.warehouse


def check_new_location(
    before: NamespaceRecord | None, after: NamespaceRecord, place: CatalogStorage
) -> NamespaceRecord:
    """Check a location that a change brings, and give it a scheme. Raises OutsideRoots, BadRequest."""
    location = after.properties.get(LOCATION)
    if location is None or (before is not None and location == before.properties.get(LOCATION)):
        return after
    place.check(location)
    spelled = normalise(location) if is_local(location) else location.rstrip("/")
    return replace(after, properties={**after.properties, LOCATION: spelled})
