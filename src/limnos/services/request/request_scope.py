# SPDX-License-Identifier: Apache-2.0
"""Request scope: the server, a metalake or a catalog that a request names, and its resolution to ids and zones.

Synchronous. The view caches resolved scopes until their metalake or catalog changes.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import NotFound
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.records import CatalogRecord, MetalakeRecord
from limnos.services.request.catalog_traits import CatalogTraits, traits_of
from limnos.view.cache_miss import CacheMiss
from limnos.view.keys import ABSENT, name_key, node_key, path_key
from limnos.view.view import StoreView


class RequestScope(NamedTuple):
    """The scope of a request: the server (both None), a metalake, or one of its catalogs."""

    metalake: str | None = None
    catalog: str | None = None


class ResolvedScope(NamedTuple):
    """A resolved scope: its nodes, its zones in lock order, and the ancestors of its objects."""

    metalake: Node | None
    catalog: Node | None
    zones: tuple[int, ...]
    outer: SecurableChain
    in_use: bool = False
    """Whether the metalake and the catalog, if named, are in use, so that no further check is needed."""
    traits: CatalogTraits | None = None
    """The catalog's traits; None if no catalog is named or it does not exist."""


SERVER_SCOPE = ResolvedScope(metalake=None, catalog=None, zones=(ROOT_ID,), outer=())


def cached_scope(view: StoreView, scope: RequestScope) -> ResolvedScope | None:
    """Return the cached resolution of a scope; None if its metalake or catalog has changed since, or the scope was
    never resolved.
    """
    resolved_scope: ResolvedScope | None = view.scopes.get(scope)
    return resolved_scope


def scope_zones(view: StoreView, scope: RequestScope) -> tuple[int, ...]:
    """Return the zones of a scope (server, metalake, catalog) as far as they are cached.

    Fewer than three if the scope names no catalog, or a name is not cached or does not exist.
    """
    resolved_scope: ResolvedScope | None = view.scopes.get(scope)  # inlines `cached_scope`: every request runs this
    if resolved_scope is not None:
        return resolved_scope.zones
    if scope.metalake is None:
        return SERVER_SCOPE.zones
    metalake_id = view.get(name_key(ROOT_ID, "metalake", scope.metalake))
    if not isinstance(metalake_id, int):
        return (ROOT_ID,)
    catalog_id = ABSENT if scope.catalog is None else view.get(name_key(metalake_id, "catalog", scope.catalog))
    return (ROOT_ID, metalake_id, catalog_id) if isinstance(catalog_id, int) else (ROOT_ID, metalake_id)


def resolve_scope(view: StoreView, scope: RequestScope) -> ResolvedScope:
    """Resolve the metalake and catalog of a request to their ids and zones.

    Raises NotFound if one of them does not exist, CacheMiss if a fact is not cached.
    """
    resolved_scope = cached_scope(view, scope)
    if resolved_scope is not None:
        return resolved_scope
    if scope.metalake is None:
        return SERVER_SCOPE
    metalake = find_child(view, ROOT_ID, "metalake", scope.metalake, zone=ROOT_ID)
    if metalake is None:
        raise NotFound(f"Metalake {scope.metalake} does not exist", kind="metalake")
    link = ChainLink(metalake.id, Kind.METALAKE, metalake.name)
    in_use = cast("MetalakeRecord", metalake.record).in_use
    resolved_scope = ResolvedScope(
        metalake=metalake, catalog=None, zones=(ROOT_ID, metalake.id), outer=(link,), in_use=in_use
    )
    if scope.catalog is not None:
        catalog = find_child(view, metalake.id, "catalog", scope.catalog, zone=metalake.id)
        if catalog is None:
            raise NotFound(f"Catalog {scope.catalog} does not exist in metalake {scope.metalake}", kind="catalog")
        outer = (ChainLink(catalog.id, Kind.CATALOG, catalog.name), link)
        traits = traits_of(cast("CatalogRecord", catalog.record))
        in_use = in_use and traits.record.in_use
        resolved_scope = ResolvedScope(
            metalake=metalake,
            catalog=catalog,
            zones=(ROOT_ID, metalake.id, catalog.id),
            outer=outer,
            in_use=in_use,
            traits=traits,
        )
    view.scopes[scope] = resolved_scope
    return resolved_scope


def find_child(view: StoreView, parent_id: int, space: str, name: str, *, zone: int) -> Node | None:
    """Return the child of a parent with a name; None if it does not exist. Raises CacheMiss if that is not cached."""
    node_id = view.get(name_key(parent_id, space, name))
    if node_id is None:
        return None
    node = ABSENT if node_id is ABSENT else view.get(node_key(node_id))
    if node is ABSENT:
        raise CacheMiss({path_key(parent_id, ((space, name),)): zone})
    return node
