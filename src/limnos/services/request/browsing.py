"""Browsing: lists of containers name what lies above the objects that the caller may use. Decision record 0132.

May import the rooms below. Knows no wire format. A name in a list is all that this shows: to load the container, or to list what else is in
it, takes the same rights as before.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from limnos.access.actions import Action
from limnos.access.browsing import NO_PATHS, BrowsePaths, browse_paths
from limnos.access.filters import list_filter
from limnos.model.errors import NotFound, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.services.request.multi_catalog_reads import read_many_scopes
from limnos.services.request.request_view import RequestScope, cached_scope
from limnos.view.cache_miss import CacheMiss, require_fact
from limnos.view.keys import listing_key

if TYPE_CHECKING:
    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestView
    from limnos.view.keys import Key

ATTEMPTS_MAX: Final = 20


def paths_of(request_view: RequestView) -> BrowsePaths:
    """Return the containers of the scene's catalog that the caller is shown by name. Raises Cold."""
    if request_view.settled.catalog is None or not request_view.rules.access_enabled:
        return NO_PATHS
    return browse_paths(
        request_view.view,
        request_view.subject,
        outer=request_view.settled.outer,
        narrowed=request_view.active is not None,
    )


def listing_require(request_view: RequestView, parent: Levels) -> None:
    """Decide on listing the namespaces of a catalog, or in one.

    Who may not use the catalog may list where a name is shown because of what lies below. Raises Forbidden.
    """
    outer = request_view.settled.outer
    if not request_view.decide(Action.NAMESPACE_LIST, outer).allowed and _is_browsable(request_view, parent):
        request_view.require(Action.METALAKE_LOAD, outer[-1:])
        return
    request_view.require(Action.NAMESPACE_LIST, outer)


def _is_browsable(request_view: RequestView, parent: Levels) -> bool:
    """Say whether the caller, who may not use the catalog, is shown a namespace of it, or the catalog itself."""
    shown = paths_of(request_view).ids
    if not shown or not parent:
        return bool(shown)
    node, chain = request_view.find(parent, Kind.NAMESPACE)
    return node is not None and (node.id in shown or request_view.decide(Action.NAMESPACE_SEE, chain).allowed)


async def catalog_names(ctx: Context, metalake: str) -> list[str]:
    """Return the names of the catalogs that the caller may use, or that hold something that the caller may use, in order.

    One statement, unless a fact is missing or catalogs have come and gone: what was hidden from the caller the last time is asked about
    together with the metalake. Raises what listing catalogs raises.
    """
    scope = RequestScope(metalake)
    hidden = _hidden_before(ctx, scope)
    for _ in range(ATTEMPTS_MAX):
        if not hidden:
            names, hidden = await ctx.read(scope, _visible_catalogs)
            if not hidden:
                return names
        scopes = (scope, *(RequestScope(metalake, name) for name in hidden))
        try:
            found = await read_many_scopes(ctx, scopes, partial(_names_of, hidden=hidden, key=_key(ctx)))
        except NotFound as missing:
            if missing.kind != "catalog":
                raise
            hidden = ()  # one was dropped, or renamed
            continue
        if found is not None:
            return found
        hidden = ()
    raise ServiceUnavailable("Catalogs came and went faster than they could be listed: try again")


def _key(ctx: Context) -> tuple[object, ...]:
    return ("hidden catalogs", ctx.credential, ctx.active)


def _hidden_before(ctx: Context, scope: RequestScope) -> tuple[str, ...]:
    """Return which catalogs were hidden from the caller the last time: a guess, to be held against what is there now."""
    view = ctx.services.view
    settled = cached_scope(view, scope)
    if settled is None or settled.metalake is None or settled.metalake.id not in view.zones:
        return ()
    found: tuple[str, ...] = view.derived(settled.metalake.id).get(_key(ctx), ())
    return found


def _visible_catalogs(request_view: RequestView) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of catalogs that the caller may use, and of the others."""
    outer = request_view.settled.outer
    request_view.require(Action.CATALOG_LIST, outer)
    request_view.require_in_metalake_use()
    metalake_id = request_view.metalake.id
    found = require_fact(request_view.view, listing_key(metalake_id, "catalog", Kind.CATALOG), zone=metalake_id)
    if not request_view.rules.access_enabled:
        return list(found.names), ()
    shown = list_filter(request_view.subject, Action.CATALOG_LIST, outer, request_view.owner_of)
    names = [found.names[place] for place in shown.positions(found.ids, found.owners)]
    if len(names) == len(found.names):
        return names, ()
    seen = frozenset(names)
    return names, tuple([name for name in found.names if name not in seen])


def _names_of(request_views: tuple[RequestView, ...], *, hidden: tuple[str, ...], key: object) -> list[str] | None:
    """Return all names that are shown; None where other catalogs are hidden now."""
    top, *others = request_views
    names, hidden_now = _visible_catalogs(top)
    if hidden_now != hidden:
        return None
    wanted: dict[Key, int] = {}
    goes_on = False
    for request_view in others:
        try:
            if paths_of(request_view).ids:
                names.append(request_view.catalog.name)
        except CacheMiss as cold:
            wanted |= cold.wanted
            goes_on = goes_on or cold.goes_on
    if wanted:
        raise CacheMiss(wanted, goes_on=goes_on)
    top.view.derived(top.metalake.id)[key] = hidden
    return sorted(names)
