# SPDX-License-Identifier: Apache-2.0
"""Owners of objects: load and set. An owner belongs to its object's zone.

Must not know any wire format.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import Decision
from limnos.model.entities import Principal
from limnos.model.errors import PermissionDenied
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.services.federation.placeholder_nodes import read_attached, with_placeholders
from limnos.services.identity.last_owners import metalake_owner_check
from limnos.services.identity.users import principal_require
from limnos.services.lookup.securables import SecurableTarget, scope_for, target_require
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact
from limnos.view.keys import principal_id_key

_MANAGE: Final = {Kind.USER: Action.USER_MANAGE, Kind.GROUP: Action.GROUP_MANAGE}


class OwnerSet(msgspec.Struct, frozen=True):
    """The command to make a user or group the owner of an object."""

    target: SecurableTarget
    principal: Principal


async def owner_load(ctx: Context, *, metalake: str, kind: Kind, full_name: str) -> Principal | None:
    """Return an object's owner to a caller who may load the object; None if it has no owner.

    Raises NotFound, PermissionDenied.
    """

    def read(request_view: RequestView) -> Principal | None:
        if kind is not Kind.METALAKE:  # clients load the owner of a disabled metalake before they enable it again
            request_view.require_in_metalake_use()
        codec = codec_of(request_view)
        target = target_require(request_view, kind, full_name, codec, Action.OWNER_LOAD)
        owner_id = request_view.owner_of(target.chain[0])
        if owner_id is None:
            return None
        return require_fact(request_view.view, principal_id_key(owner_id), zone=request_view.metalake.id)

    return await read_attached(ctx, scope_for(metalake, kind, full_name), reader=read, otherwise=lambda *_: None)


@with_placeholders
async def owner_set(ctx: Context, *, metalake: str, kind: Kind, full_name: str, owner_kind: Kind, owner: str) -> None:
    """Set an object's owner. A new owner other than the caller and the caller's groups needs the right to manage that
    user or group, too.

    Raises NotFound (the object or the new owner), NotInUse, PermissionDenied, BadRequest for a metalake and a group
    without an enabled member.
    """

    def decide(request_view: RequestView) -> Permit[OwnerSet]:
        action = _setting_action(request_view, kind)
        if action is not Action.METALAKE_TAKE:
            request_view.require_in_metalake_use()
        target = target_require(request_view, kind, full_name, codec_of(request_view), action)
        decision = request_view.require(action, target.chain)
        principal = principal_require(request_view, owner_kind, owner)
        consents = [] if action is Action.METALAKE_TAKE else _recipient_decisions(request_view, principal)
        command = OwnerSet(target, principal)
        return request_view.permit(command, decision, *consents, zone=request_view.zone_of(kind))

    await ctx.write(scope_for(metalake, kind, full_name), decide, owner_write)


def _setting_action(request_view: RequestView, kind: Kind) -> Action:
    """Return the action that sets an owner: a service admin may give a metalake another owner though the caller neither
    owns nor uses it, also a disabled one.
    """
    chain = request_view.settled.outer[-1:]
    if kind is not Kind.METALAKE or request_view.decide(Action.OWNER_SET, chain).allowed:
        return Action.OWNER_SET
    return Action.METALAKE_TAKE if request_view.decide(Action.METALAKE_TAKE, chain).allowed else Action.OWNER_SET


def _recipient_decisions(request_view: RequestView, principal: Principal) -> list[Decision]:
    """Return the decisions that let the caller make a principal the owner of something: none for the caller and the
    caller's groups, else the right to manage that user or group.

    Raises PermissionDenied: nobody becomes an owner without consent.
    """
    if principal.id in request_view.subject.principal_ids:
        return []
    decision = request_view.decide(_MANAGE[principal.kind], request_view.settled.outer[-1:])
    if decision.allowed:
        return [request_view.require(_MANAGE[principal.kind], request_view.settled.outer[-1:])]
    word, privilege = principal.kind.word, "MANAGE_USERS" if principal.kind is Kind.USER else "MANAGE_GROUPS"
    raise PermissionDenied(
        f"You may not make {word} {principal.name} an owner: owners give objects to themselves and to their own groups."
        f" Give it to a group of which you both are members, from which the other one takes it, or ask a user with"
        f" {privilege} on the metalake",
        decision=decision,
    )


def owner_write(tx: Tx, permit: Permit[OwnerSet]) -> None:
    """Write the owner, if the object and the new owner still exist.

    Raises BadRequest for a metalake and a group without an enabled member, or a disabled user.
    """
    target, principal = permit.command.target, permit.command.principal
    space, name = "", None
    if target.node is not None:
        node = tx.nodes.confirm(target.node)
        space, name = node.name_space, node.name
    elif not tx.roles.is_alive(target.id):
        tx.stale()
    if tx.principals.by_id(principal.id) is None:
        tx.stale()
    parent_id = ROOT_ID if target.kind is Kind.METALAKE else target.node.parent_id if target.node else None
    tx.owners.set(target.id, target.kind, principal.id, parent_id=parent_id, space=space, name=name)
    if target.kind is Kind.METALAKE:
        metalake_owner_check(tx, target.id)
