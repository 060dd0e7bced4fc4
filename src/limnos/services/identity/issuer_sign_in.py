# SPDX-License-Identifier: Apache-2.0
"""Issuer sign-in: verifies a token of an external issuer, and stores its user and memberships in the metalakes.

Must not know any wire format or the network: `ISSUER.of(services)` fetches the issuer's keys. The token's user becomes
a user of the metalakes in the settings, and a member of their existing groups that the newest token names. This happens
before the request is authorized, so explanations, lists and other nodes need no special case.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from limnos.access.actions import Action
from limnos.access.authentication import Credential
from limnos.access.principal_names import check_new_name
from limnos.access.subjects import principal_of
from limnos.model.decisions import Decision, DecisionFactor
from limnos.model.entities import Principal
from limnos.model.errors import AuthenticationFailed, BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.model.principals import IssuerIdentity
from limnos.services.identity.issuer import ISSUER
from limnos.services.lookup.principal_names import principal_create
from limnos.services.request.concurrency.per_key_queue import PerKeyQueue
from limnos.services.request.context import Context
from limnos.services.request.node_services import AuditedRequest, ComponentKey, NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.principals import signed_in_read, user_status_read
from limnos.store.objects.setting_names import setting_names_read
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each


class UserSignIn(msgspec.Struct, frozen=True):
    """The command to store the user and memberships of an issuer's token; `groups` is None if the token has no claim
    for groups.
    """

    metalake_id: int
    user: str
    issued_ms: int
    groups: tuple[Principal, ...] | None


async def sign_in(
    services: NodeServices, header: bytes, *, request_id: str, audited_request: AuditedRequest | None = None
) -> Credential:
    """Verify the JWT of an Authorization header and store its user in the metalakes; requests with equal headers are
    coalesced.

    Raises AuthenticationFailed for an invalid token, ServiceUnavailable if the issuer's keys cannot be fetched.
    """
    authenticator = services.authenticator
    async with SIGN_INS.of(services).turn(hash(header)):
        result = authenticator.credential(header)
        if result is not None:
            return result
        identity = await ISSUER.of(services).identity(header[len("bearer ") :].strip().decode("latin-1"))
        credential = await store_identity(services, identity, request_id=request_id, audited_request=audited_request)
        authenticator.remember(header, credential, for_s=ISSUER.of(services).remember_s)
        return credential


async def store_identity(
    services: NodeServices, identity: IssuerIdentity, *, request_id: str, audited_request: AuditedRequest | None = None
) -> Credential:
    """Store the user and the group memberships of a verified token in the metalakes of the settings.

    Returns the user's credential.

    Raises AuthenticationFailed for a new user whose name is not allowed.
    """
    credential = Credential(user=identity.user, expires_ms=identity.expires_ms, signed_in_ms=identity.signed_in_ms)
    ctx = Context(services, credential, request_id, audited_request=audited_request)
    try:
        await _check_user(ctx, identity.user)
        for metalake in await _metalakes(ctx):
            # The metalake does not exist, or the user is disabled; sign-in does not enable a user.
            with suppress(NotFound, PermissionDenied):
                await _write_user(ctx, metalake, identity=identity)
    except BadRequest as error:
        raise AuthenticationFailed(
            f"The token of the external issuer has an invalid user name: {error.message}"
        ) from error
    return credential


async def _metalakes(ctx: Context) -> list[str]:
    """Return the current names of the metalakes of the settings, which name them as they were created."""
    metalake_names = ISSUER.of(ctx.services).metalakes
    names = await ctx.look_up(setting_names_read) if metalake_names else {}
    return [names[each][1] for each in metalake_names if each in names]


async def _check_user(ctx: Context, user: str) -> None:
    """Refuse an unknown user whose name is not allowed for new users. Raises BadRequest for such a name."""
    admins = ctx.services.rules.service_admins
    if user in admins:
        return
    try:
        check_new_name(user, Kind.USER, known=admins)
    except BadRequest:
        if not (await ctx.look_up(lambda: user_status_read(user))).is_known:
            raise


async def _write_user(ctx: Context, metalake: str, *, identity: IssuerIdentity) -> None:
    """Add the user to a metalake if it is missing, and replace its group memberships if the token is newer."""
    user = await ctx.read(
        RequestScope(metalake),
        lambda request_view: principal_of(request_view.view, request_view.zone, Kind.USER, identity.user),
    )
    if user is not None:
        if identity.groups is None:
            return
        newest_issue_ms = await ctx.look_up(lambda: signed_in_read(user.id))
        if newest_issue_ms is not None and newest_issue_ms >= identity.issued_ms:
            return

    def decide(request_view: RequestView) -> Permit[UserSignIn]:
        groups = None if identity.groups is None else _known_groups(request_view, identity.groups)
        reason = Decision(
            allowed=True,
            action=Action.USER_LOAD.word,
            target_id=ROOT_ID,
            target="server",
            user=identity.user,
            factors=(DecisionFactor(kind="self"),),
            revision=request_view.stamps,
        )
        return request_view.permit(
            UserSignIn(request_view.metalake.id, identity.user, identity.issued_ms, groups), reason
        )

    await ctx.write(RequestScope(metalake), decide, user_sign_in)


def _known_groups(request_view: RequestView, names: tuple[str, ...]) -> tuple[Principal, ...]:
    """Return the groups that exist in the metalake; the issuer's other groups are ignored."""
    principals = for_each(
        names, lambda name: principal_of(request_view.view, request_view.metalake.id, Kind.GROUP, name)
    )
    return tuple(group for group in principals if group is not None)


def user_sign_in(tx: Tx, permit: Permit[UserSignIn]) -> None:
    """Add a missing user, and replace the user's group memberships from the issuer by those of the token, unless a
    newer token was stored.
    """
    command = permit.command
    user = tx.principals.find(command.metalake_id, Kind.USER, command.user)
    if user is None:
        user = principal_create(tx, command.metalake_id, kind=Kind.USER, name=command.user)
    if not tx.principals.sign_in(user, command.issued_ms) or command.groups is None:
        return
    groups = [tx.principals.by_id(group.id) or tx.stale() for group in command.groups]
    tx.principals.issue(user, groups)


SIGN_INS: ComponentKey[PerKeyQueue] = ComponentKey("sign_ins", lambda _: PerKeyQueue())
