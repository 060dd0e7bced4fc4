"""Filesets, topics, models and functions, which are a name in a namespace and a record: what they have in common.

May import the rooms below. Knows no wire format, and nothing of what any of them means: that is in the module of each. What is missing
answers NotFound to whoever could do the same if it were there, Forbidden to everyone else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists
from limnos.model.kinds import Kind
from limnos.names.iceberg import render
from limnos.names.path import check_gravitino_name
from limnos.services.request.pages import EVERY, page_of
from limnos.services.request.properties import Edits
from limnos.services.request.table_formats import refuse_sourced, require_held
from limnos.view.cold import for_each

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.model.permits import Permit
    from limnos.model.records import DeclaredRecord, FilesetRecord, ModelRecord, NodeRecord, TopicRecord
    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Found, Scene, Scope
    from limnos.store.tx import Tx

    LeafRecord = FilesetRecord | TopicRecord | ModelRecord | DeclaredRecord


class LeafCreate(msgspec.Struct, frozen=True):
    """Make an object in a namespace."""

    namespace: Node
    kind: Kind
    name: str
    space: str
    record: NodeRecord
    owner_id: int | None


class LeafAlter(msgspec.Struct, frozen=True):
    """Change an object's name within its namespace, its comment or properties."""

    node: Node
    edits: Edits


class LeafDrop(msgspec.Struct, frozen=True):
    """Drop an object; it can be brought back for `keep_ms`."""

    node: Node
    keep_ms: int


def leaf_find(scene: Scene, path: Levels, *, kind: Kind, action: Action) -> Found[Node]:
    """Find an object for who may do the action to it. Raises NotFound, Forbidden."""
    scene.require_in_use()
    refuse_sourced(scene, kind, levels=path, action=action)
    return scene.look_up(kind, path, action)


def leaf_load(scene: Scene, path: Levels, *, kind: Kind) -> Node:
    """Return an object."""
    return leaf_find(scene, path, kind=kind, action=Action(f"{kind.word}_load")).entity


def leaf_names(scene: Scene, namespace: Levels, *, kind: Kind) -> list[str]:
    """Return the names of what the caller sees of a kind in a namespace."""
    scene.require_in_use()
    action = Action(f"{kind.word}_list")
    refuse_sourced(scene, Kind.NAMESPACE, levels=namespace, action=action)
    found = scene.look_up(Kind.NAMESPACE, namespace, action)
    return page_of(scene, action, kind=kind, chain=found.chain, asked=EVERY).texts()


def leaves_list(scene: Scene, namespace: Levels, *, kind: Kind) -> list[Node]:
    """Return what the caller sees of a kind in a namespace, by name."""
    found = for_each(leaf_names(scene, namespace, kind=kind), lambda name: scene.find((*namespace, name), kind)[0])
    return [node for node in found if node is not None]


async def leaf_create(
    ctx: Context, scope: Scope, *, path: Levels, kind: Kind, record: Callable[[Scene], NodeRecord],
    insert: Callable[[Tx, Permit[LeafCreate]], Node] | None = None,
) -> Node:  # fmt: skip
    """Make an object; its maker owns it. `insert` does more than `leaf_insert`. Raises AlreadyExists, NotFound (namespace), InvalidName, Unsupported, Forbidden."""
    check_gravitino_name(path[-1], kind=kind.word.upper())

    def decide(scene: Scene) -> Permit[LeafCreate]:
        scene.require_in_use()
        refuse_sourced(scene, Kind.NAMESPACE, levels=path[:-1], action=Action(f"{kind.word}_create"))
        namespace, _, decision = scene.look_up(Kind.NAMESPACE, path[:-1], Action(f"{kind.word}_create"))
        require_held(scene, kind)
        if scene.is_taken(namespace.id, kind, path[-1]):
            raise exists(path, kind)
        command = LeafCreate(namespace, kind, path[-1], scene.space(kind), record(scene), scene.maker_id)
        return scene.permit(command, decision)

    try:
        return await ctx.write(scope, decide, insert or leaf_insert)
    except AlreadyExists:
        raise exists(path, kind) from None


def exists(path: Levels, kind: Kind) -> AlreadyExists:
    """Say that a name is taken."""
    return AlreadyExists(f"{kind.word.capitalize()} already exists: {render(path)}", kind=kind.word)


def leaf_insert(tx: Tx, permit: Permit[LeafCreate]) -> Node:
    """Insert the object with its owner."""
    command = permit.command
    return tx.nodes.create(
        kind=command.kind, space=command.space, name=command.name, parent_id=command.namespace.id, zone=permit.zone,
        record=command.record, owner_id=command.owner_id, under=command.namespace,
    )  # fmt: skip


async def leaf_alter(ctx: Context, scope: Scope, *, path: Levels, kind: Kind, edits: Edits) -> Node:
    """Rename an object within its namespace, change its comment and properties. Raises NotFound, AlreadyExists, InvalidName."""
    if edits.name is not None:
        check_gravitino_name(edits.name, kind=kind.word.upper())

    def decide(scene: Scene) -> Permit[LeafAlter]:
        found = leaf_find(scene, path, kind=kind, action=Action(f"{kind.word}_alter"))
        return scene.permit(LeafAlter(found.entity, edits), found.decision)

    try:
        return await ctx.write(scope, decide, leaf_update)
    except AlreadyExists:
        raise exists((*path[:-1], edits.name or path[-1]), kind) from None


def leaf_update(tx: Tx, permit: Permit[LeafAlter]) -> Node:
    """Write the edited record, then the new name: grants and tags hang on the id and stay."""
    held, edits = tx.nodes.confirm(permit.command.node), permit.command.edits
    record = cast("LeafRecord", held.record)
    comment, properties = edits.comment_over(record.comment), edits.over(record.properties)
    tx.nodes.write_record(held, replace(record, comment=comment, properties=properties))
    if edits.name is not None and edits.name != held.name:
        tx.nodes.move(held, parent_id=held.parent_id, name=edits.name, moves_access=False)
    return tx.nodes.by_id(held.id)


async def leaf_drop(
    ctx: Context, scope: Scope, *, path: Levels, kind: Kind,
    delete: Callable[[Tx, Permit[LeafDrop]], None] | None = None,
) -> None:  # fmt: skip
    """Drop an object; it can be brought back for a while. `delete` does more than `leaf_delete`. Raises NotFound, Forbidden, Protected."""

    def decide(scene: Scene) -> Permit[LeafDrop]:
        found = leaf_find(scene, path, kind=kind, action=Action(f"{kind.word}_drop"))
        return scene.permit(LeafDrop(found.entity, scene.defaults.keep_dropped_ms), found.decision)

    await ctx.write(scope, decide, delete or leaf_delete)


def leaf_delete(tx: Tx, permit: Permit[LeafDrop]) -> None:
    """Drop the object."""
    held = tx.nodes.confirm(permit.command.node)
    tx.nodes.drop(held, keep_ms=permit.command.keep_ms)
