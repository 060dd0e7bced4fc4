"""Grants: rules of roles (privileges on objects), and roles given to users and groups.

May import the rooms below. Knows no wire format. Everything here is on the metalake's clock, whatever it is about.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Grant, Node, Principal, RoleEntity, Ruled
from limnos.model.errors import BadRequest, IllegalObject, IllegalPrivilege, IllegalRole, NotFound
from limnos.model.kinds import Kind
from limnos.model.privileges import Condition, Privilege, check_binding, check_conditions
from limnos.services.federation.shadows import Unshadowed, shadowed
from limnos.services.identity.users import Holder, principal_require
from limnos.services.lookup.objects import (
    Target,
    absent,
    codec_of,
    role_find,
    role_require,
    scope_for,
    target_find,
    target_require,
)
from limnos.services.request.scene import Scope
from limnos.services.request.together import read_together
from limnos.view.cold import for_each

if TYPE_CHECKING:
    from limnos.model.permits import Permit
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.store.tx import Tx

RULES_MAX = 2_000
"""How many privileges one request may name: each is looked up and written for itself."""
NAMES_MAX = 1_000
"""How many roles one request may give or take."""


class Wish(NamedTuple):
    """Privileges asked for on one object, as a client names them."""

    kind: Kind
    full_name: str
    privileges: tuple[tuple[Privilege, Condition], ...]


class Found(NamedTuple):
    """A wish whose object was found: the rules it means."""

    target: Target
    grants: tuple[Grant, ...]


class RulesChange(msgspec.Struct, frozen=True):
    """Add rules to a role, or withdraw them."""

    role: RoleEntity
    held: Node | None
    grants: tuple[Grant, ...]
    grants_them: bool


class RulesReplace(msgspec.Struct, frozen=True):
    """Replace all rules of a role."""

    role: RoleEntity
    held: tuple[Node, ...]
    grants: tuple[Grant, ...]


class RolesChange(msgspec.Struct, frozen=True):
    """Give roles to a user or group, or take them."""

    principal: Principal
    roles: tuple[RoleEntity, ...]
    gives: bool


def check_wishes(wishes: tuple[Wish, ...]) -> None:
    """Refuse too many rules, an object without privileges, and a privilege both allowed and denied on one object."""
    count = sum(len(wish.privileges) for wish in wishes)
    if max(count, len(wishes)) > RULES_MAX:
        raise BadRequest(
            f"{max(count, len(wishes))} privileges in one request are more than the {RULES_MAX} that are taken at once: "
            "grant the rest in further requests, object by object"
        )
    for wish in wishes:
        if not wish.privileges:
            raise IllegalObject(f"{wish.kind.word.capitalize()} {wish.full_name} comes without privileges: name some")
        check_conditions(wish.privileges, wish.full_name)


def refuse_twice(wishes: tuple[Wish, ...]) -> None:
    """Refuse a role in which the same object stands twice."""
    if len({(wish.kind, wish.full_name) for wish in wishes}) != len(wishes):
        raise BadRequest("The same object stands twice in the role: give it all its privileges in one place")


def _found(scene: Scene, wish: Wish, *, hides: bool) -> Found:
    """Find the object of a wish; with `hides` one that the caller may not know of is absent. Raises NotFound, IllegalPrivilege."""
    target = target_find(scene, wish.kind, wish.full_name, codec_of(scene))
    if hides and not scene.decide(Action.METADATA_LOAD, target.chain).allowed:
        raise absent(scene, wish.kind, full_name=wish.full_name)
    return _bound(target, wish)


def _bound(target: Target, wish: Wish) -> Found:
    for privilege, _ in wish.privileges:
        check_binding(privilege, target.kind, target.catalog_type)
    grants = tuple(
        Grant(target.id, target.kind, int(privilege), condition is Condition.ALLOW)
        for privilege, condition in wish.privileges
    )
    return Found(target, grants)


@shadowed
async def wishes_find(ctx: Context, metalake: str, wishes: tuple[Wish, ...], action: Action) -> list[Found]:
    """Find the objects of wishes, all at one moment, for who may do the action in the metalake.

    That is decided before any object is looked up, so a refusal is the same whether they exist or not. Where a role is to be made, which
    needs no right on the objects, those that the caller may not know of are absent, too. Raises Forbidden; for a missing object
    NotFound where its role exists already, IllegalObject where the role is to be made.
    """

    def may(scene: Scene) -> None:
        scene.require_in_use()
        scene.require(action, scene.settled.outer)

    await ctx.read(Scope(metalake), may)
    by_scope: dict[Scope, list[Wish]] = {}
    for wish in wishes:
        by_scope.setdefault(scope_for(metalake, wish.kind, wish.full_name), []).append(wish)
    try:
        find = partial(_all_found, tuple(by_scope.values()), hides=action is Action.ROLE_CREATE)
        return await read_together(ctx, tuple(by_scope), find)
    except Unshadowed as error:
        error.allowed = lambda scene, _: scene.require(action, scene.settled.outer[-1:])
        raise
    except NotFound as error:
        if action is not Action.ROLE_CREATE or error.kind == "metalake":
            raise
        raise IllegalObject(error.message) from None


def _all_found(wishes: tuple[list[Wish], ...], scenes: tuple[Scene, ...], *, hides: bool) -> list[Found]:
    pairs = [(scene, wish) for scene, some in zip(scenes, wishes, strict=True) for wish in some]
    return for_each(pairs, lambda pair: _found(*pair, hides=hides))


@shadowed
async def privileges_grant(ctx: Context, *, metalake: str, role: str, wish: Wish, grants_them: bool = True) -> Ruled:
    """Grant privileges on an object to a role, or revoke them; both are idempotent.

    Raises NotFound for the role or the object, IllegalPrivilege for a wrong binding or the opposite of what stands.
    """
    check_wishes((wish,))

    def decide(scene: Scene) -> Permit[RulesChange]:
        scene.require_in_metalake_use()
        codec = codec_of(scene)
        found = _bound(target_require(scene, wish.kind, wish.full_name, codec, Action.PRIVILEGE_GRANT), wish)
        decision = scene.require(Action.PRIVILEGE_GRANT, found.target.chain)
        entity = role_require(scene, role)
        command = RulesChange(entity, found.target.node, found.grants, grants_them)
        return scene.permit(command, decision, zone=scene.metalake.id)

    return await ctx.write(scope_for(metalake, wish.kind, wish.full_name), decide, rules_change)


def _refuse_opposite(tx: Tx, role: RoleEntity, grants: tuple[Grant, ...]) -> None:
    """A deny is never silently turned into an allow, nor the other way round. Only the rules on that object are read."""
    standing = tx.roles.standing(role, grants[0].object_id)
    for grant in grants:
        if standing.get(grant.privilege, grant.allowed) != grant.allowed:
            word = "denied" if grant.allowed else "allowed"
            name = Privilege(grant.privilege).name
            raise IllegalPrivilege(f"Role {role.name} has {name} {word} on this object: revoke that first")


def rules_change(tx: Tx, permit: Permit[RulesChange]) -> Ruled:
    """Write or withdraw the rules, if role and object are still there."""
    command = permit.command
    role = _held_role(tx, command.role)
    if command.held is not None:
        tx.nodes.confirm(command.held)
    if command.grants_them:
        _refuse_opposite(tx, role, command.grants)
        tx.roles.allow(role, command.grants)
    else:
        tx.roles.withdraw(role, command.grants)
    return tx.roles.ruled(role)


async def rules_override(ctx: Context, *, metalake: str, role: str, wishes: tuple[Wish, ...]) -> Ruled:
    """Replace all rules of a role."""
    check_wishes(wishes)
    refuse_twice(wishes)
    found = await wishes_find(ctx, metalake, wishes, Action.ROLE_ASSIGN)

    def decide(scene: Scene) -> Permit[RulesReplace]:
        scene.require_in_use()
        decision = scene.require(Action.ROLE_ASSIGN, scene.settled.outer)
        held = tuple(each.target.node for each in found if each.target.node is not None)
        grants = tuple(grant for each in found for grant in each.grants)
        return scene.permit(RulesReplace(role_require(scene, role), held, grants), decision)

    return await ctx.write(Scope(metalake), decide, rules_replace)


def rules_replace(tx: Tx, permit: Permit[RulesReplace]) -> Ruled:
    """Write the new rules in place of the old, if what they are about is still there."""
    role = _held_role(tx, permit.command.role)
    for node in permit.command.held:
        tx.nodes.confirm(node)
    tx.roles.replace(role, permit.command.grants)
    return tx.roles.ruled(role)


def _held_role(tx: Tx, role: RoleEntity) -> RoleEntity:
    found = tx.roles.find(role.metalake_id, role.name)
    if found is None or found.id != role.id:
        tx.stale()
    return found


async def roles_give(
    ctx: Context, *, metalake: str, kind: Kind, name: str, roles: tuple[str, ...], gives: bool = True
) -> Holder:
    """Give roles to a user or group, or take them; both are idempotent.

    Raises NotFound for the user or group, IllegalRole for an unknown role, BadRequest for too many of them.
    """
    if len(roles) > NAMES_MAX:
        raise BadRequest(f"{len(roles)} roles in one request are more than the {NAMES_MAX} that are taken at once")

    def decide(scene: Scene) -> Permit[RolesChange]:
        scene.require_in_use()
        decision = scene.require(Action.ROLE_ASSIGN, scene.settled.outer)
        principal = principal_require(scene, kind, name)
        entities = tuple(for_each(roles, lambda role: _known_role(scene, role)))
        return scene.permit(RolesChange(principal, entities, gives), decision)

    return await ctx.write(Scope(metalake), decide, roles_change)


def _known_role(scene: Scene, name: str) -> RoleEntity:
    found = role_find(scene, name)
    if found is None:
        raise IllegalRole(f"Role {name} does not exist in metalake {scene.metalake.name}: create it first")
    return found


def roles_change(tx: Tx, permit: Permit[RolesChange]) -> Holder:
    """Write or delete the holdings, if user and roles are still there."""
    principal = tx.principals.by_id(permit.command.principal.id) or tx.stale()
    for role in permit.command.roles:
        held = _held_role(tx, role)
        if permit.command.gives:
            tx.roles.give(held, principal)
        else:
            tx.roles.take(held, principal)
    return Holder(principal, tx.roles.held_by(principal))
