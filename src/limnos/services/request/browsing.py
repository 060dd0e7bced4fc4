# SPDX-License-Identifier: Apache-2.0
"""Browsing: which of many objects a caller may see. A listing includes a container if the caller may use an object
below it. Decision record 0132.

Must not know any wire format. The caller learns the container's name only. Loading the container, or listing its other
objects, still requires the privileges for that.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from limnos.access.actions import Action
from limnos.access.browsing import NO_PATHS, BrowsePaths, browse_paths, require_containers
from limnos.access.decide import is_allowed
from limnos.access.filters import list_filter
from limnos.access.restrictions import RESTRICTED_ACTIONS
from limnos.model.decisions import SecurableChain
from limnos.model.errors import LimnosError, NotFound, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import read_many_scopes
from limnos.services.request.request_scope import RequestScope, ResolvedScope, cached_scope, scope_zones
from limnos.services.request.request_view import RequestView
from limnos.view.cache_miss import CacheMiss, require_fact
from limnos.view.keys import Key, listing_key

ATTEMPTS_MAX: Final = 20


def is_permitted(request_view: RequestView, action: Action, *, chain: SecurableChain) -> bool:
    """Return whether the caller may take an action on the first object of `chain`, for lists and searches.

    It equals `RequestView.decide` without the reasons, whose search among thousands of roles costs a millisecond.
    Cached until the access revision changes. Raises CacheMiss if a fact is not cached.
    """
    is_own = request_view.active is None and request_view.operation_token is None and not request_view.second_user_id
    if not is_own or not request_view.rules.access_enabled or chain[0].id <= 0 or action in RESTRICTED_ACTIONS:
        return request_view.decide(action, chain).allowed
    memo, key = request_view.memo, ("permitted", request_view.user, action, chain[0].id)
    result: bool | None = memo.get(key)
    if result is None:
        try:
            result = is_allowed(request_view.subject, action, chain=chain, owner_of=request_view.owner_of)
        except CacheMiss:
            request_view.want_owners(chain)
            raise
        memo[key] = result
    return result


def paths_of(request_view: RequestView) -> BrowsePaths:
    """Return the containers of the request's catalog that are visible to the caller because of objects below them.

    Raises CacheMiss if a fact is not cached.
    """
    if request_view.settled.catalog is None or not request_view.rules.access_enabled:
        return NO_PATHS
    return browse_paths(
        request_view.view,
        request_view.subject,
        outer=request_view.settled.outer,
        narrowed=request_view.active is not None,
    )


def listing_require(request_view: RequestView, parent: Levels) -> None:
    """Decide on listing the namespaces in `parent`, or in the catalog if `parent` is empty.

    A caller who may not use the catalog may still list a container whose name is visible because of objects below it.
    Raises PermissionDenied otherwise.
    """
    outer = request_view.settled.outer
    if not request_view.decide(Action.NAMESPACE_LIST, outer).allowed and _is_browsable(request_view, parent):
        request_view.require(Action.METALAKE_LOAD, outer[-1:])
        return
    request_view.require(Action.NAMESPACE_LIST, outer)


def may_list_namespaces(request_view: RequestView, parent: Levels) -> bool:
    """Return whether `listing_require` would pass, without recording a decision.

    Raises CacheMiss if a fact is not cached.
    """
    outer = request_view.settled.outer
    return request_view.decide(Action.NAMESPACE_LIST, outer).allowed or (
        _is_browsable(request_view, parent) and request_view.decide(Action.METALAKE_LOAD, outer[-1:]).allowed
    )


def _is_browsable(request_view: RequestView, parent: Levels) -> bool:
    """Return whether a caller who may not use the catalog sees the name of a namespace, or of the catalog if `parent`
    is empty.
    """
    ids = paths_of(request_view).ids
    if not ids or not parent:
        return bool(ids)
    node, chain = request_view.find(parent, Kind.NAMESPACE)
    return node is not None and (node.id in ids or request_view.decide(Action.NAMESPACE_SEE, chain).allowed)


async def catalog_names(ctx: Context, metalake: str) -> list[str]:
    """Return the names, in order, of the catalogs that the caller may use or that contain an object the caller may use.

    One statement suffices, unless a fact is not cached or catalogs were added or removed: it reads the metalake
    together with the catalogs that were hidden from the caller at the previous request. For a caller who lists for the
    first time, a load of two statements comes before it. Raises the errors of listing
    catalogs, and ServiceUnavailable if catalogs change faster than they can be listed.
    """
    scope = RequestScope(metalake)
    hidden_before = _hidden_before(ctx, scope) or await _load_containers(ctx, scope)
    for _ in range(ATTEMPTS_MAX):
        if not hidden_before:
            names, hidden_before = await ctx.read(scope, _visible_catalogs)
            if not hidden_before:
                return names
        scopes = (scope, *(RequestScope(metalake, name) for name in hidden_before))
        try:
            many_scopes = await read_many_scopes(ctx, scopes, partial(_names_of, hidden=hidden_before, key=_key(ctx)))
        except NotFound as missing:
            if missing.kind != "catalog":
                raise
            hidden_before = ()  # a catalog was dropped or renamed
            continue
        if many_scopes is not None:
            return many_scopes
        hidden_before = ()
    raise ServiceUnavailable("The catalogs changed too often during the request: try again")


def _key(ctx: Context) -> tuple[object, ...]:
    return ("hidden catalogs", ctx.credential, ctx.active)


def _hidden_before(ctx: Context, scope: RequestScope) -> tuple[str, ...]:
    """Return the catalogs that were hidden from the caller at the previous request.

    The result may be outdated: `_names_of` compares it with the current list.
    """
    view = ctx.services.view
    resolved_scope = cached_scope(view, scope)
    if resolved_scope is None or resolved_scope.metalake is None or resolved_scope.metalake.id not in view.zones:
        return ()
    path: tuple[str, ...] = view.derived_values(resolved_scope.metalake.id).get(_key(ctx), ())
    return path


async def _load_containers(ctx: Context, scope: RequestScope) -> tuple[str, ...]:
    """Load what a list of catalogs needs: the caller with groups and roles, unless they are known, then the catalogs
    and the objects of the caller. Return the catalogs hidden from the caller.

    It decides nothing: `_names_of` compares the result with the current list.
    """
    gate, view = ctx.services.gate, ctx.services.view
    zones = scope_zones(view, scope)
    if len(zones) == 1 or zones[-1] not in view.zones or not _is_caller_known(ctx, scope):
        await ctx.read(scope, lambda request_view: request_view.subject)
    try:
        top = _view_of(ctx, scope)
        metalake_id, access = top.metalake.id, top.rules.access_enabled
        if not access or not view.is_paired(top.settled.zones):
            return ()
        require_containers(view, top.subject, metalake_id=metalake_id, narrowed=top.active is not None)
    except CacheMiss as cold:
        if not any(key[0] == "containers" for key in cold.missing_keys):
            return ()
        cached = [each for each in view.scopes.values() if isinstance(each, ResolvedScope)]
        catalog_zones = [each.zones for each in cached if each.catalog is not None and each.zones[1] == metalake_id]
        await gate.fetch_together((top.settled.zones, *catalog_zones), cold.missing_keys)
    except LimnosError:
        return ()  # the read below refuses
    try:
        return _visible_catalogs(_view_of(ctx, scope))[1]
    except (CacheMiss, LimnosError):
        return ()


def _view_of(ctx: Context, scope: RequestScope) -> RequestView:
    return RequestView(ctx.services, scope, ctx.credential, ctx.request_id, active=ctx.active)


def _is_caller_known(ctx: Context, scope: RequestScope) -> bool:
    """Return whether the caller's groups and roles are cached, at whatever revision."""
    try:
        return _view_of(ctx, scope).subject.member
    except CacheMiss:
        return False
    except LimnosError:
        return True  # it is refused below


def _visible_catalogs(request_view: RequestView) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of the catalogs that the caller may use, and the names of the other catalogs, in which the
    caller may use single objects.
    """
    outer = request_view.settled.outer
    request_view.require(Action.CATALOG_LIST, outer)
    request_view.require_in_metalake_use()
    metalake_id = request_view.metalake.id
    fact = require_fact(request_view.view, listing_key(metalake_id, "catalog", Kind.CATALOG), zone=metalake_id)
    if not request_view.rules.access_enabled:
        return list(fact.names), ()
    output = list_filter(request_view.subject, Action.CATALOG_LIST, outer, request_view.owner_of)
    names = [fact.names[position] for position in output.positions(fact.ids, fact.owners)]
    if len(names) == len(fact.names):
        return names, ()
    visible_names = frozenset(names)
    return names, tuple([name for name in fact.names if name not in visible_names])


def _names_of(request_views: tuple[RequestView, ...], *, hidden: tuple[str, ...], key: object) -> list[str] | None:
    """Return all names that the caller sees; None if the set of hidden catalogs has changed since `hidden`."""
    top, *others = request_views
    names, hidden_now = _visible_catalogs(top)
    if hidden_now != hidden:
        return None
    requested: dict[Key, int] = {}
    goes_on = False
    for request_view in others:
        try:
            if paths_of(request_view).ids:
                names.append(request_view.catalog.name)
        except CacheMiss as cold:
            requested |= cold.missing_keys
            goes_on = goes_on or cold.goes_on
    if requested:
        raise CacheMiss(requested, goes_on=goes_on)
    top.view.derived_values(top.metalake.id)[key] = hidden
    return sorted(names)
