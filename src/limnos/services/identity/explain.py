"""Why may, or may not, somebody do something: the decision a request would get, and what would change it.

May import the rooms below. Self-explain is free; explaining others needs MANAGE_GRANTS on the object or above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.actions import Action, require_kind
from limnos.access.explain import suggest
from limnos.access.subjects import principal_of
from limnos.model.decisions import ABSENT_ID, Decision, Link, display_names
from limnos.model.errors import BadRequest
from limnos.model.kinds import Home, Kind
from limnos.model.privileges import shown
from limnos.services.lookup.lending import LENT, Thing, explain_through
from limnos.services.lookup.objects import role_find
from limnos.services.request.scene import Scope
from limnos.services.request.table_formats import is_sourced
from limnos.view.cold import need
from limnos.view.keys import name_key

if TYPE_CHECKING:
    from limnos.model.decisions import Chain
    from limnos.services.lookup.lending import Through
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene


async def access_explain(
    ctx: Context, *, metalake: str, user: str | None, action: Action, kind: Kind | None, path: tuple[str, ...],
    through: Through = (),
) -> tuple[Decision, list[str]]:  # fmt: skip
    """Explain an action on a path below the metalake (catalog first), for the caller or another user.

    An object that does not exist is explained as one without grants of its own; a caller who may know that it is
    missing is told so instead of being advised to grant something on it. Raises Forbidden, BadRequest.
    """
    wanted = kind or _kind_for(action, path, metalake)
    _require_fit(action, wanted, path, metalake)
    if through and action not in LENT:
        raise BadRequest(f"Views lend {' and '.join(LENT)} alone, not {action.word}")

    def read(scene: Scene) -> tuple[Decision, list[str]]:
        scene.require(Action.METALAKE_LOAD, scene.settled.outer[-1:])  # a stranger learns that much, and no more
        chain = _chain(scene, wanted, path)
        if user is not None and user != scene.user:
            scene.require(Action.EXPLAIN_OTHERS, chain)
        decision = scene.decide_for(user or scene.user, action, chain)
        if through and not decision.allowed:
            decision = explain_through(scene, Thing(wanted, path[1:], action, action), through, decision)
        return decision, _missing(scene, action, chain) or suggest(decision)

    named = bool(path) and _is_in_tree(wanted)
    known = named and await ctx.read(Scope(metalake), lambda scene: _has_catalog(scene, path[0]))
    return await ctx.read(Scope(metalake, path[0] if known else None), read)


def _is_in_tree(kind: Kind) -> bool:
    return kind is Kind.CATALOG or kind.home is Home.CATALOG


def _has_catalog(scene: Scene, name: str) -> bool:
    return need(scene.view, name_key(scene.metalake.id, "catalog", name), zone=scene.metalake.id) is not None


def _kind_for(action: Action, path: tuple[str, ...], metalake: str) -> Kind:
    """Tell the kind that a path of this length means: what the action is done to, the innermost first."""
    if not path:
        return Kind.METALAKE
    if len(path) == 1:
        return _kind_of_name(action, path[0], metalake)
    fitting = [kind for kind in sorted(action.kinds) if kind.home is Home.CATALOG]
    return fitting[0] if fitting else Kind.NAMESPACE


def _kind_of_name(action: Action, name: str, metalake: str) -> Kind:
    """Tell what a single name means: a catalog's, or else a role's or user's, or whatever the action is done to."""
    if Kind.CATALOG in action.kinds:
        return Kind.CATALOG
    beside = [kind for kind in sorted(action.kinds) if kind.home is Home.METALAKE]
    if beside:
        return next((kind for kind in beside if action.word.startswith(kind.word)), beside[0])
    return Kind.METALAKE if Kind.METALAKE in action.kinds and name == metalake else Kind.CATALOG


def _require_fit(action: Action, kind: Kind, path: tuple[str, ...], metalake: str) -> None:
    """Refuse a kind the action is not done to, and a path that no object of the kind has. Raises BadRequest."""
    require_kind(action, kind)
    if kind is Kind.METALAKE and path not in {(), (metalake,)}:
        raise BadRequest(f"Action {action.word} is done to the metalake {metalake}: leave the path out")
    if kind is Kind.METALAKE or _is_in_tree(kind) or len(path) == 1:
        return
    raise BadRequest(f"A {kind.word.replace('_', ' ')} lies in the metalake itself: give its name alone")


def _chain(scene: Scene, kind: Kind, path: tuple[str, ...]) -> Chain:
    """Return the chain of a path, its first name being the catalog's; what does not exist is absent in it."""
    if kind is Kind.METALAKE:
        return scene.settled.outer[-1:]
    if not _is_in_tree(kind):
        return _chain_beside(scene, kind, path[0])
    outer, levels = scene.settled.outer, path[1:]
    if path and scene.settled.catalog is None:
        outer = (Link.absent(Kind.CATALOG, path[0]), *outer)
        namespaces = [Link.absent(Kind.NAMESPACE, name) for name in reversed(levels[:-1])]
        return (Link.absent(kind, levels[-1]), *namespaces, *outer) if levels else outer
    if not levels:
        return outer
    node, chain = scene.find(levels, kind)
    return chain if node is not None else (Link.absent(kind, levels[-1]), *chain)


def _chain_beside(scene: Scene, kind: Kind, name: str) -> Chain:
    """Return the chain of what lies in the metalake beside the tree: a role, a user, a group, a tag."""
    outer = scene.settled.outer[-1:]
    if kind.is_node:
        node, chain = scene.find_outside(kind, (name,))
        return chain if node is not None else (Link.absent(kind, name), *outer)
    if kind is Kind.JOB:
        return (Link.absent(kind, name), *outer)  # runs are in no view: what anybody could do to one that is nobody's
    entity = role_find(scene, name) if kind is Kind.ROLE else principal_of(scene.view, scene.metalake.id, kind, name)
    return (Link.absent(kind, name) if entity is None else Link(entity.id, kind, name), *outer)


def _missing(scene: Scene, action: Action, chain: Chain) -> list[str]:
    """Say which object of the chain does not exist, the outermost one, to a caller who may know it."""
    if is_sourced(scene):
        return []  # what another system has is not known here
    absent = [position for position, link in enumerate(chain) if link.id == ABSENT_ID]
    asked = (action, Action.EXPLAIN_OTHERS)
    if not absent or not any(scene.decide(each, chain).allowed for each in asked if chain[0].kind in each.kinds):
        return []
    kind, name = chain[absent[-1]].kind, display_names(chain)[absent[-1]]
    return [shown(f"There is no {kind.word.replace('_', ' ')} {name}: look at the spelling of the path.")]
