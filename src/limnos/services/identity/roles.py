# SPDX-License-Identifier: Apache-2.0
"""Roles: create with their grants, load, list, replace their grants, drop.

Must not know any wire format.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.access.principal_names import ascii_skeleton, check_new_name, check_principal_name
from limnos.model.decisions import ChainLink
from limnos.model.entities import Grant, Node, RoleEntity, RoleWithRules
from limnos.model.errors import AlreadyExists, BadRequest, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.names.errors import InvalidName
from limnos.services.federation.placeholder_nodes import read_attached
from limnos.services.identity.grants import (
    PrivilegeRequest,
    RulesReplace,
    check_privilege_requests,
    privilege_requests_resolve,
    refuse_duplicates,
    rules_replace,
)
from limnos.services.identity.principal_bindings import may_lift, role_bindings_check
from limnos.services.lookup.securables import (
    render_full_name,
    role_find,
    role_look_up,
    role_require,
    scope_for,
    target_require,
)
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_for, codec_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.ancestry import Ancestry, path_of
from limnos.store.identity.roles import PART_MAX, role_objects_read, role_part_read
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact, require_facts
from limnos.view.keys import ABSENT, all_roles_key, owner_key, role_key, roles_on_key, rules_key

ONE_BY_ONE_MAX = 50
"""The maximum number of roles that are read by name; for more, one statement reads all roles of the metalake."""


class RoleCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a role with its grants; `securables` are the grants' objects."""

    metalake_id: int
    name: str
    properties: dict[str, str]
    grants: tuple[Grant, ...]
    securables: tuple[Node, ...]
    owner_id: int | None


class RoleDrop(msgspec.Struct, frozen=True):
    """The command to drop a role with its grants and assignments.

    `lifts` states whether the caller may lift denials on all objects.
    """

    role: RoleEntity
    lifts: bool = False


def role_with_rules(request_view: RequestView, role: RoleEntity) -> RoleWithRules:
    """Return a role with its grants if the view caches them.

    Otherwise, or if there are too many grants for one fact, the result has no grants, and `in_parts` is true: callers
    read the grants page by page.
    """
    fact = request_view.view.get(rules_key(role.id))
    if fact is ABSENT or (fact is not None and fact[1] is None):
        return RoleWithRules(role, (), in_parts=True)
    return RoleWithRules(role, ()) if fact is None or fact[1] is None else RoleWithRules(fact[0], fact[1])


def find_role_rules(request_view: RequestView, name: str) -> RoleWithRules | None:
    """Return a role with its grants, or None. A role with too many grants for one fact has none in the result."""
    role = role_find(request_view, name)
    if role is None:
        return None
    fact = require_fact(request_view.view, rules_key(role.id), zone=request_view.metalake.id)
    is_whole = fact is not None and fact[1] is not None
    return RoleWithRules(role, fact[1] if fact is not None and fact[1] is not None else (), in_parts=not is_whole)


def role_load(request_view: RequestView, name: str) -> RoleWithRules:
    """Return a role with its grants, to its holders, its owner and callers who manage grants.

    Raises NotFound, PermissionDenied.
    """
    return role_with_rules(request_view, role_look_up(request_view, name, Action.ROLE_LOAD).entity)


def roles_list(request_view: RequestView) -> list[RoleEntity]:
    """Return the roles that the caller may load, by name. Raises NotInUse, PermissionDenied."""
    request_view.require_in_use()
    request_view.require(Action.ROLE_LIST, request_view.settled.outer)
    return _visible(request_view)


def _visible(request_view: RequestView) -> list[RoleEntity]:
    """Return all roles that the caller may load, read as one cached fact."""
    fact = require_fact(request_view.view, all_roles_key(request_view.metalake.id), zone=request_view.zone)
    if not request_view.rules.access_enabled:
        return [role for role, _ in fact]
    output = list_filter(request_view.subject, Action.ROLE_LIST, request_view.settled.outer, request_view.owner_of)
    positions = output.positions([role.id for role, _ in fact], [owner for _, owner in fact])
    return [fact[position][0] for position in positions]


class RoleObject(NamedTuple):
    """An object on which a role has grants: its path below the metalake (for a metalake its name), and the grants."""

    kind: Kind
    path: tuple[str, ...]
    grants: tuple[Grant, ...]


async def role_objects(
    ctx: Context, rules: RoleWithRules, *, metalake: str | None = None
) -> AsyncGenerator[list[RoleObject], None]:
    """Yield the existing objects of a role's grants in the order of their paths; grants on dropped objects are omitted.

    Each list has at most PART_MAX objects, and other requests run between two lists.

    Args:
        ctx: The request.
        rules: The role with its grants.
        metalake: The name of the role's metalake, for a caller who loads the role: after the last read and before the
            first list it is decided again that the caller may load the role. None after a change of the role.

    Raises:
        NotFound, PermissionDenied: The role was dropped, or the caller lost the right to load it.
        ServiceUnavailable: Another role has the name now.
    """
    if rules.in_parts:
        parts = await _parts_read(ctx, rules.role)
    else:
        parts = [_live_objects(rules.grants, await _ancestry(ctx, rules.role) if rules.nodes is None else rules.nodes)]
    if metalake is not None:
        await _confirm(ctx, rules.role, metalake=metalake)
    merged_objects = heapq.merge(*parts, key=_sort_key)
    while some := list(islice(merged_objects, PART_MAX)):
        yield some
        await asyncio.sleep(0)


async def _parts_read(ctx: Context, role: RoleEntity) -> list[list[RoleObject]]:
    """Read the objects of a role in parts, each ordered by path."""
    parts: list[list[RoleObject]] = []
    after, goes_on = 0, True
    while goes_on:
        grants, nodes, goes_on = await ctx.look_up(partial(role_part_read, role.id, after))
        if grants:
            after = grants[-1].object_id
            parts.append(_live_objects(grants, nodes))
        await asyncio.sleep(0)
    return parts


async def _confirm(ctx: Context, role: RoleEntity, *, metalake: str) -> None:
    current = await ctx.read(
        RequestScope(metalake), lambda request_view: role_look_up(request_view, role.name, Action.ROLE_LOAD).entity
    )
    if current.id != role.id:
        raise ServiceUnavailable("The role was replaced while it was being read: try again", retry_after_s=1)


async def _ancestry(ctx: Context, role: RoleEntity) -> Ancestry:
    return await ctx.look_up(lambda: role_objects_read(role.id))


def _live_objects(rules: tuple[Grant, ...], nodes: Ancestry) -> list[RoleObject]:
    """Return the existing objects of the grants, in order."""
    by_id: dict[int, list[Grant]] = {}
    for grant in rules:
        by_id.setdefault(grant.object_id, []).append(grant)
    objects = []
    for object_id, grants in by_id.items():
        path = path_of(object_id, nodes)
        if path is not None:
            objects.append(RoleObject(nodes[object_id][1], path, tuple(grants)))
    return sorted(objects, key=_sort_key)


def _sort_key(role_object: RoleObject) -> tuple[bool, tuple[str, ...], Kind]:
    """Return the key by which the objects of a role are sorted: by path, then kind."""
    return role_object.kind is not Kind.METALAKE, role_object.path, role_object.kind


async def roles_on_object(ctx: Context, *, metalake: str, kind: Kind, full_name: str) -> tuple[str, ...]:
    """Return the names of the roles with a grant on an object, to a caller who may grant on it or load it.

    Roles that the caller may not load are omitted. Raises NotFound, PermissionDenied.
    """

    def find(request_view: RequestView) -> int | None:
        request_view.require_in_metalake_use()
        codec = codec_of(request_view)
        target = target_require(request_view, kind, full_name, codec, Action.PRIVILEGE_GRANT, Action.METADATA_LOAD)
        return target.id

    object_id = await read_attached(ctx, scope_for(metalake, kind, full_name), reader=find, otherwise=lambda *_: None)
    if object_id is None:
        return ()
    return await ctx.read(RequestScope(metalake), lambda request_view: roles_on(request_view, object_id))


def roles_on(request_view: RequestView, object_id: int) -> tuple[str, ...]:
    """Return the names of those roles with a grant on an object that the caller may load.

    The request view is a metalake's.
    """
    zone = request_view.metalake.id
    names = require_fact(request_view.view, roles_on_key(object_id, zone), zone=zone)
    if len(names) > ONE_BY_ONE_MAX:
        visible = {role.name for role in _visible(request_view)}
        return tuple([name for name in names if name in visible])
    roles = require_facts(request_view.view, [role_key(zone, name) for name in names], zone=zone)
    entities = [role for role in roles if role is not None]
    require_facts(request_view.view, [owner_key(role.id) for role in entities], zone=zone)
    links = [ChainLink(role.id, Kind.ROLE, role.name) for role in entities]
    return tuple(
        [
            each.name
            for each in links
            if request_view.decide(Action.ROLE_LOAD, (each, *request_view.settled.outer)).allowed
        ]
    )


async def role_create(
    ctx: Context,
    *,
    metalake: str,
    name: str,
    properties: dict[str, str],
    privilege_requests: tuple[PrivilegeRequest, ...],
) -> RoleWithRules:
    """Create a role with its grants; the caller owns it.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        name: The role's name.
        properties: The role's properties.
        privilege_requests: The privileges of the role, by object.

    Raises:
        PermissionDenied: The caller may not create roles. This is decided before any object is looked up.
        NotFound: The metalake is missing.
        AlreadyExists: The name is taken.
        IllegalObject: An object is missing, or has no privileges.
        IllegalPrivilege: A privilege does not fit its object.
        BadRequest: The name is not allowed, or there are too many privileges.
    """
    check_principal_name(name, Kind.ROLE)
    check_privilege_requests(privilege_requests)
    refuse_duplicates(privilege_requests)
    resolved_grants = await privilege_requests_resolve(ctx, metalake, privilege_requests, Action.ROLE_CREATE)

    def decide(request_view: RequestView) -> Permit[RoleCreate]:
        request_view.require_in_use()
        decision = request_view.require(Action.ROLE_CREATE, request_view.settled.outer)
        if role_find(request_view, name) is not None:
            raise AlreadyExists(f"Role {name} already exists in metalake {metalake}", kind="role")
        check_new_name(name, Kind.ROLE)
        grants = tuple(grant for each in resolved_grants for grant in each.grants)
        nodes = tuple(each.target.node for each in resolved_grants if each.target.node is not None)
        return request_view.permit(
            RoleCreate(
                metalake_id=request_view.metalake.id,
                name=name,
                properties=properties,
                grants=grants,
                securables=nodes,
                owner_id=request_view.maker_id,
            ),
            decision,
        )

    return await ctx.write(RequestScope(metalake), decide, role_insert)


def role_insert(tx: Tx, permit: Permit[RoleCreate]) -> RoleWithRules:
    """Insert the role and its grants, if the grants' objects still exist."""
    command = permit.command
    for node in command.securables:
        tx.nodes.confirm(node)
    role = role_add(
        tx, command.metalake_id, name=command.name, properties=command.properties, owner_id=command.owner_id
    )
    if command.grants:
        tx.roles.allow(role, command.grants)
    return tx.roles.with_rules(role)


def role_add(tx: Tx, metalake_id: int, *, name: str, properties: dict[str, str], owner_id: int | None) -> RoleEntity:
    """Insert a role without grants. Raises AlreadyExists, and BadRequest for a name that looks like another one."""
    if ascii_skeleton(name) is not None:
        check_new_name(name, Kind.ROLE, known=tx.roles.names(metalake_id))
    return tx.roles.create(metalake_id, name, properties=properties, owner_id=owner_id)


async def role_drop(ctx: Context, *, metalake: str, name: str) -> None:
    """Drop a role with its grants and assignments. Raises NotFound, PermissionDenied, InUse if a restriction names
    it.
    """
    await ctx.write(RequestScope(metalake), lambda request_view: role_drop_of(request_view, name), role_delete)


def role_drop_of(request_view: RequestView, name: str) -> Permit[RoleDrop]:
    """Decide on dropping a role. Raises NotFound, PermissionDenied."""
    role, _, decision = role_look_up(request_view, name, Action.ROLE_DROP)
    return request_view.permit(RoleDrop(role, may_lift(request_view)), decision)


def role_delete(tx: Tx, permit: Permit[RoleDrop]) -> None:
    """Drop the permit's role.

    Raises StalePermit if it was dropped or replaced after the access decision, InUse, PermissionDenied.
    """
    entity = tx.roles.find(permit.command.role.metalake_id, permit.command.role.name)
    if entity is None or entity.id != permit.command.role.id:
        tx.stale()
    lifts = permit.command.lifts
    role_bindings_check(tx, entity.id, name=entity.name, metalake_id=entity.metalake_id, lifts=lifts)
    tx.roles.drop(entity)


async def rules_override(
    ctx: Context, *, metalake: str, role: str, privilege_requests: tuple[PrivilegeRequest, ...]
) -> RoleWithRules:
    """Replace all grants of a role.

    Raises NotFound (the role or an object), IllegalPrivilege, IllegalObject (an object without privileges), BadRequest
    (too many privileges, an object named twice, or a role with an object that this node cannot name), PermissionDenied.
    """
    check_privilege_requests(privilege_requests)
    refuse_duplicates(privilege_requests)
    resolved_grants = await privilege_requests_resolve(ctx, metalake, privilege_requests, Action.ROLE_ASSIGN)

    def decide(request_view: RequestView) -> Permit[RulesReplace]:
        request_view.require_in_use()
        decision = request_view.require(Action.ROLE_ASSIGN, request_view.settled.outer)
        nodes = tuple(each.target.node for each in resolved_grants if each.target.node is not None)
        grants = tuple(grant for each in resolved_grants for grant in each.grants)
        return request_view.permit(RulesReplace(role_require(request_view, role), nodes, grants), decision)

    permit = await ctx.read(RequestScope(metalake), decide)
    await _refuse_unnamed_objects(ctx, permit.command.role)
    return await ctx.write(RequestScope(metalake), decide, rules_replace, first=permit)


async def _refuse_unnamed_objects(ctx: Context, role: RoleEntity) -> None:
    """Raise BadRequest if the role has grants on an object whose name this node's separator cannot spell: nobody could
    list it here, so an override would take its grants away unseen (decision record 0215).
    """
    codec = codec_for(ctx.services.defaults)
    async with aclosing(role_objects(ctx, RoleWithRules(role, (), in_parts=True))) as lists:
        async for objects in lists:
            for each in objects:
                try:
                    render_full_name(each.kind, each.path, codec=codec)
                except InvalidName:
                    raise BadRequest(
                        f"Role {role.name} has privileges on an object whose name contains '{codec.separator}', the "
                        "separator of this server node, so a list of all of its objects cannot name it here: override "
                        "the role on a node with another separator, or grant and revoke single privileges"
                    ) from None
