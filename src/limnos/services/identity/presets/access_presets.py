# SPDX-License-Identifier: Apache-2.0
"""Presets of privileges: grants all that a reader, writer or administrator of an object needs, and takes it back.

Must not know any wire format. USE_CATALOG and USE_SCHEMA are granted on the containers of the object, in the same
transaction. A user or group gets a role of their own, which nobody else holds (decision record 0223).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.access.principal_names import check_new_name
from limnos.access.rules import DecisionCase, OwnerRule, PrivilegeRule, UseSchemaRule
from limnos.model.decisions import Decision, SecurableChain, display_names
from limnos.model.entities import Grant, Node, Principal, RoleEntity, RoleWithRules
from limnos.model.errors import BadRequest, InUse
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.presets import WAY, PresetName, preset_privileges
from limnos.model.privileges import Privilege, escape_percent
from limnos.services.identity.grants import (
    PrivilegeRequest,
    ResolvedGrants,
    confirm_role,
    grant_scope,
    grants_resolve,
    grants_write,
    refuse_opposite,
)
from limnos.services.identity.roles import find_role_rules, role_add
from limnos.services.identity.users import principal_require
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.ancestry import Ancestry
from limnos.store.tx import Tx

_WAY_KINDS: Final = ((Privilege.USE_SCHEMA, Kind.NAMESPACE), (Privilege.USE_CATALOG, Kind.CATALOG))
"""The privileges on containers, the innermost first, each with the kind of the container."""
_CONTAINER_OWNERS: Final = OwnerRule(frozenset({Kind.METALAKE, Kind.CATALOG, Kind.NAMESPACE}))


class PresetRequest(NamedTuple):
    """A request to grant a preset on an object to a user, group or role, or to revoke it.

    `privilege_request` names the object, without privileges. `is_answer` is whether it answers the user's own open
    request, which the mutation must check (decision record 0300). `text` says in the audit what a request without
    effect was for.
    """

    metalake: str
    preset: PresetName
    privilege_request: PrivilegeRequest
    holder_kind: Kind
    holder: str
    grants_them: bool
    is_answer: bool = False
    text: str = ""


class PresetChange(msgspec.Struct, frozen=True, kw_only=True):
    """The command to change the grants of a preset.

    `role` is None for a role that is created. `principal` is the user or group whose own role it is, None for a role
    that the request names. `grants` are to be granted or revoked, those of the innermost object first. `is_assigned`
    is whether the principal must have the role already, because the caller may not assign it.
    """

    metalake_id: int
    role: RoleEntity | None
    role_name: str
    principal: Principal | None
    securables: tuple[Node, ...]
    grants: tuple[Grant, ...]
    kept: tuple[Grant, ...]
    chain: SecurableChain
    grants_them: bool
    owner_id: int | None
    is_assigned: bool = False
    text: str = ""


class PresetOutcome(NamedTuple):
    """The outcome of a change: the role, whether it was created, the changed grants, and those left as they were.

    Unchanged are grants that the role had already, and on a revocation those that its other grants need.
    """

    role: str
    is_created: bool
    changed: tuple[Grant, ...]
    unchanged: tuple[Grant, ...]
    chain: SecurableChain


def own_role_name(kind: Kind, name: str) -> str:
    """Return the name of the role that only one user or group holds, such as `user:ana`."""
    return f"{kind.word}:{name}"


async def preset_change(ctx: Context, request: PresetRequest) -> PresetOutcome:
    """Grant a preset on an object to a user, group or role, or revoke it; both are idempotent.

    A grant to a user or group needs the right to assign roles, and to create one if the user or group has no role of
    their own yet.

    Raises:
        PermissionDenied: The caller may not grant on the object or on a container where a privilege is missing, or may
            not assign or create the role.
        NotFound: The object, the user or group, or the role is missing.
        BadRequest: The kind of object has no privileges of the preset, or no role can have the name.
        InUse: Others have the role of the user or group, too; or it exists, and the user or group does not have it.
        IllegalPrivilege: The role denies one of the privileges on the same object.
    """

    def decide(request_view: RequestView) -> Permit[PresetChange]:
        command, decisions = preset_decide(request_view, request)
        return request_view.permit(command, *decisions, zone=request_view.metalake.id)

    return await grants_write(ctx, preset_scope(request), decide=decide, mutation=preset_write)


def preset_scope(request: PresetRequest) -> RequestScope:
    """Return the scope of the object of a request."""
    return grant_scope(request.metalake, request.privilege_request)


def preset_decide(request_view: RequestView, request: PresetRequest) -> tuple[PresetChange, tuple[Decision, ...]]:
    """Decide on a change by a preset, and return the change and the decisions. Raises as `preset_change`."""
    request_view.require_in_metalake_use()
    grants = _with_preset(grants_resolve(request_view, request.privilege_request), request.preset)
    target = grants.target
    decision = request_view.require(Action.PRIVILEGE_GRANT, target.chain)
    holder = _role_holder(request_view, request)
    way = _container_grants(request_view, grants, rules=holder.rules, request=request)
    changed_grants = (*grants.grants, *way.grants)
    nodes = [target.node, target.parent, request_view.catalog if request_view.settled.catalog is not None else None]
    by_id = {node.id: node for node in nodes if node is not None}
    command = PresetChange(
        metalake_id=request_view.metalake.id,
        role=None if holder.rules is None else holder.rules.role,
        role_name=holder.name,
        principal=holder.principal,
        securables=tuple(
            [by_id[each] for each in sorted({grant.object_id for grant in changed_grants}) if each in by_id]
        ),
        grants=changed_grants,
        kept=way.kept,
        chain=target.chain,
        grants_them=request.grants_them,
        owner_id=None if request.is_answer else request_view.maker_id,
        is_assigned=request.is_answer and holder.rules is not None and not holder.decisions,
        text=request.text,
    )
    return command, (decision, *holder.decisions, *way.decisions)


class _RoleHolder(NamedTuple):
    """The role of a request, None if it is to be created; the user or group that gets it; and the decisions on both."""

    name: str
    rules: RoleWithRules | None
    principal: Principal | None
    decisions: tuple[Decision, ...]


def _role_holder(request_view: RequestView, request: PresetRequest) -> _RoleHolder:
    kind, outer = request.holder_kind, request_view.settled.outer[-1:]
    principal: Principal | None = None
    decisions: list[Decision] = []
    name = request.holder if kind is Kind.ROLE else own_role_name(kind, request.holder)
    if request.is_answer:
        return _asking_user(request_view, request.holder, role_name=name)
    if request.grants_them and kind is not Kind.ROLE:
        decisions.append(request_view.require(Action.ROLE_ASSIGN, outer))
        principal = principal_require(request_view, kind, request.holder)
    rules = find_role_rules(request_view, name)
    if rules is None:
        if principal is None:
            raise request_view.missing(Kind.ROLE, (name,))
        decisions.append(request_view.require(Action.ROLE_CREATE, outer))
        check_new_name(name, Kind.ROLE)
    return _RoleHolder(name, rules, principal, tuple(decisions))


def _asking_user(request_view: RequestView, user: str, *, role_name: str) -> _RoleHolder:
    """Return a user who asked, with the user's own role. The request is the user's consent to a role of their own.

    A role that exists and that the user does not have may hold anything: to assign it takes the right to assign roles.
    """
    principal = principal_require(request_view, Kind.USER, user)
    rules = find_role_rules(request_view, role_name)
    if rules is None:
        check_new_name(role_name, Kind.ROLE)
        return _RoleHolder(role_name, None, principal, ())
    outer = request_view.settled.outer[-1:]
    if request_view.decide(Action.ROLE_ASSIGN, outer).allowed:
        return _RoleHolder(role_name, rules, principal, (request_view.require(Action.ROLE_ASSIGN, outer),))
    if all(each.rules.id != rules.role.id or each.via is not None for each in request_view.subject_of(user).roles):
        request_view.require(Action.ROLE_ASSIGN, outer)
    return _RoleHolder(role_name, rules, principal, ())


def _with_preset(grants: ResolvedGrants, preset: PresetName) -> ResolvedGrants:
    """Return the object of a request with the grants of a preset on it. Raises BadRequest for a kind without any."""
    target = grants.target
    privileges = preset_privileges(preset, target.kind, catalog_type=target.catalog_type)
    if not set(privileges) - WAY:
        raise BadRequest(f"A {target.kind.word.replace('_', ' ')} has no privileges of the preset {preset}")
    return grants._replace(
        grants=tuple([Grant(target.id, target.kind, int(each), allowed=True) for each in privileges])
    )


class _Way(NamedTuple):
    """The grants on containers to change, those to leave as they are, and the decisions on the former."""

    grants: tuple[Grant, ...]
    kept: tuple[Grant, ...]
    decisions: tuple[Decision, ...]


def _container_grants(
    request_view: RequestView, grants: ResolvedGrants, *, rules: RoleWithRules | None, request: PresetRequest
) -> _Way:
    """Return the grants on containers that an object needs beside its own.

    A grant is left out if the role has the privilege there or above, a revocation if the caller may not grant there.
    An answer leaves out what the caller may not grant, if the user has it by another role.
    """
    grants_them = request.grants_them
    role_grants = () if rules is None else rules.grants
    allowed_keys = {_key(each) for each in role_grants if each.allowed}
    changed_grants: list[Grant] = []
    unchanged: list[Grant] = []
    decisions: list[Decision] = []
    own_privileges = {each.privilege for each in grants.grants}
    for privilege, kind in _WAY_KINDS:
        levels = [index for index, link in enumerate(grants.target.chain) if index and link.kind is kind]
        if privilege in own_privileges or not levels:
            continue
        chain = grants.target.chain[levels[0] :]
        grant = Grant(chain[0].id, kind, int(privilege), allowed=True)
        if grants_them and any((grant.privilege, link.id) in allowed_keys for link in chain):
            unchanged.append(grant)
        elif request.is_answer and _has_way(request_view, request.holder, privilege=privilege, chain=chain):
            continue
        elif grants_them or request_view.decide(Action.PRIVILEGE_GRANT, chain).allowed:
            decisions.append(request_view.require(Action.PRIVILEGE_GRANT, chain))
            changed_grants.append(grant)
        elif _key(grant) in allowed_keys:
            unchanged.append(grant)
    return _Way(tuple(changed_grants), tuple(unchanged), tuple(decisions))


def _has_way(request_view: RequestView, user: str, *, privilege: Privilege, chain: SecurableChain) -> bool:
    """Return whether a user may use a container on which the caller may not grant."""
    if request_view.decide(Action.PRIVILEGE_GRANT, chain).allowed:
        return False
    case = DecisionCase(request_view.subject_of(user), chain, request_view.owner_of)
    rule = UseSchemaRule() if privilege is Privilege.USE_SCHEMA else PrivilegeRule(privilege)
    return _CONTAINER_OWNERS.is_met(case) or rule.is_met(case)


def preset_write(tx: Tx, permit: Permit[PresetChange]) -> PresetOutcome:
    """Write the grants, the role and its assignment, if the objects still exist. Raises InUse, IllegalPrivilege."""
    return preset_apply(tx, permit.command)


def preset_apply(tx: Tx, command: PresetChange) -> PresetOutcome:
    """Write a change on which the caller of a permit decided. Raises as `preset_write`."""
    for node in command.securables:
        tx.nodes.confirm(node)
    outcome = _grant(tx, command) if command.grants_them else _revoke(tx, command)
    if command.text and not tx.drafts:
        tx.note_detail = f"{command.text}: nothing to change"
    return outcome


def _grant(tx: Tx, command: PresetChange) -> PresetOutcome:
    is_created = command.role is None
    if command.role is None:
        role = role_add(tx, command.metalake_id, name=command.role_name, properties={}, owner_id=command.owner_id)
    else:
        role = confirm_role(tx, command.role)
    principal = command.principal
    if principal is not None:
        principal = tx.principals.by_id(principal.id) or tx.stale()
        has_others = tx.roles.is_held_by_others(role, principal)
        has_role = is_created or role.name in tx.roles.held_by(principal)
        if command.is_assigned and not has_role and not has_others:
            tx.stale()
        require_own_role(role, principal, has_role=has_role, has_others=has_others)
    changed_grants: list[Grant] = []
    unchanged = list(command.kept)
    for grants in _group_by_object(command.grants):
        refuse_opposite(tx, role, grants=grants)
        stored_privileges = tx.roles.privileges_on(role, grants[0].object_id)
        new = [each for each in grants if each.privilege not in stored_privileges]
        if new:
            tx.roles.allow(role, new)
        changed_grants += new
        unchanged += [each for each in grants if each.privilege in stored_privileges]
    if principal is not None:
        tx.roles.give(role, principal)
    return PresetOutcome(
        role=role.name,
        is_created=is_created,
        changed=tuple(changed_grants),
        unchanged=tuple(unchanged),
        chain=command.chain,
    )


def require_own_role(role: RoleEntity, principal: Principal, *, has_role: bool, has_others: bool) -> None:
    """Raise InUse for a role that is not the own one of a user or group: others have it, or the user or group has not.

    So is one without grants: it may be excepted from restrictions, or regain those in the trash.
    """
    if has_others:
        raise InUse(
            f"Role {escape_percent(role.name)} is not {principal.kind.word} {escape_percent(principal.name)}'s own:"
            f" others have it, too. Grant the preset to another role, and that role to the {principal.kind.word}",
            kind="role",
        )
    if not has_role:
        raise InUse(
            f"Role {escape_percent(role.name)} exists, and {principal.kind.word} {escape_percent(principal.name)}"
            f" does not have it: it may be of a former {principal.kind.word} of this name, with its grants. Delete"
            " the role, or assign it first if all that it has is meant",
            kind="role",
        )


def _revoke(tx: Tx, command: PresetChange) -> PresetOutcome:
    role = confirm_role(tx, command.role) if command.role is not None else tx.stale()
    stored_privileges = {
        (privilege, object_id)
        for object_id in {each.object_id for each in command.grants}
        for privilege, is_allowed in tx.roles.privileges_on(role, object_id).items()
        if is_allowed
    }
    revoked = revoked_grants(command.grants, stored_privileges=stored_privileges, rules=tx.roles.with_rules(role))
    for grants in _group_by_object(revoked):
        tx.roles.withdraw(role, grants)
    unchanged = [each for each in command.grants if each not in revoked and _key(each) in stored_privileges]
    return PresetOutcome(
        role=role.name, is_created=False, changed=revoked, unchanged=(*command.kept, *unchanged), chain=command.chain
    )


def _key(grant: Grant) -> tuple[int, int]:
    return grant.privilege, grant.object_id


def revoked_grants(
    grants: tuple[Grant, ...], *, stored_privileges: Collection[tuple[int, int]], rules: RoleWithRules
) -> tuple[Grant, ...]:
    """Return those grants that the revocation of a preset removes.

    USE_CATALOG and USE_SCHEMA stay while the role has other grants on the container or in it; USE_CATALOG is none that
    needs USE_SCHEMA. A role with too many grants for one read is assumed to have some.

    Args:
        grants: The grants of the preset.
        stored_privileges: The privileges, with their objects, that the role has on these objects.
        rules: All grants of the role.
    """
    stored_grants = [each for each in grants if _key(each) in stored_privileges]
    revoked = [each for each in stored_grants if each.privilege not in WAY]
    for use in sorted([each for each in stored_grants if each.privilege in WAY], key=_inner_first):
        others = [
            each
            for each in rules.grants
            if each.allowed
            and each != use
            and each not in revoked
            and (use.privilege == Privilege.USE_CATALOG or each.privilege != Privilege.USE_CATALOG)
        ]
        if not rules.in_parts and not _is_needed(use, others, nodes=rules.nodes or {}):
            revoked.append(use)
    return tuple(revoked)


def _inner_first(use: Grant) -> bool:
    """Return the key that sorts USE_SCHEMA before USE_CATALOG, without which it is of no use."""
    return use.privilege == Privilege.USE_CATALOG


def _group_by_object(grants: tuple[Grant, ...]) -> list[tuple[Grant, ...]]:
    ids = dict.fromkeys(each.object_id for each in grants)
    return [tuple([each for each in grants if each.object_id == object_id]) for object_id in ids]


def _is_needed(use: Grant, others: Iterable[Grant], *, nodes: Ancestry) -> bool:
    """Return whether grants on a container, or on objects in it, need USE_CATALOG or USE_SCHEMA on the container."""
    for grant in others:
        at = grant.object_id
        while at != use.object_id and at in nodes:
            at = nodes[at][0]
        if at == use.object_id:
            return True
    return False


def named_grants(outcome: PresetOutcome, grants: tuple[Grant, ...]) -> list[tuple[str, Kind, str]]:
    """Return the privileges of some grants of an outcome, with the kinds and names of their objects."""
    names = dict(zip((link.id for link in outcome.chain), display_names(outcome.chain), strict=True))
    return [(Privilege(each.privilege).name, each.object_kind, names[each.object_id]) for each in grants]
