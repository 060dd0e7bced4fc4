"""API tokens: create, list, revoke. Users manage their own, service admins all.

May import the layers below. Must not know any wire format. A token's secret leaves this module only once, when it is
created.
"""

from __future__ import annotations

from functools import partial
from typing import Final, cast

import msgspec

from limnos.access.actions import Action
from limnos.access.authentication import ANONYMOUS, hash_secret, new_secret, token_text
from limnos.access.principal_names import check_new_user, check_principal_name
from limnos.model.decisions import Decision, DecisionFactor
from limnos.model.entities import Token
from limnos.model.errors import AuthenticationFailed, BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.model.principals import TokenTrust
from limnos.services.identity.issuer_sign_in import sign_in
from limnos.services.identity.users import check_sign_in, check_token_holder
from limnos.services.request.context import Context
from limnos.services.request.defaults import AccessSettings
from limnos.services.request.multi_catalog_reads import refuse_former
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.principals import user_status_read
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact
from limnos.view.keys import token_key, tokens_key

STATEMENT_PREFIX: Final = "statement "
"""The beginning of the names of tokens that the server makes for SQL++ statements."""

EXPIRES_MAX_S = 100 * 365 * 24 * 3600


class TokenCreate(msgspec.Struct, frozen=True):
    """The command to create a token for a user. `root_id` is the root of the token that authenticated the request; None
    for the root of a new token family.
    """

    user: str
    name: str
    secret_hash: bytes
    expires_in_s: int | None
    trust: TokenTrust
    root_id: int | None
    rules: AccessSettings


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
            True,
            Action.TOKEN_MANAGE_OTHERS.word,
            ROOT_ID,
            "server",
            user,
            (DecisionFactor("self"),),
            request_view.stamps,
        )
    return request_view.require(Action.TOKEN_MANAGE_OTHERS, ())


def tokens_list(request_view: RequestView, user: str | None) -> tuple[Token, ...]:
    """Return a user's tokens without their secrets; of all users if `user` is None. Raises PermissionDenied."""
    _may(request_view, user)
    return require_fact(request_view.view, tokens_key(user), zone=ROOT_ID)


async def tokens_visible(ctx: Context, user: str | None, *, everybody: bool = False) -> tuple[Token, ...]:
    """Return the tokens of the caller, of another user, or of all users, without their secrets.

    Raises PermissionDenied.
    """
    await refuse_former(ctx)
    return await ctx.read(
        RequestScope(), lambda request_view: tokens_list(request_view, None if everybody else user or request_view.user)
    )


def trust_and_root_of(
    ctx: Context, request_view: RequestView, *, user: str, by_server: bool = False
) -> tuple[TokenTrust, int | None]:
    """Return the trust of a new token, and the id of its root; None for the root of a new token family.

    A token never has more trust than the credential of the request that creates it.
    """
    own = None
    if ctx.credential.user is None:
        own = cast("Token", require_fact(request_view.view, token_key(ctx.credential.token_id), zone=ROOT_ID))
    root_id = own.root_id if own is not None and user == request_view.user else None
    if by_server:
        return TokenTrust.PROVEN, root_id
    if not request_view.rules.access_enabled:
        return TokenTrust.OPEN, root_id
    if own is not None:
        return own.trust, root_id
    return (TokenTrust.BELIEVED if ctx.credential.expires_ms is None else TokenTrust.PROVEN), root_id


def check_life(expires_in_s: int | None) -> None:
    """Check the lifetime of a token, in seconds; None for no expiry. Raises BadRequest if it is not from 1 to
    `EXPIRES_MAX_S`.
    """
    if expires_in_s is not None and not 0 < expires_in_s <= EXPIRES_MAX_S:
        raise BadRequest(f"A token must expire in 1 to {EXPIRES_MAX_S} seconds, or never, not in {expires_in_s}")


async def token_create(
    ctx: Context, *, user: str | None, name: str, expires_in_s: int | None, by_server: bool = False
) -> tuple[Token, str]:
    """Create a token for the caller or another user.

    Args:
        ctx: The request.
        user: The token's user; None for the caller.
        name: The token's name.
        expires_in_s: The token's lifetime in seconds; None for no expiry.
        by_server: Whether the server creates it for its own administrator, whom its settings trust.

    Returns:
        The token, and its text, which the server does not store.

    Raises:
        BadRequest: The lifetime or the user's name is not allowed.
        PermissionDenied: The caller may not create it, or the user is disabled.
        NotFound: The user does not exist in any metalake.
    """
    check_life(expires_in_s)
    if user is not None:
        check_principal_name(user, Kind.USER)
    secret = new_secret()

    def decide(request_view: RequestView) -> Permit[TokenCreate]:
        whose = user or request_view.user
        decision = _may(request_view, whose)
        trust, root_id = trust_and_root_of(ctx, request_view, user=whose, by_server=by_server)
        command = TokenCreate(whose, name, hash_secret(secret), expires_in_s, trust, root_id, request_view.rules)
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
            "No secret was sent: write credential=USER:TOKEN, with a token of 'limnos token create'"
        )
    bearer = Context(ctx.services, credential, ctx.request_id)

    def ends(request_view: RequestView) -> tuple[str, int | None]:
        if credential.user is not None:
            return request_view.user, credential.expires_ms
        own = cast("Token", require_fact(request_view.view, token_key(credential.token_id), zone=ROOT_ID))
        return request_view.user, own.expires_at

    user, expires_ms = await bearer.read(RequestScope(), ends)
    check_sign_in(ctx.services.rules, await ctx.look_up(partial(user_status_read, user)), user=user)
    left_ms = None if expires_ms is None else expires_ms - ctx.services.store.time.now_ms()
    return user, None if left_ms is None else max(left_ms // 1000, 1)


def token_insert(tx: Tx, permit: Permit[TokenCreate]) -> Token:
    """Insert the token. Raises NotFound (the user), PermissionDenied for a disabled user, BadRequest (the name)."""
    command = permit.command
    standing = tx.principals.standing(command.user)
    if standing.is_known or command.user != tx.actor:
        check_token_holder(command.rules, standing, user=command.user)
    else:
        check_new_user(tx, command.user, admins=command.rules.service_admins)
    expires_at = None if command.expires_in_s is None else tx.now_ms + command.expires_in_s * 1000
    return tx.tokens.create(
        user=command.user, name=command.name, secret_hash=command.secret_hash, expires_at=expires_at,
        trust=command.trust, root_id=command.root_id,
    )  # fmt: skip


async def token_revoke(ctx: Context, *, token_id: int) -> bool:
    """Revoke a token permanently, from the next request on every node.

    Returns whether it was valid. Raises NotFound, PermissionDenied.
    """

    def decide(request_view: RequestView) -> Permit[TokenRevoke]:
        token = require_fact(request_view.view, token_key(token_id), zone=ROOT_ID)
        decision = _may(request_view, None if token is None else token.user)
        if token is None:
            raise NotFound(f"Token {token_id} does not exist: see 'limnos token list'", kind="token")
        return request_view.permit(TokenRevoke(token), decision)

    await refuse_former(ctx)
    return await ctx.write(RequestScope(), decide, token_update)


def token_update(tx: Tx, permit: Permit[TokenRevoke]) -> bool:
    """Revoke the token and the console sessions that were opened with it. Returns whether the token was valid."""
    revoked = tx.tokens.revoke(permit.command.token)
    tx.tokens.close_opened_by(permit.command.token)
    return revoked
