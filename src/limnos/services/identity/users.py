# SPDX-License-Identifier: Apache-2.0
"""Users and groups of a metalake: add, load, list and remove; enable and disable users.

Must not know any wire format.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.access.principal_names import check_new_name, check_principal_name
from limnos.access.subjects import principal_of
from limnos.model.entities import Principal
from limnos.model.errors import (
    AlreadyExists,
    AuthenticationFailed,
    BadRequest,
    NotFound,
    PermissionDenied,
    ServiceUnavailable,
)
from limnos.model.kinds import Kind
from limnos.model.permits import Permit, upkeep_permit
from limnos.model.privileges import escape_percent
from limnos.services.identity.last_owners import metalake_owner_check, owner_check
from limnos.services.identity.principal_bindings import may_lift, principal_bindings_check
from limnos.services.lookup.principal_names import principal_create
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.context import Context
from limnos.services.request.defaults import AccessSettings
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.principals import UserStatus
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact, require_facts
from limnos.view.keys import holders_key, principals_key, roles_key, rules_key

_ACTIONS = {
    Kind.USER: (Action.USER_MANAGE, Action.USER_LOAD, Action.USER_LIST),
    Kind.GROUP: (Action.GROUP_MANAGE, Action.GROUP_LOAD, Action.GROUP_LIST),
}


_SETS_NOTHING = (
    "User {user} is disabled and sets no password: an administrator can enable it, 'limnos user enable {user}'"
)
_DISABLED = "User {user} is disabled and gets no tokens: an administrator can enable it, 'limnos user enable {user}'"


class RoleHolder(NamedTuple):
    """A user or group with the names of its directly assigned roles."""

    principal: Principal
    roles: tuple[str, ...]


class PrincipalAdd(msgspec.Struct, frozen=True, kw_only=True):
    """The command to add a user or group to a metalake."""

    metalake_id: int
    kind: Kind
    name: str
    external_id: str | None
    enabled: bool


class PrincipalRemove(msgspec.Struct, frozen=True):
    """The command to remove a user or group. `lifts` states whether the caller may lift denials of all users."""

    principal: Principal
    lifts: bool = False


class UserEnable(msgspec.Struct, frozen=True):
    """The command to enable or disable a user."""

    user: Principal
    enabled: bool


def principal_require(request_view: RequestView, kind: Kind, name: str) -> Principal:
    """Return a user or group by name. Raises NotFound."""
    principal = principal_of(request_view.view, request_view.metalake.id, kind, name)
    if principal is None:
        raise request_view.missing(kind, (name,))
    return principal


def principal_look_up(request_view: RequestView, kind: Kind, name: str, action: Action) -> AuthorizedObject[Principal]:
    """Find a user or group for a caller who may do the action on it. Raises NotFound, NotInUse, PermissionDenied."""
    request_view.require_in_use()
    return request_view.judge(principal_of(request_view.view, request_view.metalake.id, kind, name), kind, name, action)


def holder_of(request_view: RequestView, principal: Principal) -> RoleHolder:
    """Return a principal with the names of its direct roles."""
    return RoleHolder(principal, role_names(request_view, principal.id))


def role_names(request_view: RequestView, principal_id: int) -> tuple[str, ...]:
    """Return the names of a principal's direct roles, sorted."""
    zone = request_view.metalake.id
    ids = require_fact(request_view.view, roles_key(principal_id), zone=zone)
    facts = require_facts(request_view.view, [rules_key(role_id) for role_id in ids], zone=zone)
    return tuple(sorted(fact[0].name for fact in facts if fact is not None))


def principal_load(request_view: RequestView, kind: Kind, name: str) -> RoleHolder:
    """Return a user or group, to itself and to callers who manage them. Raises NotFound, NotInUse, PermissionDenied."""
    return holder_of(request_view, principal_look_up(request_view, kind, name, _ACTIONS[kind][1]).entity)


def may_create(request_view: RequestView, kind: Kind) -> bool:
    """Return whether the caller may create users, groups or roles. No refusal is recorded in the audit."""
    action = Action.ROLE_CREATE if kind is Kind.ROLE else _ACTIONS[kind][0]
    return request_view.decide(action, request_view.settled.outer).allowed


def principals_list(request_view: RequestView, kind: Kind) -> list[Principal]:
    """Return the users or groups that are visible to the caller, by name. Raises NotInUse, PermissionDenied."""
    request_view.require_in_use()
    action = _ACTIONS[kind][2]
    request_view.require(action, request_view.settled.outer)
    principals = require_fact(request_view.view, principals_key(request_view.metalake.id, kind), zone=request_view.zone)
    output = list_filter(request_view.subject, action, request_view.settled.outer, request_view.owner_of)
    positions = output.positions([each.id for each in principals], [None] * len(principals))
    return [principals[position] for position in positions]


def holders_list(request_view: RequestView, kind: Kind) -> list[RoleHolder]:
    """Return the users or groups that are visible to the caller, with their roles.

    Raises NotInUse, PermissionDenied.
    """
    principals = principals_list(request_view, kind)
    fact = require_fact(request_view.view, holders_key(request_view.metalake.id, kind), zone=request_view.zone)
    roles = dict(fact)
    return [RoleHolder(each, roles.get(each.id, ())) for each in principals]


def check_sign_in(rules: AccessSettings, user_status: UserStatus, *, user: str) -> None:
    """Refuse to sign in a user who is disabled in every metalake that has the user. Service admins are exempt.

    Raises AuthenticationFailed.
    """
    if _is_disabled(rules, user_status, user=user):
        raise AuthenticationFailed(_DISABLED.format(user=escape_percent(user)), was_right=True, principal=user)


def check_enabled(rules: AccessSettings, user_status: UserStatus, *, user: str) -> None:
    """Refuse a change of the password of a user who is disabled in every metalake. Raises PermissionDenied."""
    if _is_disabled(rules, user_status, user=user):
        raise PermissionDenied(_SETS_NOTHING.format(user=escape_percent(user)))


def check_token_holder(rules: AccessSettings, user_status: UserStatus, *, user: str) -> None:
    """Refuse tokens for users that no metalake has, and for users disabled in every metalake.

    Service admins are exempt. Without access control, a missing user is allowed. Raises NotFound, PermissionDenied,
    BadRequest (a name that is not allowed for new users).
    """
    if _is_disabled(rules, user_status, user=user):
        raise PermissionDenied(_DISABLED.format(user=escape_percent(user)))
    if user_status.is_known or user in rules.service_admins:
        return
    if rules.access_enabled:
        raise _missing_user(user, credential="token")
    check_new_name(user, Kind.USER, known=rules.service_admins)


def check_secret_holder(tx: Tx, rules: AccessSettings, *, user: str) -> None:
    """Refuse a secret for a service account that is no user of any metalake, and so has no rights.

    Service admins are exempt. Without access control, a missing user is allowed. Raises NotFound, BadRequest (a name
    that is not allowed for new users).
    """
    if user in rules.service_admins or tx.principals.user_status(user).is_known:
        return
    check_new_name(user, Kind.USER, known=rules.service_admins)
    if rules.access_enabled:
        raise _missing_user(user, credential="secret")


def _missing_user(user: str, *, credential: str) -> NotFound:
    return NotFound(
        f"User {escape_percent(user)} does not exist in any metalake, so it gets no {credential}: add it first, 'limnos"
        f" create user {escape_percent(user)}'",
        kind="user",
    )


def _is_disabled(rules: AccessSettings, user_status: UserStatus, *, user: str) -> bool:
    return rules.access_enabled and user_status.is_disabled and user not in rules.service_admins


async def users_require(ctx: Context, *, metalake: str) -> None:
    """Check that the caller may manage the metalake's users. Raises NotInUse, NotFound, PermissionDenied."""

    def require(request_view: RequestView) -> None:
        request_view.require_in_use()
        request_view.require(Action.USER_MANAGE, request_view.settled.outer)

    await ctx.read(RequestScope(metalake), require)


async def principal_add(
    ctx: Context, *, metalake: str, kind: Kind, name: str, external_id: str | None = None, enabled: bool = True
) -> RoleHolder:
    """Add a user or group.

    Raises AlreadyExists for the name or the external id, BadRequest for the name, NotFound, NotInUse, PermissionDenied.
    """
    check_principal_name(name, kind)

    def decide(request_view: RequestView) -> Permit[PrincipalAdd]:
        request_view.require_in_use()
        decision = request_view.require(_ACTIONS[kind][0], request_view.settled.outer)
        if principal_of(request_view.view, request_view.metalake.id, kind, name) is not None:
            raise AlreadyExists(
                f"{kind.word.capitalize()} {name} already exists in metalake {metalake}", kind=kind.word
            )
        check_new_name(name, kind, known=request_view.rules.service_admins)
        return request_view.permit(
            PrincipalAdd(
                metalake_id=request_view.metalake.id, kind=kind, name=name, external_id=external_id, enabled=enabled
            ),
            decision,
        )

    return await ctx.write(RequestScope(metalake), decide, principal_insert)


def principal_insert(tx: Tx, permit: Permit[PrincipalAdd]) -> RoleHolder:
    """Insert the user or group."""
    command = permit.command
    principal = principal_create(
        tx,
        command.metalake_id,
        kind=command.kind,
        name=command.name,
        external_id=command.external_id,
        enabled=command.enabled,
    )
    return RoleHolder(principal, ())


async def principal_remove(ctx: Context, *, metalake: str, kind: Kind, name: str) -> None:
    """Remove a user or group.

    Raises NotFound, BadRequest for the metalake's owner, PermissionDenied, InUse if a restriction names it, or if it
    owns a catalog or namespace.
    """
    await ctx.write(
        RequestScope(metalake),
        lambda request_view: principal_remove_of(request_view, kind, name=name),
        principal_delete,
    )


def principal_remove_of(request_view: RequestView, kind: Kind, *, name: str) -> Permit[PrincipalRemove]:
    """Decide on removing a user or group. Raises NotFound, BadRequest for the metalake's owner, PermissionDenied."""
    request_view.require_in_use()
    decision = request_view.require(_ACTIONS[kind][0], request_view.settled.outer)
    principal = principal_require(request_view, kind, name)
    if request_view.owner_of(request_view.settled.outer[-1]) == principal.id:
        metalake = request_view.metalake.name
        raise BadRequest(f"{kind.word.capitalize()} {name} owns metalake {metalake}: give it another owner first")
    return request_view.permit(PrincipalRemove(principal, may_lift(request_view)), decision)


def principal_delete(tx: Tx, permit: Permit[PrincipalRemove]) -> None:
    """Delete the permit's user or group.

    Raises StalePermit if it was deleted after the access decision, InUse (it owns containers, or restrictions name it),
    BadRequest (the metalake would lose its last owner), PermissionDenied.
    """
    principal = tx.principals.by_id(permit.command.principal.id)
    if principal is None:
        tx.stale()
    principal_bindings_check(
        tx,
        principal.id,
        kind=principal.kind,
        name=principal.name,
        metalake_id=principal.metalake_id,
        lifts=permit.command.lifts,
    )
    owner_check(tx, principal, names=permit.command.lifts)
    tx.principals.drop(principal)
    metalake_owner_check(tx, principal.metalake_id)


async def user_enable(ctx: Context, *, metalake: str, name: str, enabled: bool) -> Principal:
    """Enable or disable a user. Every node refuses a disabled user from the next request on. Idempotent.

    Sessions of a user who is then disabled in every metalake end for good, and so do the tokens created with them: if
    the store is lost meanwhile, then before the user is enabled again.

    Raises NotFound, BadRequest for the metalake's owner, PermissionDenied.
    """

    def decide(request_view: RequestView) -> Permit[UserEnable]:
        request_view.require_in_use()
        decision = request_view.require(Action.USER_MANAGE, request_view.settled.outer)
        principal = principal_require(request_view, Kind.USER, name)
        if not enabled and request_view.owner_of(request_view.settled.outer[-1]) == principal.id:
            raise BadRequest(f"User {name} owns metalake {metalake}: give it another owner before disabling the user")
        return request_view.permit(UserEnable(principal, enabled), decision)

    end = partial(_end_sign_ins, rules=ctx.services.rules, user=name)
    if enabled:
        await ctx.read(RequestScope(metalake), decide)
        await ctx.services.store.submit(upkeep_permit("limnos"), end)
    has_changed = await ctx.write(RequestScope(metalake), decide, user_update)
    if not enabled:
        with suppress(ServiceUnavailable):
            await ctx.services.store.submit(upkeep_permit("limnos"), end)
    return has_changed


def _end_sign_ins(tx: Tx, *, rules: AccessSettings, user: str) -> None:
    """Revoke the tokens that come from sign-ins of a user, if the user is still disabled in every metalake."""
    if _is_disabled(rules, tx.principals.user_status(user), user=user):
        tx.tokens.close(user)


def user_update(tx: Tx, permit: Permit[UserEnable]) -> Principal:
    """Store whether the user is enabled. Raises BadRequest if the metalake would lose its last owner."""
    principal = tx.principals.by_id(permit.command.user.id)
    if principal is None:
        tx.stale()
    tx.principals.enable(principal, enabled=permit.command.enabled)
    if not permit.command.enabled:
        metalake_owner_check(tx, principal.metalake_id)
    return tx.principals.by_id(principal.id) or tx.stale()
