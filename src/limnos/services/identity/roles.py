"""Roles: make with their rules, load, list, drop.

May import the rooms below. Knows no wire format.
"""

from __future__ import annotations

import asyncio
import heapq
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.model.decisions import Link
from limnos.model.entities import Grant, Node, RoleEntity, Ruled
from limnos.model.errors import AlreadyExists
from limnos.model.kinds import Kind
from limnos.services.federation.shadows import seen
from limnos.services.identity.grants import Wish, check_wishes, refuse_twice, wishes_find
from limnos.services.identity.users import check_principal_name
from limnos.services.lookup.objects import codec_of, role_find, role_look_up, scope_for, target_require
from limnos.services.lookup.principal_names import ascii_skeleton, check_new_name
from limnos.services.request.scene import Scope
from limnos.store.ancestry import path_of
from limnos.store.roles import PART_MAX, role_objects_read, role_part_read
from limnos.view.cold import need, need_all
from limnos.view.keys import ABSENT, all_roles_key, owner_key, role_key, roles_on_key, rules_key

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from limnos.model.permits import Permit
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.store.ancestry import Ancestry
    from limnos.store.tx import Tx


ONE_BY_ONE_MAX = 50
"""Roles that are asked for by name; for more, all roles of the metalake are read by one statement."""


class RoleCreate(msgspec.Struct, frozen=True):
    """Make a role with its rules; `held` are the objects they are about."""

    metalake_id: int
    name: str
    properties: dict[str, str]
    grants: tuple[Grant, ...]
    held: tuple[Node, ...]
    owner_id: int | None


class RoleDrop(msgspec.Struct, frozen=True):
    """Drop a role."""

    role: RoleEntity


def ruled(scene: Scene, role: RoleEntity) -> Ruled:
    """Return a role with its rules, if decisions have brought them along and they are few; else to be read in parts."""
    fact = scene.view.get(rules_key(role.id))
    if fact is ABSENT or (fact is not None and fact[1] is None):
        return Ruled(role, (), in_parts=True)
    return Ruled(role, ()) if fact is None or fact[1] is None else Ruled(fact[0], fact[1])


def role_load(scene: Scene, name: str) -> Ruled:
    """Return a role with its rules, to its holders, its owner and whoever manages grants."""
    return ruled(scene, role_look_up(scene, name, Action.ROLE_LOAD).entity)


def roles_list(scene: Scene) -> list[RoleEntity]:
    """Return the roles that the caller may load, by name."""
    scene.require_in_use()
    scene.require(Action.ROLE_LIST, scene.settled.outer)
    return _visible(scene)


def _visible(scene: Scene) -> list[RoleEntity]:
    """Return all roles that the caller may load, from one fact, however many there are."""
    found = need(scene.view, all_roles_key(scene.metalake.id), zone=scene.zone)
    if not scene.rules.access_enabled:
        return [role for role, _ in found]
    shown = list_filter(scene.subject, Action.ROLE_LIST, scene.settled.outer, scene.owner_of)
    positions = shown.positions([role.id for role, _ in found], [owner for _, owner in found])
    return [found[position][0] for position in positions]


class RoleObject(NamedTuple):
    """An object that a role has rules on: its path below the metalake (for a metalake its own name), and the rules."""

    kind: Kind
    path: tuple[str, ...]
    grants: tuple[Grant, ...]


async def role_objects(ctx: Context, found: Ruled) -> AsyncGenerator[list[RoleObject], None]:
    """Name the live objects of a role's rules, in the order of their paths; rules on what was dropped are left out.

    They come in lists of at most PART_MAX, and others have their turn between two lists.
    """
    if not found.in_parts:
        known = found.nodes
        yield _named(found.grants, await _ancestry(ctx, found.role) if known is None else known)
        return
    parts: list[list[RoleObject]] = []
    after, goes_on = 0, True
    while goes_on:
        grants, nodes, goes_on = await ctx.look_up(partial(role_part_read, found.role.id, after))
        if grants:
            after = grants[-1].object_id
            parts.append(_named(grants, nodes))
        await asyncio.sleep(0)
    whole = heapq.merge(*parts, key=_place)
    while some := list(islice(whole, PART_MAX)):
        yield some
        await asyncio.sleep(0)


async def _ancestry(ctx: Context, role: RoleEntity) -> Ancestry:
    return await ctx.look_up(lambda: role_objects_read(role.id))


def _named(rules: tuple[Grant, ...], nodes: Ancestry) -> list[RoleObject]:
    """The objects of rules that are still there, in order."""
    by_id: dict[int, list[Grant]] = {}
    for grant in rules:
        by_id.setdefault(grant.object_id, []).append(grant)
    objects = []
    for object_id, grants in by_id.items():
        path = path_of(object_id, nodes)
        if path is not None:
            objects.append(RoleObject(nodes[object_id][1], path, tuple(grants)))
    return sorted(objects, key=_place)


def _place(found: RoleObject) -> tuple[bool, tuple[str, ...], Kind]:
    """Where an object stands among those of a role."""
    return found.kind is not Kind.METALAKE, found.path, found.kind


async def roles_on_object(ctx: Context, *, metalake: str, kind: Kind, full_name: str) -> tuple[str, ...]:
    """Return the names of the roles with a rule on an object, to whoever may grant on it or load it.

    Raises NotFound, Forbidden. Roles that the caller may not load are left out.
    """

    def find(scene: Scene) -> int | None:
        scene.require_in_metalake_use()
        codec = codec_of(scene)
        target = target_require(scene, kind, full_name, codec, Action.PRIVILEGE_GRANT, Action.METADATA_LOAD)
        return target.id

    object_id = await seen(ctx, scope_for(metalake, kind, full_name), reader=find, otherwise=lambda *_: None)
    if object_id is None:
        return ()
    return await ctx.read(Scope(metalake), lambda scene: roles_on(scene, object_id))


def roles_on(scene: Scene, object_id: int) -> tuple[str, ...]:
    """Return the names of the roles with a rule on an object, of those that the caller may load (a metalake's scene)."""
    zone = scene.metalake.id
    names = need(scene.view, roles_on_key(object_id, zone), zone=zone)
    if len(names) > ONE_BY_ONE_MAX:
        visible = {role.name for role in _visible(scene)}
        return tuple([name for name in names if name in visible])
    roles = need_all(scene.view, [role_key(zone, name) for name in names], zone=zone)
    found = [role for role in roles if role is not None]
    need_all(scene.view, [owner_key(role.id) for role in found], zone=zone)
    links = [Link(role.id, Kind.ROLE, role.name) for role in found]
    return tuple([each.name for each in links if scene.decide(Action.ROLE_LOAD, (each, *scene.settled.outer)).allowed])


async def role_create(
    ctx: Context, *, metalake: str, name: str, properties: dict[str, str], wishes: tuple[Wish, ...]
) -> Ruled:
    """Make a role with its rules; its maker owns it.

    Raises Forbidden before any object is looked up, AlreadyExists, IllegalObject for an object that does not exist,
    IllegalPrivilege for a wrong binding.
    """
    check_principal_name(name, Kind.ROLE)
    check_wishes(wishes)
    refuse_twice(wishes)
    found = await wishes_find(ctx, metalake, wishes, Action.ROLE_CREATE)

    def decide(scene: Scene) -> Permit[RoleCreate]:
        scene.require_in_use()
        decision = scene.require(Action.ROLE_CREATE, scene.settled.outer)
        if role_find(scene, name) is not None:
            raise AlreadyExists(f"Role {name} already exists in metalake {metalake}", kind="role")
        check_new_name(name, Kind.ROLE)
        grants = tuple(grant for each in found for grant in each.grants)
        held = tuple(each.target.node for each in found if each.target.node is not None)
        return scene.permit(RoleCreate(scene.metalake.id, name, properties, grants, held, scene.maker_id), decision)

    return await ctx.write(Scope(metalake), decide, role_insert)


def role_insert(tx: Tx, permit: Permit[RoleCreate]) -> Ruled:
    """Insert the role and its rules, if what they are about is still there."""
    command = permit.command
    for node in command.held:
        tx.nodes.confirm(node)
    if ascii_skeleton(command.name) is not None:
        check_new_name(command.name, Kind.ROLE, known=tx.roles.names(command.metalake_id))
    role = tx.roles.create(command.metalake_id, command.name, properties=command.properties, owner_id=command.owner_id)
    if command.grants:
        tx.roles.allow(role, command.grants)
    return tx.roles.ruled(role)


async def role_drop(ctx: Context, *, metalake: str, name: str) -> None:
    """Drop a role with its rules; nobody holds it any more. Raises NotFound."""

    def decide(scene: Scene) -> Permit[RoleDrop]:
        role, _, decision = role_look_up(scene, name, Action.ROLE_DROP)
        return scene.permit(RoleDrop(role), decision)

    await ctx.write(Scope(metalake), decide, role_delete)


def role_delete(tx: Tx, permit: Permit[RoleDrop]) -> None:
    """Drop the role if it is still the one that was decided on."""
    found = tx.roles.find(permit.command.role.metalake_id, permit.command.role.name)
    if found is None or found.id != permit.command.role.id:
        tx.stale()
    tx.roles.drop(found)
