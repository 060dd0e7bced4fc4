"""Tags, policies and job templates, which lie in a metalake beside the tree: what they have in common.

May import the rooms below. Knows no wire format, and nothing of what either means. Each is a node of the metalake with a record; what it is on is
in `services.governance.attachments`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists
from limnos.model.kinds import Kind
from limnos.model.records import JobTemplateRecord, PolicyRecord, TagRecord
from limnos.names.path import check_gravitino_name
from limnos.services.request.pages import EVERY, page_of
from limnos.services.request.properties import Edits, apart_edit
from limnos.services.request.scene import Scope
from limnos.view.cold import for_each

if TYPE_CHECKING:
    from limnos.model.permits import Permit
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Found, Scene
    from limnos.store.tx import Tx

ApartRecord = TagRecord | PolicyRecord | JobTemplateRecord


class ApartCreate(msgspec.Struct, frozen=True):
    """Make something of a kind."""

    metalake: Node
    kind: Kind
    name: str
    record: ApartRecord
    owner_id: int | None


class ApartAlter(msgspec.Struct, frozen=True):
    """Change a name, comment or properties."""

    node: Node
    edits: Edits


class ApartDrop(msgspec.Struct, frozen=True):
    """Drop something; it goes from everything that it is on."""

    node: Node


def apart_find(scene: Scene, kind: Kind, *, name: str, action: Action) -> Found[Node]:
    """Find something for who may do the action to it. Raises NotFound, Forbidden."""
    scene.require_in_metalake_use()
    return scene.look_up(kind, (name,), action)


def apart_load(scene: Scene, kind: Kind, *, name: str) -> Node:
    """Return something, for its owner and whoever may apply it."""
    return apart_find(scene, kind, name=name, action=Action(f"{kind.word}_load")).entity


def apart_list(scene: Scene, kind: Kind) -> list[Node]:
    """Return what the caller may load of a kind, by name."""
    scene.require_in_metalake_use()
    chain, action = scene.settled.outer[-1:], Action(f"{kind.word}_list")
    scene.require(action, chain)
    names = page_of(scene, action, kind=kind, chain=chain, asked=EVERY).texts()
    found = for_each(names, lambda name: scene.find_outside(kind, (name,))[0])
    return [node for node in found if node is not None]


async def apart_create(ctx: Context, *, metalake: str, kind: Kind, name: str, record: ApartRecord) -> Node:
    """Make something; its maker owns it. Raises AlreadyExists, InvalidName."""
    check_gravitino_name(name, kind=kind.word.upper())

    def decide(scene: Scene) -> Permit[ApartCreate]:
        scene.require_in_metalake_use()
        decision = scene.require(Action(f"{kind.word}_create"), scene.settled.outer)
        if scene.find_outside(kind, (name,))[0] is not None:
            raise exists(kind, name, metalake=metalake)
        return scene.permit(ApartCreate(scene.metalake, kind, name, record, scene.maker_id), decision)

    try:
        return await ctx.write(Scope(metalake), decide, apart_insert)
    except AlreadyExists:
        raise exists(kind, name, metalake=metalake) from None


def exists(kind: Kind, name: str, *, metalake: str) -> AlreadyExists:
    """Say that a name is taken."""
    return AlreadyExists(
        f"{kind.word.capitalize().replace('_', ' ')} {name} already exists in metalake {metalake}", kind=kind.word
    )


def apart_insert(tx: Tx, permit: Permit[ApartCreate]) -> Node:
    """Insert it with its owner."""
    command = permit.command
    if not tx.nodes.is_alive(command.metalake.id):
        tx.stale()
    return tx.nodes.create(
        kind=command.kind, space=command.kind.word, name=command.name, parent_id=command.metalake.id, zone=permit.zone,
        record=command.record, owner_id=command.owner_id,
    )  # fmt: skip


async def apart_alter(ctx: Context, *, metalake: str, kind: Kind, name: str, edits: Edits) -> Node:
    """Rename something, change its comment or properties. Raises NotFound, AlreadyExists, InvalidName."""
    if edits.name is not None:
        check_gravitino_name(edits.name, kind=kind.word.upper())

    def decide(scene: Scene) -> Permit[ApartAlter]:
        found = apart_find(scene, kind, name=name, action=Action(f"{kind.word}_alter"))
        return scene.permit(ApartAlter(found.entity, edits), found.decision)

    try:
        return await ctx.write(Scope(metalake), decide, apart_update)
    except AlreadyExists:
        raise exists(kind, edits.name or name, metalake=metalake) from None


def apart_update(tx: Tx, permit: Permit[ApartAlter]) -> Node:
    """Write the edited record, then the new name."""
    return apart_edit(tx, tx.nodes.confirm(permit.command.node), edits=permit.command.edits)


async def apart_drop(ctx: Context, *, metalake: str, kind: Kind, name: str) -> None:
    """Drop something. Raises NotFound."""

    def decide(scene: Scene) -> Permit[ApartDrop]:
        found = apart_find(scene, kind, name=name, action=Action(f"{kind.word}_drop"))
        return scene.permit(ApartDrop(found.entity), found.decision)

    await ctx.write(Scope(metalake), decide, apart_delete)


def apart_delete(tx: Tx, permit: Permit[ApartDrop]) -> None:
    """Drop it; what it was on is swept later, for its id never comes back."""
    tx.nodes.drop(tx.nodes.confirm(permit.command.node))
