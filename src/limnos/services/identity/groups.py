# SPDX-License-Identifier: Apache-2.0
"""Group members: list, add and remove; the groups of a user. `services.identity.users` adds and removes the groups
themselves.

Must not know any wire format.
"""

from __future__ import annotations

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink
from limnos.model.entities import Principal
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.services.identity.last_owners import metalake_owner_check
from limnos.services.identity.users import principal_look_up, principal_require
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each, require_fact, require_facts
from limnos.view.keys import groups_key, members_key, principal_id_key

MEMBERS_MAX = 1_000
"""The maximum number of users that one request may add to a group."""


class MembersAdd(msgspec.Struct, frozen=True):
    """The command to add users to a group."""

    group: Principal
    users: tuple[Principal, ...]


class MemberRemove(msgspec.Struct, frozen=True):
    """The command to remove a user from a group."""

    group: Principal
    user: Principal


def members_list(request_view: RequestView, group: str) -> tuple[str, ...]:
    """Return the names of a group's members, to its members and to a caller who manages groups.

    Raises NotFound, NotInUse, PermissionDenied.
    """
    principal = principal_look_up(request_view, Kind.GROUP, group, Action.GROUP_LOAD).entity
    return require_fact(request_view.view, members_key(principal.id), zone=request_view.zone)


def may_change_members(request_view: RequestView, group: str) -> bool:
    """Return whether the caller may add and remove members of a group. No refusal is recorded in the audit.

    Raises NotFound, NotInUse, PermissionDenied for a group that the caller may not load.
    """
    chain = principal_look_up(request_view, Kind.GROUP, group, Action.GROUP_LOAD).chain
    return request_view.decide(Action.GROUP_MEMBERS, chain).allowed


def groups_of_user(request_view: RequestView, user: str) -> tuple[str, ...]:
    """Return the names of a user's groups that the caller may load, sorted.

    Raises NotFound, NotInUse, PermissionDenied for a user that the caller may not load.
    """
    principal, chain, _ = principal_look_up(request_view, Kind.USER, user, Action.USER_LOAD)
    ids = require_fact(request_view.view, groups_key(principal.id), zone=request_view.zone)
    groups = require_facts(request_view.view, [principal_id_key(each) for each in ids], zone=request_view.zone)
    return tuple(
        sorted(
            each.name
            for each in groups
            if each is not None
            and request_view.decide(Action.GROUP_LOAD, (ChainLink(each.id, Kind.GROUP, each.name), *chain[1:])).allowed
        )
    )


async def members_add(ctx: Context, *, metalake: str, group: str, users: tuple[str, ...]) -> tuple[str, ...]:
    """Add users to a group atomically; existing members are not an error.

    Returns the names of all members. Raises NotFound for a group or user, BadRequest for too many users,
    PermissionDenied.
    """
    if len(users) > MEMBERS_MAX:
        raise BadRequest(f"{len(users)} users in one request are more than the {MEMBERS_MAX} that are allowed")

    def decide(request_view: RequestView) -> Permit[MembersAdd]:
        principal, _, decision = principal_look_up(request_view, Kind.GROUP, group, Action.GROUP_MEMBERS)
        members = tuple(for_each(users, lambda name: principal_require(request_view, Kind.USER, name)))
        return request_view.permit(MembersAdd(principal, members), decision)

    return await ctx.write(RequestScope(metalake), decide, members_insert)


def members_insert(tx: Tx, permit: Permit[MembersAdd]) -> tuple[str, ...]:
    """Insert the memberships. Returns the names of all members."""
    group = tx.principals.by_id(permit.command.group.id) or tx.stale()
    for user in permit.command.users:
        tx.principals.join(group, tx.principals.by_id(user.id) or tx.stale())
    return tx.principals.members(group)


async def member_remove(ctx: Context, *, metalake: str, group: str, user: str) -> bool:
    """Remove a user from a group. Returns whether the user was a member.

    Raises NotFound, PermissionDenied, BadRequest for the last enabled member of the metalake's owner.
    """

    def decide(request_view: RequestView) -> Permit[MemberRemove]:
        principal, _, decision = principal_look_up(request_view, Kind.GROUP, group, Action.GROUP_MEMBERS)
        member = principal_require(request_view, Kind.USER, user)
        return request_view.permit(MemberRemove(principal, member), decision)

    return await ctx.write(RequestScope(metalake), decide, member_delete)


def member_delete(tx: Tx, permit: Permit[MemberRemove]) -> bool:
    """Delete the membership. Returns whether it existed.

    Raises BadRequest if the metalake would lose its last owner.
    """
    group = tx.principals.by_id(permit.command.group.id) or tx.stale()
    user = tx.principals.by_id(permit.command.user.id) or tx.stale()
    was_member = tx.principals.remove_member(group, user)
    metalake_owner_check(tx, group.metalake_id)
    return was_member
