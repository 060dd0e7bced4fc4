# SPDX-License-Identifier: Apache-2.0
"""API tokens: create, list, revoke. Users manage their own, service admins all.

Must not know any wire format. A token's secret leaves this module only once, when it is created. A token that is
created with a credential ends with it at the latest (`CredentialOrigin`).
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.access.authentication import ANONYMOUS, hash_secret, new_secret, token_text
from limnos.access.principal_names import check_new_user, check_principal_name
from limnos.model.decisions import Decision, DecisionFactor
from limnos.model.entities import Token
from limnos.model.errors import AuthenticationFailed, BadRequest, InUse, NotFound, PermissionDenied
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.model.principals import TokenPurpose, TokenTrust
from limnos.model.privileges import escape_percent
from limnos.services.identity.credential_states import ListedCredential, with_states
from limnos.services.identity.issuer_sign_in import sign_in
from limnos.services.identity.users import check_sign_in, check_token_holder
from limnos.services.request.context import Context
from limnos.services.request.defaults import AccessSettings
from limnos.services.request.multi_catalog_reads import read_of_server, refuse_former
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.principals import user_status_read
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact
from limnos.view.keys import token_key, tokens_key

STATEMENT_PREFIX: Final = "statement "
"""The beginning of the names of tokens that the server makes for SQL++ statements."""

EXPIRES_MAX_S = 100 * 365 * 24 * 3600
TOKENS_MAX: Final = 1_000
"""The maximum number of valid API tokens of a user."""
_OVER: Final = "The credential of this request has ended: sign in again, or create a new token"
_NO_MINTING: Final = "This token was made by the server for its own work, and creates no credentials"
_SERVER_WORK: Final = (TokenPurpose.WORK, TokenPurpose.OPERATION)
_SIGN_INS: Final = (TokenPurpose.SESSION, TokenPurpose.REFRESH, TokenPurpose.CONSOLE, TokenPurpose.CONSOLE_CODE)


class CredentialOrigin(NamedTuple):
    """The properties that a new credential inherits from the credential of the request that creates it."""

    trust: TokenTrust
    """Never more than the trust of the request's credential."""
    root_id: int | None = None
    """The root of the token family; None for the root of a new family."""
    opened_by: int | None = None
    """The token of the request, whose revocation also revokes the new token."""
    expires_ms: int | None = None
    """The latest end, in milliseconds since 1970; None if the request's credential does not expire."""
    signed_in_ms: int | None = None
    """The time of the sign-in from which the credential comes; None if it does not come from a sign-in."""

    def end_ms(self, now_ms: int, *, lives_s: int | None) -> int | None:
        """Return the end of a new token with a requested lifetime in seconds; None if it does not expire."""
        ends = now_ms + lives_s * 1000 if lives_s is not None else None
        return self.expires_ms if ends is None else ends if self.expires_ms is None else min(ends, self.expires_ms)


class TokenCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a token for a user."""

    user: str
    name: str
    secret_hash: bytes
    expires_in_s: int | None
    origin: CredentialOrigin
    rules: AccessSettings
    purpose: TokenPurpose = TokenPurpose.API


class TokenRevoke(msgspec.Struct, frozen=True):
    """The command to revoke a token, from the next request on every node."""

    token: Token


def _may(request_view: RequestView, user: str | None) -> Decision:
    """Return the decision on managing the tokens of a user, or of all users if `user` is None. Users may always manage
    their own. Raises PermissionDenied.
    """
    if request_view.user == ANONYMOUS:
        raise PermissionDenied("The anonymous user has no tokens: authenticate by Basic or with a token")
    if user == request_view.user:
        return Decision(
            allowed=True,
            action=Action.TOKEN_MANAGE_OTHERS.word,
            target_id=ROOT_ID,
            target="server",
            user=user,
            factors=(DecisionFactor(kind="self"),),
            revision=request_view.stamps,
        )
    return request_view.require(Action.TOKEN_MANAGE_OTHERS, ())


def tokens_list(request_view: RequestView, user: str | None) -> tuple[Token, ...]:
    """Return a user's tokens without their secrets; of all users if `user` is None. Raises PermissionDenied."""
    _may(request_view, user)
    return require_fact(request_view.view, tokens_key(user), zone=ROOT_ID)


async def tokens_visible(ctx: Context, user: str | None, *, everybody: bool = False) -> tuple[ListedCredential, ...]:
    """Return the tokens of the caller, of another user, or of all users, without their secrets, each with its state.

    Raises PermissionDenied.
    """

    def visible(request_view: RequestView) -> tuple[Token, ...]:
        return tokens_list(request_view, None if everybody else user or request_view.user)

    async def work() -> tuple[ListedCredential, ...]:
        return await with_states(ctx, await ctx.read(RequestScope(), visible))

    return await read_of_server(ctx, require=visible, work=work)


def own_token(ctx: Context, request_view: RequestView) -> Token | None:
    """Return the token of the request; None for a request with a token of the issuer, or with a name without proof."""
    if ctx.credential.user is not None:
        return None
    return cast("Token", require_fact(request_view.view, token_key(ctx.credential.token_id), zone=ROOT_ID))


def origin_of(ctx: Context, request_view: RequestView, *, user: str, by_server: bool = False) -> CredentialOrigin:
    """Return the properties that a new credential of a user inherits from the credential of the request.

    A credential for the caller ends with that of the request. One for another user is an act of a service admin: it
    does not end with the admin's sign-in, but at the latest when an API token of the admin expires.
    """
    caller_token = own_token(ctx, request_view)
    trust = _trust_of(ctx, request_view, own=caller_token)
    if by_server:
        trust = TokenTrust.PROVEN
    if user != request_view.user:
        is_bound = (
            caller_token is not None and caller_token.purpose is TokenPurpose.API and caller_token.signed_in_at is None
        )
        return CredentialOrigin(
            trust=trust, expires_ms=caller_token.expires_at if caller_token is not None and is_bound else None
        )
    if caller_token is None:
        ends_ms = ctx.credential.expires_ms
        return CredentialOrigin(
            trust=trust, expires_ms=ends_ms, signed_in_ms=None if ends_ms is None else ctx.credential.signed_in_ms or 0
        )
    signed_in_ms = caller_token.signed_in_at
    if signed_in_ms is None and caller_token.purpose in _SIGN_INS and caller_token.opened_by is None:
        signed_in_ms = caller_token.created_at  # of an earlier release, which did not record sign-ins
    return CredentialOrigin(
        trust=trust,
        root_id=caller_token.root_id,
        opened_by=caller_token.id,
        expires_ms=caller_token.expires_at,
        signed_in_ms=signed_in_ms,
    )


def _trust_of(ctx: Context, request_view: RequestView, *, own: Token | None) -> TokenTrust:
    if not request_view.rules.access_enabled:
        return TokenTrust.OPEN
    if own is not None:
        return own.trust
    return TokenTrust.BELIEVED if ctx.credential.expires_ms is None else TokenTrust.PROVEN


def require_minting(ctx: Context, request_view: RequestView) -> None:
    """Refuse a request that creates credentials, or changes a password, with a token that the server made for its own
    work. Raises PermissionDenied.
    """
    caller_token = own_token(ctx, request_view)
    if caller_token is not None and caller_token.purpose in _SERVER_WORK:
        raise PermissionDenied(_NO_MINTING)


def require_valid(tx: Tx, token_id: int | None) -> None:
    """Refuse a new credential if the token that creates it has ended. Raises AuthenticationFailed."""
    token = None if token_id is None else tx.tokens.by_id(token_id)
    if token_id is not None and (token is None or token.revoked or token.is_over(tx.now_ms)):
        raise AuthenticationFailed(_OVER, was_right=True)


def check_life(expires_in_s: int | None) -> None:
    """Check the lifetime of a token, in seconds; None for no expiry. Raises BadRequest if it is not from 1 to
    `EXPIRES_MAX_S`.
    """
    if expires_in_s is not None and not 0 < expires_in_s <= EXPIRES_MAX_S:
        raise BadRequest(f"A token must expire in 1 to {EXPIRES_MAX_S} seconds, or never, not in {expires_in_s}")


async def token_create(
    ctx: Context,
    *,
    user: str | None,
    name: str,
    expires_in_s: int | None,
    by_server: bool = False,
    purpose: TokenPurpose = TokenPurpose.API,
) -> tuple[Token, str]:
    """Create a token for the caller or another user.

    Args:
        ctx: The request.
        user: The token's user; None for the caller.
        name: The token's name.
        expires_in_s: The token's lifetime in seconds; None for no expiry. It ends earlier if the credential of the
            request does.
        by_server: Whether the server creates it for its own administrator, whom its settings trust.
        purpose: `WORK` for a token with which the server works on behalf of the caller, `ACCESS` for one that a client
            gets for an API token.

    Returns:
        The token, and its text, which the server does not store.

    Raises:
        BadRequest: The lifetime or the user's name is not allowed.
        PermissionDenied: The caller may not create it, or the user is disabled.
        NotFound: The user does not exist in any metalake.
        InUse: The user has `TOKENS_MAX` valid tokens.
    """
    check_life(expires_in_s)
    if user is not None:
        check_principal_name(user, Kind.USER)
    secret = new_secret()

    def decide(request_view: RequestView) -> Permit[TokenCreate]:
        whose = user or request_view.user
        decision = _may(request_view, whose)
        require_minting(ctx, request_view)
        command = TokenCreate(
            user=whose,
            name=name,
            secret_hash=hash_secret(secret),
            expires_in_s=expires_in_s,
            origin=origin_of(ctx, request_view, user=whose, by_server=by_server),
            rules=request_view.rules,
            purpose=purpose,
        )
        return request_view.permit(command, decision)

    await refuse_former(ctx)
    token = await ctx.write(RequestScope(), decide, token_insert)
    return token, token_text(token.id, secret)


async def token_lifetime(ctx: Context, text: str) -> tuple[str, int | None]:
    """Return a token's user and its remaining lifetime in seconds; None if it does not expire.

    Raises AuthenticationFailed for an invalid token.
    """
    header = f"Bearer {text}".encode()
    credential = ctx.services.authenticator.credential(header)
    if credential is None:
        credential = await sign_in(ctx.services, header, request_id=ctx.request_id)
    if credential.user is not None and credential.expires_ms is None:
        raise AuthenticationFailed(
            "No secret was sent: write credential=USER:TOKEN, with a token of 'limnos create token'"
        )
    bearer = Context(ctx.services, credential, ctx.request_id)

    def ends(request_view: RequestView) -> tuple[str, int | None]:
        if credential.user is not None:
            return request_view.user, credential.expires_ms
        caller_token = cast("Token", require_fact(request_view.view, token_key(credential.token_id), zone=ROOT_ID))
        return request_view.user, caller_token.expires_at

    user, expires_ms = await bearer.read(RequestScope(), ends)
    check_sign_in(ctx.services.rules, await ctx.look_up(partial(user_status_read, user)), user=user)
    left_ms = None if expires_ms is None else expires_ms - ctx.services.store.time.now_ms()
    return user, None if left_ms is None else max(left_ms // 1000, 1)


def token_insert(tx: Tx, permit: Permit[TokenCreate]) -> Token:
    """Insert the token.

    Raises NotFound (the user), PermissionDenied for a disabled user, BadRequest (the name), InUse for too many tokens,
    AuthenticationFailed if the credential that creates it has ended.
    """
    command, origin = permit.command, permit.command.origin
    require_valid(tx, origin.opened_by)
    user_status = tx.principals.user_status(command.user)
    if user_status.is_known or command.user != tx.actor:
        check_token_holder(command.rules, user_status, user=command.user)
    else:
        check_new_user(tx, command.user, admins=command.rules.service_admins)
    if command.purpose is not TokenPurpose.API:
        tx.tokens.forget_ended(command.user)
    elif tx.tokens.count_valid(command.user) >= TOKENS_MAX:
        raise InUse(f"{escape_percent(command.user)} has {TOKENS_MAX} valid tokens: revoke some first", kind="token")
    return tx.tokens.create(
        user=command.user,
        name=command.name,
        secret_hash=command.secret_hash,
        expires_at=origin.end_ms(tx.now_ms, lives_s=command.expires_in_s),
        trust=origin.trust,
        root_id=origin.root_id,
        purpose=command.purpose,
        opened_by=origin.opened_by,
        signed_in_at=origin.signed_in_ms,
    )


async def token_revoke(ctx: Context, *, token_id: int) -> bool:
    """Revoke a token permanently, from the next request on every node.

    Returns whether it was valid. Raises NotFound, PermissionDenied.
    """

    def decide(request_view: RequestView) -> Permit[TokenRevoke]:
        token = require_fact(request_view.view, token_key(token_id), zone=ROOT_ID)
        decision = _may(request_view, None if token is None else token.user)
        if token is None:
            raise NotFound(f"Token {token_id} does not exist: see 'limnos list tokens'", kind="token")
        return request_view.permit(TokenRevoke(token), decision)

    await refuse_former(ctx)
    return await ctx.write(RequestScope(), decide, token_update)


def token_update(tx: Tx, permit: Permit[TokenRevoke]) -> bool:
    """Revoke the token and all tokens that were created with it. Returns whether the token was valid."""
    is_valid = not (tx.tokens.by_id(permit.command.token.id) or permit.command.token).revoked
    tx.tokens.revoke_family(permit.command.token)
    return is_valid
