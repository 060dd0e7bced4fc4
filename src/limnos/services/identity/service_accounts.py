# SPDX-License-Identifier: Apache-2.0
"""Service accounts: users that are programs, with rotating secrets instead of a password.

Must not know any wire format. A secret grants no access itself: the client exchanges it for a short-lived token. Tokens
issued for it, and tokens created with those, have the secret as their root. Revoking the secret revokes them, from the
next request on every node. Service admins create and revoke secrets.
"""

from __future__ import annotations

import hmac
from functools import partial
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.access.authentication import Credential, hash_secret, new_secret, token_text
from limnos.access.jwt_form import jwt_text
from limnos.access.principal_names import check_principal_name
from limnos.model.decisions import Decision, DecisionFactor
from limnos.model.entities import Token
from limnos.model.errors import AlreadyExists, AuthenticationFailed, BadRequest, InUse, NotFound
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.model.principals import TokenPurpose
from limnos.model.privileges import escape_percent
from limnos.services.identity.credential_states import ListedCredential, with_states
from limnos.services.identity.tokens import (
    CredentialOrigin,
    check_life,
    origin_of,
    require_minting,
    require_valid,
    token_create,
    token_lifetime,
)
from limnos.services.identity.users import check_secret_holder, check_sign_in
from limnos.services.request.context import Context
from limnos.services.request.defaults import AccessSettings
from limnos.services.request.multi_catalog_reads import read_of_server, refuse_former
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.tokens import AccountSecrets, accounts_read, secrets_read, token_read
from limnos.store.tx import Tx

SECRETS_MAX: Final = 2
"""The maximum number of active secrets: the current one, and its replacement."""
ACCOUNTS_MAX: Final = 10_000
_OVER: Final = (
    "The service account's secret was revoked: ask an administrator to create a new one with 'limnos create secret'"
)


class SecretCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to add a secret to a service account, whose other secrets stay active."""

    user: str
    secret_hash: bytes
    expires_in_s: int | None
    origin: CredentialOrigin
    rules: AccessSettings


class SecretEnd(msgspec.Struct, frozen=True):
    """The command to revoke a secret and the tokens that were issued for it."""

    secret: Token


class AccessTokenOpen(msgspec.Struct, frozen=True, kw_only=True):
    """The command to issue a short-lived token for a secret. `opened_by` is the token that is exchanged for it, which
    must still be valid.
    """

    secret: Token
    secret_hash: bytes
    lives_s: int
    opened_by: int | None
    rules: AccessSettings


class IssuedToken(NamedTuple):
    """A token for a client: its user, its text, and its remaining lifetime in seconds; None if it does not expire."""

    user: str
    token: str
    expires_in_s: int | None


async def secrets_list(ctx: Context, *, user: str) -> tuple[ListedCredential, ...]:
    """Return a service account's secrets, without their values, each with its state. Raises PermissionDenied."""

    async def work() -> tuple[ListedCredential, ...]:
        return await with_states(ctx, await ctx.look_up(partial(secrets_read, user)))

    return await read_of_server(ctx, require=_manage, work=work)


async def accounts_list(ctx: Context) -> tuple[AccountSecrets, ...]:
    """Return the service accounts with a valid secret, by name, at most `ACCOUNTS_MAX`. Raises PermissionDenied."""
    load = partial(accounts_read, ctx.services.store.time.now_ms(), limit=ACCOUNTS_MAX)
    return await read_of_server(ctx, require=_manage, work=lambda: ctx.look_up(load))


async def secret_create(ctx: Context, *, user: str, expires_in_s: int | None) -> tuple[Token, str]:
    """Create a secret for a user, who becomes a service account.

    Returns the secret's row, and its text, which the server does not store.

    Raises BadRequest for an invalid lifetime or name, PermissionDenied, AlreadyExists (the user has a password), InUse
    (two secrets are valid already), NotFound (no metalake has the user).
    """
    check_principal_name(user, Kind.USER)
    if ":" in user:
        raise BadRequest("A service account's name must not have a colon: clients write credential=NAME:SECRET")
    check_life(expires_in_s)
    await refuse_former(ctx)
    secret = new_secret()

    def decide(request_view: RequestView) -> Permit[SecretCreate]:
        decision = _manage(request_view)
        if user == request_view.user:
            raise BadRequest("You cannot turn your own user into a service account: name another user")
        require_minting(ctx, request_view)
        origin = origin_of(ctx, request_view, user=user)
        return request_view.permit(
            SecretCreate(
                user=user,
                secret_hash=hash_secret(secret),
                expires_in_s=expires_in_s,
                origin=origin,
                rules=request_view.rules,
            ),
            decision,
        )

    token = await ctx.write(RequestScope(), decide, secret_insert)
    return token, token_text(token.id, secret)


def secret_insert(tx: Tx, permit: Permit[SecretCreate]) -> Token:
    """Insert the secret as the root of a new token family.

    Raises AlreadyExists (the user has a password), InUse (two secrets are valid already), BadRequest (the name),
    NotFound (no metalake has the user).
    """
    command = permit.command
    if tx.passwords.find(command.user) is not None:
        raise AlreadyExists(
            f"{escape_percent(command.user)} has a password, and a service account must not have one: delete it first",
            kind="password",
        )
    check_secret_holder(tx, command.rules, user=command.user)
    secrets = tx.tokens.secrets(command.user)
    if len(secrets) >= SECRETS_MAX:
        raise InUse(
            f"{escape_percent(command.user)} has {SECRETS_MAX} valid secrets: revoke one first,"
            f" 'limnos list secrets {escape_percent(command.user)}' and 'limnos delete secret"
            f" {escape_percent(command.user)} ID'",
            kind="secret",
        )
    return tx.tokens.create(
        user=command.user,
        name="client",
        secret_hash=command.secret_hash,
        expires_at=command.origin.end_ms(tx.now_ms, lives_s=command.expires_in_s),
        trust=command.origin.trust,
        purpose=TokenPurpose.CLIENT,
    )


async def secret_end(ctx: Context, *, user: str, secret_id: int) -> bool:
    """Revoke a secret and its tokens, from the next request on every node. Returns whether the secret was valid.

    Raises PermissionDenied, NotFound.
    """
    await refuse_former(ctx)
    await ctx.read(RequestScope(), _manage)
    token = await ctx.look_up(partial(token_read, secret_id))
    if token is None or token.user != user or token.purpose is not TokenPurpose.CLIENT:
        raise NotFound(
            f"{escape_percent(user)} has no secret {secret_id}: 'limnos list secrets' lists them",
            kind="secret",
        )

    def decide(request_view: RequestView) -> Permit[SecretEnd]:
        return request_view.permit(SecretEnd(token), _manage(request_view))

    return await ctx.write(RequestScope(), decide, secret_update)


def secret_update(tx: Tx, permit: Permit[SecretEnd]) -> bool:
    """Revoke the secret and the tokens of its family. Returns whether it was valid."""
    return tx.tokens.end_line(permit.command.secret)


def may_manage_secrets(request_view: RequestView) -> bool:
    """Return whether the caller may list, create and revoke secrets. No refusal is recorded in the audit."""
    return request_view.decide(Action.TOKEN_MANAGE_OTHERS, ()).allowed


def _manage(request_view: RequestView) -> Decision:
    return request_view.require(Action.TOKEN_MANAGE_OTHERS, ())


async def token_by_secret(ctx: Context, *, client: str, text: str, as_jwt: bool = False) -> IssuedToken:
    """Return a token for a client's secret: a new token for a service account's secret, or the API token that was sent.

    An empty `client` accepts any user. With `as_jwt` the token is a JWT: for an API token, a new short-lived one that
    ends with it. Raises AuthenticationFailed for an invalid secret or token.
    """
    token = await _find_token(ctx, text)
    if token is None or token.purpose is not TokenPurpose.CLIENT:
        access = await _same_token(ctx, text)
        _check_client(client, access.user)
        return access if token is None or not as_jwt else await _open_jwt(ctx, text)
    _check_client(client, token.user)
    return await _open(ctx, token, as_jwt=as_jwt)


def _check_client(client: str, user: str) -> None:
    if client not in ("", user):
        raise AuthenticationFailed(
            f"The secret does not belong to the client {client[:100]!a}: write credential=USER:SECRET, or"
            " credential=USER:TOKEN with a token of that user's own"
        )


async def token_exchange(ctx: Context, *, text: str, as_jwt: bool = False) -> IssuedToken:
    """Exchange a valid token: for a service account's token a new one is returned, any other is returned unchanged.

    With `as_jwt` the new token is a JWT. Raises AuthenticationFailed for an invalid token.
    """
    access = await _same_token(ctx, text)
    token = await _find_token(ctx, text)
    if token is None or token.purpose is not TokenPurpose.ACCESS:
        return access
    secret = await ctx.look_up(partial(token_read, token.root_id))
    if secret is None:
        raise AuthenticationFailed(_OVER, was_right=True)
    if secret.purpose is not TokenPurpose.CLIENT:  # a token for an API token: it ends with that token
        return access
    return await _open(ctx, secret, opened_by=token.id, as_jwt=as_jwt)


async def _same_token(ctx: Context, text: str) -> IssuedToken:
    user, expires_in_s = await token_lifetime(ctx, text)
    return IssuedToken(user, text, expires_in_s)


async def _open_jwt(ctx: Context, text: str) -> IssuedToken:
    """Issue a short-lived JWT for a valid token, with the rights of that token, whose revocation it shares."""
    credential = ctx.services.authenticator.credential(f"Bearer {text}".encode())
    if credential is None:
        raise AuthenticationFailed(_OVER)
    bearer = Context(ctx.services, credential, ctx.request_id, audited_request=ctx.audited_request)
    lives_s = ctx.services.defaults.session_s
    token, opaque = await token_create(
        bearer, user=None, name="access", expires_in_s=lives_s, purpose=TokenPurpose.ACCESS
    )
    return _issued_token(token, opaque.split("_", 2)[2], as_jwt=True)


def _issued_token(token: Token, secret: str, *, as_jwt: bool) -> IssuedToken:
    text = jwt_text(token, secret) if as_jwt else token_text(token.id, secret)
    return IssuedToken(token.user, text, max(((token.expires_at or 0) - token.created_at) // 1000, 1))


async def _find_token(ctx: Context, text: str) -> Token | None:
    """Find the stored token of a token string, regardless of its purpose; None for an invalid one, or one of an
    external issuer.
    """
    credential = ctx.services.authenticator.credential(f"Bearer {text}".encode("utf-8", "replace"))
    if credential is None or credential.user is not None:
        return None
    token = await ctx.look_up(partial(token_read, credential.token_id))
    return token if token is not None and hmac.compare_digest(token.secret_hash, credential.secret_hash) else None


async def _open(ctx: Context, secret: Token, *, opened_by: int | None = None, as_jwt: bool = False) -> IssuedToken:
    if secret.trust not in ctx.services.rules.trusts:
        raise AuthenticationFailed(
            "The secret is not valid on this server, because the user who created it was not authenticated. Have a"
            " service admin create a new one",
            was_right=True,
            principal=secret.user,
        )
    text = new_secret()
    credential = Credential(user=secret.user, expires_ms=1 << 62)
    bearer = Context(ctx.services, credential, ctx.request_id, audited_request=ctx.audited_request)

    def decide(request_view: RequestView) -> Permit[AccessTokenOpen]:
        word = Action.TOKEN_MANAGE_OTHERS.word
        own_decision = Decision(
            allowed=True,
            action=word,
            target_id=ROOT_ID,
            target="server",
            user=secret.user,
            factors=(DecisionFactor(kind="self"),),
            revision=request_view.stamps,
        )
        command = AccessTokenOpen(
            secret=secret,
            secret_hash=hash_secret(text),
            lives_s=ctx.services.defaults.session_s,
            opened_by=opened_by,
            rules=request_view.rules,
        )
        return request_view.permit(command, own_decision)

    token = await bearer.write(RequestScope(), decide, access_open)
    return _issued_token(token, text, as_jwt=as_jwt)


def access_open(tx: Tx, permit: Permit[AccessTokenOpen]) -> Token:
    """Insert a token that ends with its secret, and delete the user's long-expired tokens.

    Raises AuthenticationFailed if the secret is no longer valid, or the user is disabled.
    """
    command = permit.command
    check_sign_in(command.rules, tx.principals.user_status(command.secret.user), user=command.secret.user)
    secret = tx.tokens.by_id(command.secret.id)
    if secret is None or secret.revoked or secret.is_over(tx.now_ms):
        raise AuthenticationFailed(_OVER, was_right=True, principal=command.secret.user)
    require_valid(tx, command.opened_by)
    tx.tokens.forget_ended(secret.user)
    ends = tx.now_ms + command.lives_s * 1000
    return tx.tokens.create(
        user=secret.user,
        name="access",
        secret_hash=command.secret_hash,
        expires_at=ends if secret.expires_at is None else min(ends, secret.expires_at),
        trust=secret.trust,
        root_id=secret.root_id,
        purpose=TokenPurpose.ACCESS,
        opened_by=command.opened_by,
    )
