"""Metalakes: make, load, list, alter, enable, drop. A metalake is on the server's clock, zone 0.

May import the rooms below. Knows no wire format.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import msgspec

from limnos.access.actions import Action
from limnos.access.subjects import principal_of
from limnos.model.decisions import Link
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, InUse
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.records import MetalakeRecord
from limnos.names.path import check_metalake_name
from limnos.services.lookup.principal_names import check_new_user, principal_create
from limnos.services.request.properties import Edits
from limnos.services.request.scene import Scope
from limnos.view.cold import need, need_all
from limnos.view.keys import listing_key, name_key, node_key

if TYPE_CHECKING:
    from limnos.model.permits import Permit
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.store.tx import Tx


class MetalakeCreate(msgspec.Struct, frozen=True):
    """Make a metalake."""

    name: str
    comment: str | None
    properties: dict[str, str]
    admins: frozenset[str]


class MetalakeAlter(msgspec.Struct, frozen=True):
    """Change a metalake's name, comment, properties or state."""

    metalake: Node
    edits: Edits
    in_use: bool | None = None


class MetalakeDrop(msgspec.Struct, frozen=True):
    """Drop a metalake; `force` also one that is enabled or has catalogs."""

    metalake: Node
    force: bool


def metalake_load(scene: Scene) -> Node:
    """Return the metalake, for any of its users."""
    scene.require(Action.METALAKE_LOAD, scene.settled.outer)
    return scene.metalake


def metalakes_list(scene: Scene) -> list[Node]:
    """Return the metalakes that the caller is a user of, by name; all of them when access control is off."""
    names = need(scene.view, listing_key(ROOT_ID, "metalake", Kind.METALAKE), zone=ROOT_ID)
    return cast("list[Node]", need_all(scene.view, [node_key(node_id) for node_id in names.ids], zone=ROOT_ID))


async def metalakes_visible(ctx: Context) -> list[Node]:
    """Ask each metalake, on its own clock, whether the caller is an enabled user of it."""
    nodes = await ctx.read(Scope(), metalakes_list)
    if not ctx.services.rules.access_enabled:
        return nodes
    return [node for node in nodes if await _is_member(ctx, node)]


async def _is_member(ctx: Context, node: Node) -> bool:
    def is_user(scene: Scene) -> bool:
        principal = principal_of(scene.view, scene.settled.zones[1], Kind.USER, scene.user)
        return principal is not None and principal.enabled

    return await ctx.read(Scope(node.name), is_user, refuse_disabled=False)


async def metalake_create(ctx: Context, *, name: str, comment: str | None, properties: dict[str, str]) -> Node:
    """Make a metalake; its maker becomes its first user and owner. Raises AlreadyExists, Forbidden."""
    check_metalake_name(name)

    def decide(scene: Scene) -> Permit[MetalakeCreate]:
        decision = scene.require(Action.METALAKE_CREATE, (Link.absent(Kind.METALAKE, name),))
        if need(scene.view, name_key(ROOT_ID, "metalake", name), zone=ROOT_ID) is not None:
            raise AlreadyExists(f"Metalake {name} already exists", kind="metalake")
        return scene.permit(MetalakeCreate(name, comment, properties, scene.rules.service_admins), decision)

    return await ctx.write(Scope(), decide, metalake_insert)


def metalake_insert(tx: Tx, permit: Permit[MetalakeCreate]) -> Node:
    """Insert the metalake with its clock, its first user, and the user as owner."""
    command = permit.command
    check_new_user(tx, tx.actor, admins=command.admins)
    record = MetalakeRecord(comment=command.comment, properties=command.properties, in_use=True)
    metalake_id = tx.next_id()
    tx.new_zone(metalake_id)
    drafts = tx.drafts
    tx.drafts = []  # the first user's change is older than the new clock: nobody can have missed it
    user = principal_create(tx, metalake_id, kind=Kind.USER, name=tx.actor)
    tx.drafts = drafts
    return tx.nodes.create(
        kind=Kind.METALAKE, space="metalake", name=command.name, parent_id=ROOT_ID, zone=ROOT_ID, record=record,
        owner_id=user.id, node_id=metalake_id,
    )  # fmt: skip


async def metalake_alter(ctx: Context, *, name: str, edits: Edits) -> Node:
    """Rename a metalake, change its comment or properties. Raises NotFound, AlreadyExists, Forbidden."""

    def decide(scene: Scene) -> Permit[MetalakeAlter]:
        decision = scene.require(Action.METALAKE_ALTER, scene.settled.outer)
        scene.require_in_metalake_use()
        if edits.name is not None:
            check_metalake_name(edits.name)
        return scene.permit(MetalakeAlter(scene.metalake, edits), decision, zone=ROOT_ID)

    return await ctx.write(Scope(name), decide, metalake_update)


async def metalake_set(ctx: Context, *, name: str, in_use: bool) -> Node:
    """Enable or disable a metalake; again is fine."""

    def decide(scene: Scene) -> Permit[MetalakeAlter]:
        decision = scene.require(Action.METALAKE_SET, scene.settled.outer)
        return scene.permit(MetalakeAlter(scene.metalake, Edits(), in_use), decision, zone=ROOT_ID)

    return await ctx.write(Scope(name), decide, metalake_update)


def metalake_update(tx: Tx, permit: Permit[MetalakeAlter]) -> Node:
    """Write the metalake's new record, then its new name."""
    command = permit.command
    held = tx.nodes.confirm(command.metalake)
    record = cast("MetalakeRecord", held.record)
    in_use = record.in_use if command.in_use is None else command.in_use
    changed = replace(
        record,
        comment=command.edits.comment_over(record.comment),
        properties=command.edits.over(record.properties),
        in_use=in_use,
    )
    tx.nodes.write_record(held, changed, moves_access=in_use != record.in_use)
    if command.edits.name is not None and command.edits.name != held.name:
        tx.nodes.move(held, parent_id=ROOT_ID, name=command.edits.name, moves_access=True)
    return tx.nodes.by_id(held.id)


async def metalake_drop(ctx: Context, *, name: str, force: bool) -> None:
    """Drop a metalake. Raises NotFound, InUse while it is enabled, NotEmpty while it has catalogs (unless forced)."""

    def decide(scene: Scene) -> Permit[MetalakeDrop]:
        decision = scene.require(Action.METALAKE_DROP, scene.settled.outer)
        return scene.permit(MetalakeDrop(scene.metalake, force), decision, zone=ROOT_ID)

    await ctx.write(Scope(name), decide, metalake_delete)


def metalake_delete(tx: Tx, permit: Permit[MetalakeDrop]) -> None:
    """Drop the metalake's node; whatever hung below it can be reached no more."""
    held = tx.nodes.confirm(permit.command.metalake)
    if not permit.command.force:
        if cast("MetalakeRecord", held.record).in_use:
            raise InUse(f"Metalake {held.name} is enabled: disable it first, or force the drop", kind="metalake")
        tx.nodes.require_empty(held, ", or force the drop")
    tx.places.clear_metalake(held.id)
    tx.nodes.drop(held)
