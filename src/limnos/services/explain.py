"""Why may, or may not, somebody do something: the decision a request would get, and what would change it.

May import the rooms below. Self-explain is free; explaining others needs MANAGE_GRANTS on the object or above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.actions import Action, require_kind
from limnos.access.explain import suggest
from limnos.model.decisions import Decision, Link
from limnos.model.kinds import Home, Kind
from limnos.services.scene import Scope
from limnos.view.cold import need
from limnos.view.facts import name_key

if TYPE_CHECKING:
    from limnos.model.decisions import Chain
    from limnos.services.context import Context
    from limnos.services.scene import Scene


async def access_explain(
    ctx: Context, *, metalake: str, user: str | None, action: Action, kind: Kind | None, path: tuple[str, ...]
) -> tuple[Decision, list[str]]:
    """Explain an action on a path below the metalake (catalog first), for the caller or another user.

    An object that does not exist is explained as one without grants of its own. Raises Forbidden, BadRequest.
    """
    wanted = kind or _kind_for(action, path)
    require_kind(action, wanted)

    def read(scene: Scene) -> tuple[Decision, list[str]]:
        scene.require(Action.METALAKE_LOAD, scene.place.outer[-1:])  # a stranger learns that much, and no more
        chain = _chain(scene, wanted, path)
        if user is not None and user != scene.user:
            scene.require(Action.EXPLAIN_OTHERS, chain)
        decision = scene.decide_for(user or scene.user, action, chain)
        return decision, suggest(decision)

    known = bool(path) and await ctx.read(Scope(metalake), lambda scene: _has_catalog(scene, path[0]))
    return await ctx.read(Scope(metalake, path[0] if known else None), read)


def _has_catalog(scene: Scene, name: str) -> bool:
    return need(scene.view, name_key(scene.metalake.id, "catalog", name), zone=scene.metalake.id) is not None


def _kind_for(action: Action, path: tuple[str, ...]) -> Kind:
    """Guess the kind that a path of this length means: what the action is done to, the innermost first."""
    if not path:
        return Kind.METALAKE
    if len(path) == 1:
        return Kind.CATALOG
    fitting = [kind for kind in sorted(action.kinds) if kind.home is Home.CATALOG]
    return fitting[0] if fitting else Kind.NAMESPACE


def _chain(scene: Scene, kind: Kind, path: tuple[str, ...]) -> Chain:
    """Return the chain of a path, its first name being the catalog's; what does not exist is absent in it."""
    outer, levels = scene.place.outer, path[1:]
    if path and scene.place.catalog is None:
        outer = (Link.absent(Kind.CATALOG, path[0]), *outer)
        namespaces = [Link.absent(Kind.NAMESPACE, name) for name in reversed(levels[:-1])]
        return (Link.absent(kind, levels[-1]), *namespaces, *outer) if levels else outer
    if not levels:
        return outer
    node, chain = scene.find(levels, kind)
    return chain if node is not None else (Link.absent(kind, levels[-1]), *chain)
