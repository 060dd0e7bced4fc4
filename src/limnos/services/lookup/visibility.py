# SPDX-License-Identifier: Apache-2.0
"""Visibility: selects the objects visible to a caller from ids of objects in any catalogs of a metalake.

An object is visible to a caller who may load it. For a hidden object the caller only learns that it exists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.model.decisions import ChainLink, SecurableChain, path_of
from limnos.model.errors import NotFound, PermissionDenied, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.model.records import MetalakeRecord
from limnos.names.path import Levels
from limnos.services.lookup.change_publishing import ChangesOutdated
from limnos.services.request.browsing import is_permitted
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import read_many_scopes
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.feed import NodePosition, zones_read
from limnos.view.cache_miss import CacheMiss, for_each, require_fact
from limnos.view.keys import ABSENT, document_key, listing_key, node_key, nodes_key

ATTEMPTS_MAX: Final = 20


class UsableCatalogs(NamedTuple):
    """A metalake with its properties, and those of its catalogs that the caller may use, by id."""

    metalake_id: int
    catalogs: dict[int, str]
    properties: Mapping[str, str] = MappingProxyType({})


class VisibleObject(NamedTuple):
    """An object visible to the caller: its kind, its path from the catalog down, and its metadata document."""

    kind: Kind
    path: tuple[str, ...]
    body: bytes | None = None
    """Its document, if requested."""
    is_restricted: bool = False
    """Whether read restrictions keep the caller from loading the table, so that only its current columns are visible.

    It is False if the document was not requested.
    """


VisibleObjects = dict[int, VisibleObject | None]
"""Objects by id: None for an existing object that is hidden. A missing object has no entry."""


def usable_catalogs_of(request_view: RequestView) -> UsableCatalogs:
    """Return the scope's metalake and its usable catalogs, for a user of that metalake.

    Raises PermissionDenied if the caller is not a user of it, NotInUse if it is disabled.
    """
    outer = request_view.settled.outer[-1:]
    request_view.require(Action.METALAKE_LOAD, outer)
    request_view.require_in_metalake_use()
    metalake_id = request_view.metalake.id
    fact = require_fact(request_view.view, listing_key(metalake_id, "catalog", Kind.CATALOG), zone=metalake_id)
    positions: Iterable[int] = range(len(fact.ids))
    if request_view.rules.access_enabled:
        positions = list_filter(request_view.subject, Action.CATALOG_LIST, outer, request_view.owner_of).positions(
            fact.ids, fact.owners
        )
    properties = cast("MetalakeRecord", request_view.metalake.record).properties
    return UsableCatalogs(metalake_id, {fact.ids[at]: fact.names[at] for at in positions}, properties)


def require_nodes_cached(request_view: RequestView, ids: Iterable[int]) -> None:
    """Raise one CacheMiss for all nodes of the request's catalog that the view lacks, so that one statement reads
    them.
    """
    missing = [node_id for node_id in ids if request_view.view.get(node_key(node_id)) is ABSENT]
    if missing:
        raise CacheMiss({nodes_key(request_view.zone, tuple(sorted(missing))): request_view.zone})


def chain_of(request_view: RequestView, node_id: int) -> SecurableChain | None:
    """Return a node of the request's catalog with its ancestors; None if it does not exist."""
    links: list[ChainLink] = []
    at = node_id
    while at != request_view.catalog.id:
        node = request_view.view.get(node_key(at))
        if node is ABSENT:
            raise CacheMiss({nodes_key(request_view.zone, (at,)): request_view.zone})
        if node is None:
            return None
        links.append(ChainLink(at, node.kind, node.name))
        at = node.parent_id
    return (*links, *request_view.settled.outer)


def catalogs_of(ids: Iterable[int], node_positions: Mapping[int, NodePosition], *, metalake_id: int) -> dict[int, int]:
    """Return the catalog id of each live node of a metalake, by node id. Nodes with a dropped ancestor are omitted."""
    results: dict[int, int] = {}
    for node_id in ids:
        at, node_position = node_id, node_positions.get(node_id)
        zone = 0 if node_position is None else node_position.zone
        while node_position is not None and node_position.alive and at != metalake_id:
            at, node_position = node_position.parent_id, node_positions.get(node_position.parent_id)
        if node_position is not None and node_position.alive and at == metalake_id and zone in node_positions:
            results[node_id] = zone
    return results


async def visible_objects_of(
    ctx: Context, metalake: str, *, ids: Collection[int], with_documents: Callable[[int], bool] = lambda _: False
) -> VisibleObjects:
    """Return the objects among `ids` that are visible to the caller, all at one moment after this call.

    `with_documents` selects the tables whose documents are read, by id. Raises NotInUse if the metalake is disabled,
    PermissionDenied if the caller is not a user of it, and ServiceUnavailable if objects move faster than they can be
    read.
    """
    for _ in range(ATTEMPTS_MAX):
        home = await ctx.read(RequestScope(metalake), usable_catalogs_of)
        node_positions = await ctx.look_up(partial(zones_read, ids))
        homes = catalogs_of(ids, node_positions, metalake_id=home.metalake_id)
        by_catalog: dict[int, list[int]] = {}
        for node_id, zone in homes.items():
            if zone in home.catalogs:
                by_catalog.setdefault(zone, []).append(node_id)
        scopes = tuple(RequestScope(metalake, home.catalogs[zone]) for zone in by_catalog)
        try:
            visible_objects = await read_many_scopes(
                ctx, scopes, partial(_visible_objects, by_catalog=by_catalog, with_documents=with_documents)
            )
        except (NotFound, PermissionDenied, ChangesOutdated):
            continue  # a catalog was dropped or renamed, or the caller may no longer use it
        hidden_objects: VisibleObjects = {node_id: None for node_id, zone in homes.items() if zone not in home.catalogs}
        return hidden_objects | visible_objects
    raise ServiceUnavailable("The requested objects were moved too often during the request: try again")


def _visible_objects(
    request_views: tuple[RequestView, ...], *, by_catalog: dict[int, list[int]], with_documents: Callable[[int], bool]
) -> VisibleObjects:
    pairs = zip(request_views, by_catalog.items(), strict=True)
    objects: VisibleObjects = {}
    for part in for_each(
        pairs, lambda pair: _visible_in_catalog(pair[0], pair[1][0], ids=pair[1][1], with_documents=with_documents)
    ):
        objects |= part
    return objects


def _visible_in_catalog(
    request_view: RequestView, catalog_id: int, *, ids: list[int], with_documents: Callable[[int], bool]
) -> VisibleObjects:
    if request_view.settled.catalog is None or request_view.catalog.id != catalog_id:
        raise ChangesOutdated
    require_nodes_cached(request_view, ids)
    visible_objects = for_each(
        ids, lambda node_id: visible_object_of(request_view, node_id, with_document=with_documents(node_id))
    )
    return {
        node_id: visible_object
        for node_id, (exists, visible_object) in zip(ids, visible_objects, strict=True)
        if exists
    }


def visible_object_of(
    request_view: RequestView, node_id: int, *, with_document: bool
) -> tuple[bool, VisibleObject | None]:
    """Return whether a node of the request's catalog exists, and the visible object (None if it is hidden or does not
    exist).
    """
    chain = chain_of(request_view, node_id)
    if chain is None:
        return False, None
    if not request_view.settled.in_use or not is_permitted(request_view, Action.METADATA_LOAD, chain=chain):
        return True, None
    if not with_document or chain[0].kind is not Kind.TABLE:
        return True, VisibleObject(chain[0].kind, path_of(chain))
    is_restricted = not request_view.decide(Action.TABLE_LOAD, chain).allowed
    return True, VisibleObject(chain[0].kind, path_of(chain), body_of(request_view, node_id), is_restricted)


def visible_kinds(request_view: RequestView, paths: Sequence[Levels]) -> dict[Levels, Kind]:
    """Return the kinds of the tables and views at some paths below the request's catalog that the caller may see."""

    def kind_of(path: Levels) -> Kind | None:
        node, chain = request_view.find(path, Kind.TABLE)
        is_seen = node is not None and request_view.decide(Action.METADATA_LOAD, chain).allowed
        return node.kind if node is not None and is_seen else None

    if not request_view.settled.in_use:
        return {}
    kinds = zip(paths, for_each(paths, kind_of), strict=True)
    return {path: kind for path, kind in kinds if kind is not None}


def body_of(request_view: RequestView, table_id: int) -> bytes | None:
    """Return a table's Iceberg metadata; None for a table of another format."""
    document = require_fact(request_view.view, document_key(table_id), zone=request_view.zone)
    return None if document is None else document.body
