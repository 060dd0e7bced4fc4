"""Another name or namespace for a table or view of an outside system: who may, and what stands for it in the tree follows.

May import the rooms below. Asks no source: whoever calls decides by `moving`, has the source rename, and then lets what stands for the object follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.records import BLANK_NAMESPACE
from limnos.services.federation.objects import above_of
from limnos.services.federation.shadows import seek, steps_of, submit_done

if TYPE_CHECKING:
    from limnos.model.decisions import Decision
    from limnos.model.entities import Node
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.federation.shadows import Sought
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.store.tx import Tx

_MOVES: Final = {
    Kind.TABLE: (Action.TABLE_RENAME, Action.TABLE_MOVE, Action.TABLE_CREATE),
    Kind.VIEW: (Action.VIEW_RENAME, Action.VIEW_MOVE, Action.VIEW_CREATE),
}
"""What another name takes, another namespace, and making something there."""


class Moving(NamedTuple):
    """A table or view that the caller may put elsewhere, and the decisions that say so."""

    sought: Sought
    decisions: tuple[Decision, ...]


def moving(scene: Scene, kind: Kind, *, source: Levels, target: Levels) -> Moving:
    """Decide on another name or schema of a table or view. Raises Forbidden, BadRequest."""
    if min(len(source), len(target)) < 2:
        raise BadRequest(f"A {kind.word} lies in a namespace: name at least two levels")
    stays = source[:-1] == target[:-1]
    rename, move, make = _MOVES[kind]
    sought = seek(scene, kind, path=source, action=rename if stays else move)
    if stays:
        return Moving(sought, (sought.decision,))
    return Moving(sought, (sought.decision, scene.require(make, above_of(scene, target))))


class ShadowMove(msgspec.Struct, frozen=True):
    """Let what stands for an object follow it: kinds, name spaces and names on its new path; without a `node` what stood there goes."""

    node: Node | None
    catalog: Node
    steps: tuple[tuple[Kind, str, str], ...]


def following(scene: Scene, kind: Kind, *, source: Levels, target: Levels) -> tuple[Sought, Permit[ShadowMove]]:
    """Decide on another name or schema, and return the permit to give what stands for the object its new place. Raises as `moving` does."""
    found = moving(scene, kind, source=source, target=target)
    command = ShadowMove(found.sought.node, scene.catalog, steps_of(scene, kind, path=target))
    return found.sought, scene.permit(command, *found.decisions, zone=scene.catalog.id)


async def shadow_followed(ctx: Context, permit: Permit[ShadowMove]) -> None:
    """Give what stands for a table or view that the source has renamed its new place; what stood for a predecessor of that name goes."""
    await submit_done(ctx, permit, mutation=shadow_move)


def shadow_move(tx: Tx, permit: Permit[ShadowMove]) -> None:
    """Move a node to where its object is now, with what has to stand above it."""
    command = permit.command
    catalog = tx.nodes.live(command.catalog.id)
    if catalog is None:
        return
    at, held = catalog, None if command.node is None else tx.nodes.live(command.node.id)
    for kind, space, name in command.steps[:-1]:
        found = tx.nodes.find(at.id, space, name)
        if found is None and held is None:
            return  # nothing stands where it goes, nor for it
        at = found or tx.nodes.create(
            kind=kind, space=space, name=name, parent_id=at.id, zone=permit.zone, record=BLANK_NAMESPACE, owner_id=None
        )
    _, space, name = command.steps[-1]
    stale = tx.nodes.find(at.id, space, name)
    if stale is not None and (held is None or stale.id != held.id):
        tx.nodes.drop(stale)
    if held is not None:
        tx.nodes.move(held, parent_id=at.id, name=name, moves_access=True)
