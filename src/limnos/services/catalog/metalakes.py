# SPDX-License-Identifier: Apache-2.0
"""Metalakes: create, load, list, alter, enable, disable and drop. A metalake is an object of the server's zone, zone 0.

Must not know any wire format.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import msgspec

from limnos.access.actions import Action
from limnos.access.principal_names import check_new_user
from limnos.access.subjects import principal_of
from limnos.formats.openlineage_namespaces import check_namespaces
from limnos.model.decisions import ChainLink
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, InUse
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.model.records import MetalakeRecord
from limnos.names.path import check_metalake_name
from limnos.services.lookup.principal_names import principal_create
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import metalakes_list
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact
from limnos.view.keys import name_key


class MetalakeCreate(msgspec.Struct, frozen=True):
    """The command to create a metalake with its first user."""

    name: str
    comment: str | None
    properties: dict[str, str]
    admins: frozenset[str]


class MetalakeAlter(msgspec.Struct, frozen=True):
    """The command to change a metalake's name, comment, properties or state."""

    metalake: Node
    edits: PropertyEdits
    in_use: bool | None = None
    default: str = ""
    """The metalake for requests that name none, by the server's settings."""


class MetalakeDrop(msgspec.Struct, frozen=True):
    """The command to drop a metalake; with `force` even if it is enabled or has catalogs."""

    metalake: Node
    force: bool


def metalake_load(request_view: RequestView) -> Node:
    """Return the metalake to any of its users. Raises NotFound, PermissionDenied."""
    request_view.require(Action.METALAKE_LOAD, request_view.settled.outer)
    return request_view.metalake


async def metalakes_visible(ctx: Context) -> list[Node]:
    """Return the metalakes of which the caller is an enabled user, each checked in its own zone. Without access
    control, all metalakes are returned.
    """
    nodes = await ctx.read(RequestScope(), metalakes_list)
    if not ctx.services.rules.access_enabled:
        return nodes
    return [node for node in nodes if await _is_member(ctx, node)]


async def _is_member(ctx: Context, node: Node) -> bool:
    def is_user(request_view: RequestView) -> bool:
        principal = principal_of(request_view.view, request_view.settled.zones[1], Kind.USER, request_view.user)
        return principal is not None and principal.enabled

    return await ctx.read(RequestScope(node.name), is_user, refuse_disabled=False)


async def metalake_create(ctx: Context, *, name: str, comment: str | None, properties: dict[str, str]) -> Node:
    """Create a metalake; the caller becomes its first user and its owner.

    Raises AlreadyExists, InvalidName, PermissionDenied, BadRequest if the caller's name is not allowed for a new user,
    or for a property that cannot be read.
    """
    check_metalake_name(name)
    check_namespaces(properties)

    def decide(request_view: RequestView) -> Permit[MetalakeCreate]:
        decision = request_view.require(Action.METALAKE_CREATE, (ChainLink.absent(Kind.METALAKE, name),))
        if require_fact(request_view.view, name_key(ROOT_ID, "metalake", name), zone=ROOT_ID) is not None:
            raise AlreadyExists(f"Metalake {name} already exists", kind="metalake")
        return request_view.permit(
            MetalakeCreate(name, comment, properties, request_view.rules.service_admins), decision
        )

    return await ctx.write(RequestScope(), decide, metalake_insert)


def metalake_insert(tx: Tx, permit: Permit[MetalakeCreate]) -> Node:
    """Insert the metalake with its own zone, its first user, and that user as owner. Settings know it by this name,
    also after a rename.
    """
    command = permit.command
    check_new_user(tx, tx.actor, admins=command.admins)
    record = MetalakeRecord(comment=command.comment, properties=command.properties, in_use=True)
    metalake_id = tx.next_id()
    tx.new_zone(metalake_id)
    drafts = tx.drafts
    tx.drafts = []  # the first user's change precedes the new clock, so no reader can miss it
    user = principal_create(tx, metalake_id, kind=Kind.USER, name=tx.actor)
    tx.drafts = drafts
    tx.setting_names.assign(metalake_id, command.name)
    return tx.nodes.create(
        kind=Kind.METALAKE,
        space="metalake",
        name=command.name,
        parent_id=ROOT_ID,
        zone=ROOT_ID,
        record=record,
        owner_id=user.id,
        node_id=metalake_id,
    )


async def metalake_alter(ctx: Context, *, name: str, edits: PropertyEdits) -> Node:
    """Rename a metalake, or change its comment or properties.

    Raises NotFound, AlreadyExists (the new name), InUse (settings mean another metalake by the new name), InvalidName,
    BadRequest for a property that cannot be read, NotInUse, PermissionDenied.
    """

    def decide(request_view: RequestView) -> Permit[MetalakeAlter]:
        decision = request_view.require(Action.METALAKE_ALTER, request_view.settled.outer)
        request_view.require_in_metalake_use()
        if edits.name is not None:
            check_metalake_name(edits.name)
        check_namespaces(edits.sets)
        command = MetalakeAlter(request_view.metalake, edits, default=ctx.services.defaults.metalake)
        return request_view.permit(command, decision, zone=ROOT_ID)

    return await ctx.write(RequestScope(name), decide, metalake_update)


async def metalake_set(ctx: Context, *, name: str, in_use: bool) -> Node:
    """Enable or disable a metalake; no error if it is in that state already. Raises NotFound, PermissionDenied."""

    def decide(request_view: RequestView) -> Permit[MetalakeAlter]:
        decision = request_view.require(Action.METALAKE_SET, request_view.settled.outer)
        return request_view.permit(
            MetalakeAlter(request_view.metalake, PropertyEdits(), in_use), decision, zone=ROOT_ID
        )

    return await ctx.write(RequestScope(name), decide, metalake_update)


def metalake_update(tx: Tx, permit: Permit[MetalakeAlter]) -> Node:
    """Write the metalake's new record, then its new name.

    Raises InUse if settings mean another metalake by that name.
    """
    command = permit.command
    node = tx.nodes.confirm(command.metalake)
    record = cast("MetalakeRecord", node.record)
    in_use = record.in_use if command.in_use is None else command.in_use
    new_record = replace(
        record,
        comment=command.edits.edited_comment(record.comment),
        properties=command.edits.over(record.properties),
        in_use=in_use,
    )
    tx.nodes.write_record(node, new_record, moves_access=in_use != record.in_use)
    if command.edits.name is not None and command.edits.name != node.name:
        tx.nodes.move(node, parent_id=ROOT_ID, name=command.edits.name, moves_access=True)
        if not tx.setting_names.may_take(node.id, command.edits.name, default=command.default):
            raise InUse(
                f"The server's settings mean another metalake by the name {command.edits.name}: choose another name",
                kind="metalake",
            )
    return tx.nodes.by_id(node.id)


async def metalake_drop(ctx: Context, *, name: str, force: bool) -> None:
    """Drop a metalake.

    Raises NotFound, PermissionDenied, InUse while it is enabled, NotEmpty while it has catalogs. `force` skips the last
    two checks.
    """

    def decide(request_view: RequestView) -> Permit[MetalakeDrop]:
        decision = request_view.require(Action.METALAKE_DROP, request_view.settled.outer)
        return request_view.permit(MetalakeDrop(request_view.metalake, force), decision, zone=ROOT_ID)

    await ctx.write(RequestScope(name), decide, metalake_delete)


def metalake_delete(tx: Tx, permit: Permit[MetalakeDrop]) -> None:
    """Drop the metalake's node and release its storage roots; objects below it can no longer be reached.

    Raises InUse, NotEmpty.
    """
    node = tx.nodes.confirm(permit.command.metalake)
    if not permit.command.force:
        if cast("MetalakeRecord", node.record).in_use:
            raise InUse(f"Metalake {node.name} is enabled: disable it first, or force the drop", kind="metalake")
        tx.nodes.require_empty(node, ", or force the drop")
    tx.places.clear_metalake(node.id)
    tx.nodes.drop(node)
