# SPDX-License-Identifier: Apache-2.0
"""Grants: privileges of roles on objects, allowed or denied; and role assignments of users and groups.

Must not know any wire format. Grants and assignments belong to the metalake's zone, even if a grant is on an object in
a catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink, Decision, SecurableChain
from limnos.model.entities import Grant, Node, Principal, RoleEntity, RoleWithRules
from limnos.model.errors import BadRequest, IllegalObject, IllegalPrivilege, IllegalRole, NotFound
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.model.privileges import GrantCondition, Privilege, check_binding, check_conditions
from limnos.services.federation.placeholder_nodes import MissingPlaceholder, with_placeholders
from limnos.services.identity.users import RoleHolder, principal_require
from limnos.services.lookup.securables import (
    SecurableTarget,
    role_find,
    role_require,
    scope_for,
    securable_missing_error,
    target_find,
    target_require,
)
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import read_many_scopes
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each

C = TypeVar("C")
T = TypeVar("T")
RULES_MAX = 2_000
"""The maximum number of privileges that one request may name; each is looked up and written separately."""
NAMES_MAX = 1_000
"""The maximum number of roles that one request may assign or revoke."""


class PrivilegeRequest(NamedTuple):
    """Requested privileges on one object, as a client names them."""

    kind: Kind
    full_name: str
    privileges: tuple[tuple[Privilege, GrantCondition], ...]


class ResolvedGrants(NamedTuple):
    """A privilege request after name resolution: the object, and the grants of the requested privileges."""

    target: SecurableTarget
    grants: tuple[Grant, ...]


class RulesChange(msgspec.Struct, frozen=True, kw_only=True):
    """The command to add grants to a role, or remove them.

    `visible_chain` is the target with its ancestors if the caller may not load the role: the result then has the role's
    grants on that object alone, and no properties of the role. None for a caller who may load the role.
    """

    role: RoleEntity
    securable: Node | None
    grants: tuple[Grant, ...]
    grants_them: bool
    visible_chain: SecurableChain | None = None


class RulesReplace(msgspec.Struct, frozen=True):
    """The command to replace all grants of a role."""

    role: RoleEntity
    securables: tuple[Node, ...]
    grants: tuple[Grant, ...]


class RolesChange(msgspec.Struct, frozen=True):
    """The command to assign roles to a user or group, or revoke them."""

    principal: Principal
    roles: tuple[RoleEntity, ...]
    gives: bool


def check_privilege_requests(privilege_requests: tuple[PrivilegeRequest, ...]) -> None:
    """Check the privileges of a grant or revocation for their count, their object and contradictions.

    Raises BadRequest for too many, IllegalObject for an object without privileges, IllegalPrivilege for a privilege
    that is both allowed and denied on one object.
    """
    count = sum(len(privilege_request.privileges) for privilege_request in privilege_requests)
    if max(count, len(privilege_requests)) > RULES_MAX:
        raise BadRequest(
            f"{max(count, len(privilege_requests))} privileges in one request are more than the {RULES_MAX} that are"
            " allowed: grant the others in further requests, object by object"
        )
    for privilege_request in privilege_requests:
        if not privilege_request.privileges:
            raise IllegalObject(
                f"{privilege_request.kind.word.capitalize()} {privilege_request.full_name} has no privileges: name some"
            )
        check_conditions(privilege_request.privileges, privilege_request.full_name)


def refuse_duplicates(privilege_requests: tuple[PrivilegeRequest, ...]) -> None:
    """Raise BadRequest if a request for a role names an object twice."""
    if len({(privilege_request.kind, privilege_request.full_name) for privilege_request in privilege_requests}) != len(
        privilege_requests
    ):
        raise BadRequest("The role names the same object twice: give all of its privileges in one entry")


def _find_grant_target(
    request_view: RequestView, privilege_request: PrivilegeRequest, *, hides: bool
) -> ResolvedGrants:
    """Find the object of a request. With `hides`, an object that is not visible to the caller counts as missing.

    Raises NotFound, IllegalPrivilege for a privilege that the object's kind does not have.
    """
    target = target_find(request_view, privilege_request.kind, privilege_request.full_name, codec_of(request_view))
    if hides and not request_view.decide(Action.METADATA_LOAD, target.chain).allowed:
        raise securable_missing_error(request_view, privilege_request.kind, full_name=privilege_request.full_name)
    return _bind_privileges(target, privilege_request)


def _bind_privileges(target: SecurableTarget, privilege_request: PrivilegeRequest) -> ResolvedGrants:
    for privilege, _ in privilege_request.privileges:
        check_binding(privilege, target.kind, target.catalog_type)
    grants = tuple(
        Grant(target.id, target.kind, int(privilege), condition is GrantCondition.ALLOW)
        for privilege, condition in privilege_request.privileges
    )
    return ResolvedGrants(target, grants)


@with_placeholders
async def privilege_requests_resolve(
    ctx: Context, metalake: str, privilege_requests: tuple[PrivilegeRequest, ...], action: Action
) -> list[ResolvedGrants]:
    """Find the objects of privilege requests, in one request view, for a caller who may do the action in the metalake.

    The action is decided before any object is looked up, so a refusal does not reveal whether the objects exist.
    Creating a role needs no right on the objects, so in that case hidden objects count as missing. Raises
    PermissionDenied, and for a missing object IllegalObject if the role is being created, else NotFound.
    """

    def may(request_view: RequestView) -> None:
        request_view.require_in_use()
        request_view.require(action, request_view.settled.outer)

    await ctx.read(RequestScope(metalake), may)
    by_scope: dict[RequestScope, list[PrivilegeRequest]] = {}
    for privilege_request in privilege_requests:
        by_scope.setdefault(scope_for(metalake, privilege_request.kind, privilege_request.full_name), []).append(
            privilege_request
        )
    try:
        find = partial(_find_all_targets, tuple(by_scope.values()), hides=action is Action.ROLE_CREATE)
        return await read_many_scopes(ctx, tuple(by_scope), find)
    except MissingPlaceholder as error:
        error.allowed = lambda request_view, _: request_view.require(action, request_view.settled.outer[-1:])
        raise
    except NotFound as error:
        if action is not Action.ROLE_CREATE or error.kind == "metalake":
            raise
        raise IllegalObject(error.message) from None


def _find_all_targets(
    privilege_requests: tuple[list[PrivilegeRequest], ...], request_views: tuple[RequestView, ...], *, hides: bool
) -> list[ResolvedGrants]:
    pairs = [
        (request_view, privilege_request)
        for request_view, some in zip(request_views, privilege_requests, strict=True)
        for privilege_request in some
    ]
    return for_each(pairs, lambda pair: _find_grant_target(*pair, hides=hides))


@with_placeholders
async def grants_write(
    ctx: Context,
    scope: RequestScope,
    *,
    decide: Callable[[RequestView], Permit[C]],
    mutation: Callable[[Tx, Permit[C]], T],
) -> T:
    """Run a mutation of grants; an object of an external system that has none yet gets its placeholder node."""
    return await ctx.write(scope, decide, mutation)


def grants_resolve(request_view: RequestView, privilege_request: PrivilegeRequest) -> ResolvedGrants:
    """Find the object of a privilege request for a caller who may grant on it.

    Raises PermissionDenied, NotFound, and IllegalPrivilege for a privilege that does not fit the object.
    """
    codec = codec_of(request_view)
    return _bind_privileges(
        target_require(
            request_view, privilege_request.kind, privilege_request.full_name, codec, Action.PRIVILEGE_GRANT
        ),
        privilege_request,
    )


async def privileges_grant(
    ctx: Context, *, metalake: str, role: str, privilege_request: PrivilegeRequest, grants_them: bool = True
) -> RoleWithRules:
    """Grant privileges on an object to a role, or revoke them; both are idempotent.

    Returns the role with its grants. A caller who may not load the role gets those on the object alone.

    Raises NotFound for the role or the object, IllegalPrivilege for a privilege that does not fit the object or
    contradicts an existing grant, IllegalObject without privileges, BadRequest for too many, PermissionDenied.
    """
    check_privilege_requests((privilege_request,))

    def decide(request_view: RequestView) -> Permit[RulesChange]:
        _, command, decision = rules_decide(
            request_view, role, privilege_request=privilege_request, grants_them=grants_them
        )
        return request_view.permit(command, decision, zone=request_view.metalake.id)

    return await grants_write(ctx, grant_scope(metalake, privilege_request), decide=decide, mutation=rules_change)


def grant_scope(metalake: str, privilege_request: PrivilegeRequest) -> RequestScope:
    """Return the scope of the object of a privilege request."""
    return scope_for(metalake, privilege_request.kind, privilege_request.full_name)


def rules_decide(
    request_view: RequestView, role: str, *, privilege_request: PrivilegeRequest, grants_them: bool
) -> tuple[SecurableTarget, RulesChange, Decision]:
    """Decide on a change of a role's privileges on an object, and return the object, the change and the decision.

    Raises as `privileges_grant`.
    """
    request_view.require_in_metalake_use()
    grants = grants_resolve(request_view, privilege_request)
    decision = request_view.require(Action.PRIVILEGE_GRANT, grants.target.chain)
    entity = role_require(request_view, role)
    may_load = request_view.decide(
        Action.ROLE_LOAD, (ChainLink(entity.id, Kind.ROLE, entity.name), *request_view.settled.outer[-1:])
    ).allowed
    visible_chain = None if may_load else grants.target.chain
    return (
        grants.target,
        RulesChange(
            role=entity,
            securable=grants.target.node,
            grants=grants.grants,
            grants_them=grants_them,
            visible_chain=visible_chain,
        ),
        decision,
    )


def refuse_opposite(tx: Tx, role: RoleEntity, *, grants: tuple[Grant, ...]) -> None:
    """Refuse to change a grant from deny to allow or from allow to deny.

    Reads only the role's grants on that object. Raises IllegalPrivilege.
    """
    check_opposite(role, grants=grants, stored_privileges=tx.roles.privileges_on(role, grants[0].object_id))


def check_opposite(role: RoleEntity, *, grants: Iterable[Grant], stored_privileges: Mapping[int, bool]) -> None:
    """Raise IllegalPrivilege if a role has the opposite of one of some grants on an object.

    `stored_privileges` are the codes of its privileges there, each with whether it is allowed.
    """
    for grant in grants:
        if stored_privileges.get(grant.privilege, grant.allowed) != grant.allowed:
            word = "denied" if grant.allowed else "allowed"
            name = Privilege(grant.privilege).name
            raise IllegalPrivilege(f"Role {role.name} has {name} {word} on this object: revoke that first")


def rules_change(tx: Tx, permit: Permit[RulesChange]) -> RoleWithRules:
    """Add or remove the grants, if the role and the object still exist. Raises IllegalPrivilege for a grant that
    contradicts an existing one.
    """
    command = permit.command
    role = confirm_role(tx, command.role)
    if command.securable is not None:
        tx.nodes.confirm(command.securable)
    if command.grants_them:
        refuse_opposite(tx, role, grants=command.grants)
        tx.roles.allow(role, command.grants)
    else:
        tx.roles.withdraw(role, command.grants)
    return (
        tx.roles.with_rules(role) if command.visible_chain is None else _rules_on(tx, role, chain=command.visible_chain)
    )


def _rules_on(tx: Tx, role: RoleEntity, *, chain: SecurableChain) -> RoleWithRules:
    """Return a role without its properties, with its grants on the first object of `chain` alone."""
    target = chain[0]
    stored_privileges = tx.roles.privileges_on(role, target.id)
    grants = tuple(
        [Grant(target.id, target.kind, privilege, is_allowed) for privilege, is_allowed in stored_privileges.items()]
    )
    parents = [link.id for link in chain[1:]] + [ROOT_ID]
    nodes = {link.id: (parent, link.kind, link.name) for link, parent in zip(chain, parents, strict=True)}
    return RoleWithRules(msgspec.structs.replace(role, properties=()), grants, nodes)


def rules_replace(tx: Tx, permit: Permit[RulesReplace]) -> RoleWithRules:
    """Write the new grants in place of the old, if the role and the objects still exist."""
    role = confirm_role(tx, permit.command.role)
    for node in permit.command.securables:
        tx.nodes.confirm(node)
    tx.roles.replace(role, permit.command.grants)
    return tx.roles.with_rules(role)


def confirm_role(tx: Tx, role: RoleEntity) -> RoleEntity:
    """Return a role as the transaction reads it. Raises StalePermit if it was dropped or replaced."""
    entity = tx.roles.find(role.metalake_id, role.name)
    if entity is None or entity.id != role.id:
        tx.stale()
    return entity


async def roles_give(
    ctx: Context, *, metalake: str, kind: Kind, name: str, roles: tuple[str, ...], gives: bool = True
) -> RoleHolder:
    """Assign roles to a user or group, or revoke them; both are idempotent.

    Raises NotFound for the user or group, IllegalRole for an unknown role, BadRequest for too many of them,
    PermissionDenied.
    """
    if len(roles) > NAMES_MAX:
        raise BadRequest(f"{len(roles)} roles in one request are more than the {NAMES_MAX} that are allowed")

    def decide(request_view: RequestView) -> Permit[RolesChange]:
        return request_view.permit(*roles_decide(request_view, kind, name=name, roles=roles, gives=gives))

    return await ctx.write(RequestScope(metalake), decide, roles_change)


def roles_decide(
    request_view: RequestView, kind: Kind, *, name: str, roles: tuple[str, ...], gives: bool
) -> tuple[RolesChange, Decision]:
    """Decide on assigning or revoking roles, and return the change and the decision.

    Raises as `roles_give`.
    """
    request_view.require_in_use()
    decision = request_view.require(Action.ROLE_ASSIGN, request_view.settled.outer)
    principal = principal_require(request_view, kind, name)
    entities = tuple(for_each(roles, lambda role: _known_role(request_view, role)))
    return RolesChange(principal, entities, gives), decision


def _known_role(request_view: RequestView, name: str) -> RoleEntity:
    entity = role_find(request_view, name)
    if entity is None:
        raise IllegalRole(f"Role {name} does not exist in metalake {request_view.metalake.name}: create it first")
    return entity


def roles_change(tx: Tx, permit: Permit[RolesChange]) -> RoleHolder:
    """Write or delete the assignments, if the principal and the roles still exist."""
    principal = tx.principals.by_id(permit.command.principal.id) or tx.stale()
    for role in permit.command.roles:
        entity = confirm_role(tx, role)
        if permit.command.gives:
            tx.roles.give(entity, principal)
        else:
            tx.roles.take(entity, principal)
    return RoleHolder(principal, tx.roles.held_by(principal))
