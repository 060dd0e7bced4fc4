# SPDX-License-Identifier: Apache-2.0
"""Metalake objects: the common operations of tags, policies and job templates.

Must not know any wire format, nor the semantics of the objects. Each object is a node of the metalake with a record;
`services.governance.attachments` attaches tags and policies to objects.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from limnos.access.actions import Action, kind_action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import NodeRecord, PolicyRecord
from limnos.names.path import check_gravitino_name
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.context import Context
from limnos.services.request.name_pages import ALL_NAMES, page_of
from limnos.services.request.property_edits import PropertyEdits, object_edit
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each


class MetalakeObjectCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a metalake object: a tag, policy or job template."""

    metalake: Node
    kind: Kind
    name: str
    record: NodeRecord
    owner_id: int | None


class MetalakeObjectAlter(msgspec.Struct, frozen=True):
    """The command to change the name, comment or properties of a metalake object."""

    node: Node
    edits: PropertyEdits


class MetalakeObjectDrop(msgspec.Struct, frozen=True):
    """The command to drop a metalake object. Its attachments are deleted later."""

    node: Node


def metalake_object_find(request_view: RequestView, kind: Kind, *, name: str, action: Action) -> AuthorizedObject[Node]:
    """Find a metalake object for a caller who may perform the action on it.

    Raises NotFound if it does not exist, NotInUse if the metalake is disabled, PermissionDenied without the right.
    """
    request_view.require_in_metalake_use()
    return request_view.look_up(kind, (name,), action)


def metalake_object_load(request_view: RequestView, kind: Kind, *, name: str) -> Node:
    """Return a metalake object, for a caller who may load it: its owner, or a user with the privilege to apply or use
    it.

    Raises the errors of `metalake_object_find`.
    """
    return metalake_object_find(request_view, kind, name=name, action=kind_action(kind, "load")).entity


def may_create(request_view: RequestView, kind: Kind) -> bool:
    """Return whether the caller may create metalake objects of a kind. No refusal is recorded for the audit."""
    return request_view.decide(kind_action(kind, "create"), request_view.settled.outer).allowed


def metalake_objects_list(request_view: RequestView, kind: Kind) -> list[Node]:
    """Return the metalake objects of a kind that the caller may load, by name.

    Raises NotInUse if the metalake is disabled, PermissionDenied if the caller is not a user of it.
    """
    request_view.require_in_metalake_use()
    chain, action = request_view.settled.outer[-1:], kind_action(kind, "list")
    request_view.require(action, chain)
    names = page_of(request_view, action, kind=kind, chain=chain, page_request=ALL_NAMES).texts()
    nodes = for_each(names, lambda name: request_view.find_outside(kind, (name,))[0])
    return [node for node in nodes if node is not None]


async def metalake_object_create(ctx: Context, *, metalake: str, kind: Kind, name: str, record: NodeRecord) -> Node:
    """Create a metalake object; the caller owns it.

    Raises AlreadyExists if the name is taken, InvalidName if it is not allowed, NotInUse if the metalake is disabled,
    PermissionDenied without the right.
    """
    check_gravitino_name(name, kind=kind.word.upper())

    def decide(request_view: RequestView) -> Permit[MetalakeObjectCreate]:
        request_view.require_in_metalake_use()
        decision = request_view.require(kind_action(kind, "create"), request_view.settled.outer)
        if request_view.find_outside(kind, (name,))[0] is not None:
            raise metalake_object_exists_error(kind, name, metalake=metalake)
        return request_view.permit(
            MetalakeObjectCreate(
                metalake=request_view.metalake, kind=kind, name=name, record=record, owner_id=request_view.maker_id
            ),
            decision,
        )

    try:
        return await ctx.write(RequestScope(metalake), decide, metalake_object_insert)
    except AlreadyExists:
        raise metalake_object_exists_error(kind, name, metalake=metalake) from None


def metalake_object_exists_error(kind: Kind, name: str, *, metalake: str) -> AlreadyExists:
    """Return the error for the name of an existing object of this kind in the metalake."""
    return AlreadyExists(
        f"{kind.word.capitalize().replace('_', ' ')} {name} already exists in metalake {metalake}", kind=kind.word
    )


def metalake_object_insert(tx: Tx, permit: Permit[MetalakeObjectCreate]) -> Node:
    """Insert a metalake object, and make the caller its owner, and the author of a policy's terms."""
    command = permit.command
    if not tx.nodes.is_alive(command.metalake.id):
        tx.stale()
    record = command.record
    if isinstance(record, PolicyRecord):
        record = replace(record, writer_id=permit.actor_id or 0)
    return tx.nodes.create(
        kind=command.kind,
        space=command.kind.word,
        name=command.name,
        parent_id=command.metalake.id,
        zone=permit.zone,
        record=record,
        owner_id=command.owner_id,
    )


async def metalake_object_alter(ctx: Context, *, metalake: str, kind: Kind, name: str, edits: PropertyEdits) -> Node:
    """Rename a metalake object, or change its comment or properties.

    Raises NotFound if it does not exist, AlreadyExists if the new name is taken, InvalidName if it is not allowed,
    NotInUse if the metalake is disabled, PermissionDenied without the right.
    """
    if edits.name is not None:
        check_gravitino_name(edits.name, kind=kind.word.upper())

    def decide(request_view: RequestView) -> Permit[MetalakeObjectAlter]:
        metalake_object = metalake_object_find(request_view, kind, name=name, action=kind_action(kind, "alter"))
        return request_view.permit(MetalakeObjectAlter(metalake_object.entity, edits), metalake_object.decision)

    try:
        return await ctx.write(RequestScope(metalake), decide, metalake_object_update)
    except AlreadyExists:
        raise metalake_object_exists_error(kind, edits.name or name, metalake=metalake) from None


def metalake_object_update(tx: Tx, permit: Permit[MetalakeObjectAlter]) -> Node:
    """Write the edited record, then the new name."""
    return object_edit(tx, tx.nodes.confirm(permit.command.node), edits=permit.command.edits)


async def metalake_object_drop(ctx: Context, *, metalake: str, kind: Kind, name: str) -> None:
    """Drop a metalake object. A cleanup deletes its attachments to other objects later.

    Raises NotFound if it does not exist, NotInUse if the metalake is disabled, PermissionDenied without the right.
    """

    def decide(request_view: RequestView) -> Permit[MetalakeObjectDrop]:
        metalake_object = metalake_object_find(request_view, kind, name=name, action=kind_action(kind, "drop"))
        return request_view.permit(MetalakeObjectDrop(metalake_object.entity), metalake_object.decision)

    await ctx.write(RequestScope(metalake), decide, metalake_object_delete)


def metalake_object_delete(tx: Tx, permit: Permit[MetalakeObjectDrop]) -> None:
    """Drop a metalake object. A cleanup removes its attachments later, which is safe because ids are never reused."""
    tx.nodes.drop(tx.nodes.confirm(permit.command.node))
