# SPDX-License-Identifier: Apache-2.0
"""Access explanations: the decision that a request would get, its reasons, and the grants that would change it.

Everyone may explain their own access. Explaining others' access needs MANAGE_GRANTS on the object or one of its
ancestors.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from limnos.access.actions import Action, require_kind
from limnos.access.explain import suggest
from limnos.access.restrictions import find_inherited_denial
from limnos.access.subjects import principal_of
from limnos.model.decisions import ABSENT_ID, ChainLink, Decision, DecisionFactor, SecurableChain, display_names
from limnos.model.errors import BadRequest, NotFound
from limnos.model.kinds import Kind, ZoneKind
from limnos.model.privileges import escape_percent
from limnos.services.lookup.definer_rights import DEFINER_ACTIONS, LoadTarget, ViewChain, explain_through
from limnos.services.lookup.securables import role_find
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import is_sourced
from limnos.view.cache_miss import require_fact
from limnos.view.keys import name_key, restrictions_key


async def access_explain(
    ctx: Context,
    *,
    metalake: str,
    user: str | None,
    action: Action,
    kind: Kind | None,
    path: tuple[str, ...],
    through: ViewChain = (),
) -> tuple[Decision, list[str]]:
    """Explain the access decision on an action on an object, for the caller or another user.

    A missing object is explained as one without grants of its own. For a caller who may know that it is missing, the
    advice contains only this fact.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        user: The user; None for the caller.
        action: The action to explain.
        kind: The kind of the object; None for the first kind, in the order of `Kind`, that the action and the path's
            length allow.
        path: The path below the metalake, the catalog first.
        through: The views through which the object is read, the outermost first.

    Returns:
        The decision, and advice.

    Raises:
        PermissionDenied: The caller may not explain another user's access.
        BadRequest: The action, kind and path do not fit together.
    """
    expected = kind or _kind_for(action, path, metalake)
    require_kind(action, expected)
    require_path(expected, path, metalake=metalake)
    if through and action not in DEFINER_ACTIONS:
        raise BadRequest(f"Definer's rights of views cover only {' and '.join(DEFINER_ACTIONS)}, not {action.word}")

    def read(request_view: RequestView) -> tuple[Decision, list[str]]:
        # Refuses a caller who is not a user of the metalake.
        request_view.require(Action.METALAKE_LOAD, request_view.settled.outer[-1:])
        chain = chain_to(request_view, expected, path=path)
        if user is not None and user != request_view.user:
            request_view.require(Action.EXPLAIN_OTHERS, chain)
        decision = _unless_disabled(request_view, request_view.decide_for(user or request_view.user, action, chain))
        if through and not decision.allowed and not is_disabled(request_view, decision.user):
            decision = explain_through(request_view, LoadTarget(expected, path[1:], action, action), through, decision)
        advice = absence_notes(request_view, chain, actions=(action, Action.EXPLAIN_OTHERS)) or [
            *suggest(decision),
            *_ends(request_view, decision),
        ]
        return decision, [*_visible_part(request_view, decision, chain=chain), *advice]

    return await ctx.read(await scope_of(ctx, metalake, kind=expected, path=path), read)


async def scope_of(ctx: Context, metalake: str, *, kind: Kind, path: tuple[str, ...]) -> RequestScope:
    """Return the scope of an object: its catalog if that exists, else the metalake. Raises NotFound for a missing
    metalake.
    """
    is_in_tree = bool(path) and _is_in_tree(kind)
    has_catalog = is_in_tree and await ctx.read(
        RequestScope(metalake), lambda request_view: _has_catalog(request_view, path[0])
    )
    return RequestScope(metalake, path[0] if has_catalog else None)


def is_disabled(request_view: RequestView, user: str) -> bool:
    """Return whether a user of the metalake is disabled: every request of theirs is refused."""
    principal = principal_of(request_view.view, request_view.metalake.id, Kind.USER, user)
    return principal is not None and not principal.enabled


def _unless_disabled(request_view: RequestView, decision: Decision) -> Decision:
    """Return a decision, or the refusal of a disabled user, with what else is missing."""
    if not is_disabled(request_view, decision.user):
        return decision
    metalake = request_view.metalake
    disabled = DecisionFactor(
        kind="disabled", object_id=metalake.id, object_kind=Kind.METALAKE.word, object_name=metalake.name
    )
    missing = () if decision.allowed else decision.factors
    return msgspec.structs.replace(decision, allowed=False, factors=(disabled, *missing))


def _is_in_tree(kind: Kind) -> bool:
    return kind is Kind.CATALOG or kind.home is ZoneKind.CATALOG


def _has_catalog(request_view: RequestView, name: str) -> bool:
    return (
        require_fact(
            request_view.view, name_key(request_view.metalake.id, "catalog", name), zone=request_view.metalake.id
        )
        is not None
    )


def _kind_for(action: Action, path: tuple[str, ...], metalake: str) -> Kind:
    """Return the first kind, in the order of `Kind`, that the action applies to and that may have a path of this
    length.
    """
    if not path:
        return Kind.METALAKE
    if len(path) == 1:
        return _kind_of_name(action, path[0], metalake)
    fitting = [kind for kind in sorted(action.kinds) if kind.home is ZoneKind.CATALOG]
    return fitting[0] if fitting else Kind.NAMESPACE


def _kind_of_name(action: Action, name: str, metalake: str) -> Kind:
    """Return the kind of object that a single name refers to: a catalog, else a role, user or other kind that the
    action applies to.
    """
    if Kind.CATALOG in action.kinds:
        return Kind.CATALOG
    metalake_kinds = [kind for kind in sorted(action.kinds) if kind.home is ZoneKind.METALAKE]
    if metalake_kinds:
        return next((kind for kind in metalake_kinds if action.word.startswith(kind.word)), metalake_kinds[0])
    return Kind.METALAKE if Kind.METALAKE in action.kinds and name == metalake else Kind.CATALOG


def require_path(kind: Kind, path: tuple[str, ...], *, metalake: str) -> None:
    """Raise BadRequest for a path that cannot name an object of the kind, such as one that is too short."""
    if kind is Kind.METALAKE and path not in {(), (metalake,)}:
        raise BadRequest(f"The object is the metalake {metalake}: leave the path out")
    if kind is Kind.METALAKE or _is_in_tree(kind) or len(path) == 1:
        return
    raise BadRequest(f"A {kind.word.replace('_', ' ')} is in the metalake itself: give only its name")


def chain_to(request_view: RequestView, kind: Kind, *, path: tuple[str, ...]) -> SecurableChain:
    """Return the object at a path that begins with the catalog's name, with its ancestors. A missing object is an
    absent link (`ChainLink.absent`).
    """
    if kind is Kind.METALAKE:
        return request_view.settled.outer[-1:]
    if not _is_in_tree(kind):
        return _chain_beside(request_view, kind, path[0])
    outer, levels = request_view.settled.outer, path[1:]
    if path and request_view.settled.catalog is None:
        outer = (ChainLink.absent(Kind.CATALOG, path[0]), *outer)
        namespaces = [ChainLink.absent(Kind.NAMESPACE, name) for name in reversed(levels[:-1])]
        return (ChainLink.absent(kind, levels[-1]), *namespaces, *outer) if levels else outer
    if not levels:
        return outer
    node, chain = request_view.find(levels, kind)
    return chain if node is not None else (ChainLink.absent(kind, levels[-1]), *chain)


def _chain_beside(request_view: RequestView, kind: Kind, name: str) -> SecurableChain:
    """Return a metalake object (a role, user, group or tag) with its ancestors."""
    outer = request_view.settled.outer[-1:]
    if kind.is_node:
        node, chain = request_view.find_outside(kind, (name,))
        return chain if node is not None else (ChainLink.absent(kind, name), *outer)
    if kind is Kind.JOB:
        return (ChainLink.absent(kind, name), *outer)  # the view has no runs: explain a run without an owner
    entity = (
        role_find(request_view, name)
        if kind is Kind.ROLE
        else principal_of(request_view.view, request_view.metalake.id, kind, name)
    )
    return (ChainLink.absent(kind, name) if entity is None else ChainLink(entity.id, kind, name), *outer)


def _ends(request_view: RequestView, decision: Decision) -> list[str]:
    """Return advice about the denials of a refusal that objects took over from former objects of their paths."""
    if decision.allowed or request_view.settled.catalog is None:
        return []
    by_object = require_fact(request_view.view, restrictions_key(request_view.zone), zone=request_view.zone).by_object
    return [
        escape_percent(
            f"The denial on {factor.object_kind} {factor.object_name} is that of a former object of its path: it ends"
            f" with the restriction '{name}'."
        )
        for factor in decision.factors
        if (name := find_inherited_denial(factor, by_object)) is not None
    ]


def _visible_part(request_view: RequestView, decision: Decision, *, chain: SecurableChain) -> list[str]:
    """Return sentences on the rows that a user may read although restrictions forbid the table's files, and on the
    privileges; empty if anything else forbids the access.
    """
    names = [factor.privilege for factor in decision.factors if factor.kind == "restricted"]
    if decision.allowed or len(names) < len(decision.factors) or chain[0].kind not in Action.TABLE_SCAN.kinds:
        return []
    scan = request_view.decide_for(decision.user, Action.TABLE_SCAN, chain)
    if not scan.allowed:
        return []
    return [
        escape_percent(
            f"Restricted: reads are planned by the server. {decision.user} reads the rows and columns that restriction"
            f" {' and '.join(map(str, names))} leaves, with 'limnos head' and engines that let the server plan their"
            " scans; SQL++ does not."
        ),
        scan.message(),
    ]


def absence_notes(request_view: RequestView, chain: SecurableChain, *, actions: Iterable[Action]) -> list[str]:
    """Return a note that names the outermost missing object of `chain`; empty if the caller may not know that it is
    missing, which takes the right to one of the actions.
    """
    absent_positions = _absent(request_view, chain, actions=actions)
    if absent_positions is None:
        return []
    kind, name = absent_positions
    return [escape_percent(f"There is no {kind.word.replace('_', ' ')} {name}: check the spelling of the path.")]


def require_present(request_view: RequestView, chain: SecurableChain, *, actions: Iterable[Action]) -> None:
    """Raise NotFound with the outermost missing object of `chain`, for a caller who may know that it is missing, which
    takes the right to one of the actions.
    """
    absent_positions = _absent(request_view, chain, actions=actions)
    if absent_positions is not None:
        kind, name = absent_positions
        word = kind.word.replace("_", " ").capitalize()
        raise NotFound(escape_percent(f"{word} does not exist: {name}"), kind=kind.word)


def _absent(request_view: RequestView, chain: SecurableChain, *, actions: Iterable[Action]) -> tuple[Kind, str] | None:
    """Return the outermost missing object of `chain`; None if the caller may not know that it is missing."""
    if is_sourced(request_view):
        return None  # the existence of external objects is not checked
    absent_positions = [position for position, link in enumerate(chain) if link.id == ABSENT_ID]
    if not absent_positions or not any(
        request_view.decide(each, chain).allowed for each in actions if chain[0].kind in each.kinds
    ):
        return None
    return chain[absent_positions[-1]].kind, display_names(chain)[absent_positions[-1]]
