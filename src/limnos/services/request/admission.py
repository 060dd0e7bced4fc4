"""Admission: whether a caller may have a long body read at all, before it is known what the body says.

May import `model`, `names`, `access` and the scene. Knows no wire format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.prospects import could
from limnos.model.decisions import Link

if TYPE_CHECKING:
    from limnos.access.actions import Action
    from limnos.model.decisions import Chain
    from limnos.model.kinds import Kind
    from limnos.names.path import Levels
    from limnos.services.request.scene import Scene


def require_prospect(scene: Scene, actions: tuple[Action, ...], *, kind: Kind | None = None, name: Levels = ()) -> None:
    """Refuse who could do none of the actions: to the object that is named, or to anything in the scope.

    Raises Forbidden with the words that the first action is refused with, Cold.
    """
    if not scene.rules.access_enabled:
        return
    chain = scene.settled.outer if kind is None else _chain_of(scene, kind, name)
    if any(could(scene.subject, action, chain, scene.owner_of) for action in actions):
        return
    scene.require(actions[0], chain)


def _chain_of(scene: Scene, kind: Kind, name: Levels) -> Chain:
    node, chain = scene.find(name, kind)
    return chain if node is not None else (Link.absent(kind, name[-1]), *chain)
