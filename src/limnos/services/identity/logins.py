# SPDX-License-Identifier: Apache-2.0
"""Logins: passwords of local users, and the expiring sessions that they open.

Must not know any wire format. A session is an expiring token that every protocol accepts, and a refresh token that can
only refresh it. Setting a new password revokes both, and all tokens created with them, from the next request on every
node. A session has the trust with which its password was set.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.access.authentication import ANONYMOUS, Credential, hash_secret, new_secret, token_text
from limnos.access.passwords import DUMMY_HASH, check_password, hash_password, is_password
from limnos.access.principal_names import check_new_user, check_principal_name
from limnos.model.decisions import Decision, DecisionFactor
from limnos.model.entities import Password, Token
from limnos.model.errors import AlreadyExists, AuthenticationFailed, PermissionDenied
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.model.principals import TokenPurpose, TokenTrust, is_name
from limnos.model.privileges import escape_percent
from limnos.names import display
from limnos.services.identity.password_hashing import HASHING, TRIES
from limnos.services.identity.tokens import CredentialOrigin, origin_of, own_token, require_minting, require_valid
from limnos.services.identity.users import check_enabled, check_sign_in
from limnos.services.request.context import Context
from limnos.services.request.defaults import AccessSettings
from limnos.services.request.multi_catalog_reads import refuse_former
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.passwords import password_read
from limnos.store.identity.tokens import token_read
from limnos.store.tx import Tx

_WRONG: Final = "The user or the password is wrong"
_OVER: Final = "The session has expired: sign in again with 'limnos login'"
FRESH_MS: Final = 600_000
"""The maximum age of a sign-in at the issuer with which users set their first password, in milliseconds."""
_NOT_FRESH: Final = (
    "A first password needs a sign-in at the external issuer within the last 10 minutes, not a token: sign in again, or"
    " have a service admin set it, 'limnos set password'"
)


class PasswordPut(msgspec.Struct, frozen=True, kw_only=True):
    """The command to set a user's password, or delete it if `hashed` is None. `known` is the password at the time of
    the decision; `token_id` is the token of the request, which must still be valid.
    """

    user: str
    hashed: str | None
    trust: TokenTrust
    known: Password | None
    token_id: int | None
    rules: AccessSettings


class SessionOpen(msgspec.Struct, frozen=True, kw_only=True):
    """The command to open a session with a password, or continue one by its refresh token (`refresh` is its id)."""

    password: Password
    secrets: tuple[bytes, ...]
    lives_s: tuple[int, ...]
    refresh: int | None
    rules: AccessSettings


class PasswordSession(NamedTuple):
    """The result of a login: the tokens, which the server stores only as hashes, and their lifetimes."""

    user: str
    token: str
    expires_in_s: int
    refresh_token: str | None
    refresh_expires_in_s: int | None


async def password_set(ctx: Context, *, user: str, password: str | None, old: str | None, address: str) -> bool:
    """Set a user's password, or delete it; all sessions of the user end.

    Args:
        ctx: The request.
        user: The user's name.
        password: The new password; None deletes it.
        old: The current password. Users need it to change their own, and a fresh sign-in to set their first one;
            service admins set those of others without it.
        address: The client's address, whose wrong passwords are counted.

    Returns:
        Whether a password existed.

    Raises:
        BadRequest: The name or the password is not allowed.
        PermissionDenied: The caller is neither the user nor a service admin, the user is disabled, or the sign-in is
            not fresh.
        AuthenticationFailed: The old password is wrong.
        TooManyAttempts: Too many wrong passwords were given.
        ServiceUnavailable: Too many passwords are being hashed.
        AlreadyExists: The user is a service account.
    """
    check_principal_name(user, Kind.USER)
    await refuse_former(ctx)
    await ctx.read(RequestScope(), lambda request_view: _may(request_view, user))
    password_record = await ctx.look_up(partial(password_read, user))
    needs_proof = await ctx.read(RequestScope(), partial(_needs_proof, ctx, user=user))
    if needs_proof and password_record is not None:
        await _verify(ctx, user, password=old or "", known=password_record, address=address)
    text = None
    if password is not None:
        text = await HASHING.of(ctx.services).run(partial(hash_password, check_password(password, user=user)))

    def decide(request_view: RequestView) -> Permit[PasswordPut]:
        decision = _may(request_view, user)
        require_minting(ctx, request_view)
        if password_record is None and text is not None and _needs_proof(ctx, request_view, user=user):
            _require_fresh(ctx, request_view)
        caller_token = own_token(ctx, request_view)
        command = PasswordPut(
            user=user,
            hashed=text,
            trust=origin_of(ctx, request_view, user=user).trust,
            known=password_record,
            token_id=None if caller_token is None else caller_token.id,
            rules=request_view.rules,
        )
        # the record in the audit is about the user, not about the server
        about_user = msgspec.structs.replace(decision, target=display.render_part(user), target_kind=Kind.USER.word)
        return request_view.permit(command, about_user)

    return await ctx.write(RequestScope(), decide, password_put)


def password_put(tx: Tx, permit: Permit[PasswordPut]) -> bool:
    """Write or delete the password, and revoke all tokens that come from sign-ins of the user. Returns whether a
    password existed.

    Raises AuthenticationFailed if the password was changed since the decision or the token of the request has ended,
    PermissionDenied if users who are disabled set their own, AlreadyExists for a service account.
    """
    command = permit.command
    require_valid(tx, command.token_id)
    if tx.actor == command.user:
        check_enabled(command.rules, tx.principals.user_status(command.user), user=command.user)
    before = tx.passwords.find(command.user)
    if before != command.known:
        raise AuthenticationFailed("The password was changed concurrently: try again with the new one", was_right=True)
    tx.tokens.close(command.user)
    word = "deleted" if command.hashed is None else "replaced" if before is not None else "set"
    tx.note_detail = f"password of user {display.render_part(command.user)} {word}"
    if command.hashed is None:
        return tx.passwords.forget(command.user)
    if tx.tokens.secrets(command.user):
        raise AlreadyExists(
            f"{escape_percent(command.user)} is a service account, which has secrets and no password: revoke them"
            f" first, 'limnos list secrets {escape_percent(command.user)}' and 'limnos delete secret"
            f" {escape_percent(command.user)} ID'",
            kind="secret",
        )
    if before is None:
        check_new_user(tx, command.user, admins=command.rules.service_admins)
    tx.passwords.put(command.user, hashed=command.hashed, trust=command.trust)
    return before is not None


def _needs_proof(ctx: Context, request_view: RequestView, *, user: str) -> bool:
    """Return whether the caller sets the password of `user` only with the old one, or with a fresh sign-in.

    Service admins need neither, except for their own password with a credential that expires: it would outlive that.
    """
    if not request_view.decide(Action.TOKEN_MANAGE_OTHERS, ()).allowed:
        return True
    return user == request_view.user and origin_of(ctx, request_view, user=user).expires_ms is not None


def _require_fresh(ctx: Context, request_view: RequestView) -> None:
    """Require a request with a name without proof, or a recent sign-in: a token of the issuer, or a session that one
    opened. Raises PermissionDenied.
    """
    caller_token, origin = own_token(ctx, request_view), origin_of(ctx, request_view, user=request_view.user)
    if caller_token is None and origin.expires_ms is None:
        return
    is_sign_in = caller_token is None or caller_token.purpose in (TokenPurpose.SESSION, TokenPurpose.CONSOLE)
    age_ms = ctx.services.store.time.now_ms() - (origin.signed_in_ms or 0)
    if not is_sign_in or age_ms > FRESH_MS:
        raise PermissionDenied(_NOT_FRESH)


def _may(request_view: RequestView, user: str) -> Decision:
    """Return the decision on setting a user's password: allowed for the user and for service admins.

    Raises PermissionDenied for others.
    """
    if request_view.user == ANONYMOUS:
        raise PermissionDenied("The anonymous user has no password: authenticate first")
    if user == request_view.user:
        return _own_decision(request_view, user)
    return request_view.require(Action.TOKEN_MANAGE_OTHERS, ())


def _own_decision(request_view: RequestView, user: str) -> Decision:
    return Decision(
        allowed=True,
        action=Action.TOKEN_MANAGE_OTHERS.word,
        target_id=ROOT_ID,
        target="server",
        user=user,
        factors=(DecisionFactor(kind="self"),),
        revision=request_view.stamps,
    )


async def _verify(ctx: Context, user: str, *, password: str, known: Password | None, address: str) -> None:
    """Verify a password, in the same time whether or not the user has one.

    Raises AuthenticationFailed for a wrong password, TooManyAttempts, ServiceUnavailable.
    """
    services = ctx.services
    with TRIES.of(services).one(user=user, address=address) as right:
        against = DUMMY_HASH if known is None else known.hash
        is_found = await HASHING.of(services).run(partial(is_password, password, against))
        if not is_found or known is None:
            raise AuthenticationFailed(_WRONG)
        right()


async def login(ctx: Context, *, user: str, password: str, address: str) -> PasswordSession:
    """Open a session for a caller who knows a user's password.

    Raises as `password_verify`.
    """
    password_record = await password_verify(ctx, user=user, password=password, address=address)
    defaults = ctx.services.defaults
    return await _open(ctx, password_record, lives_s=(defaults.session_s, defaults.session_refresh_s), refresh=None)


async def password_verify(ctx: Context, *, user: str, password: str, address: str) -> Password:
    """Verify a user's password, and return its stored row.

    Raises AuthenticationFailed for a wrong password or user name, TooManyAttempts, ServiceUnavailable.
    """
    if not is_name(user):
        raise AuthenticationFailed(_WRONG)
    password_record = await ctx.look_up(partial(password_read, user))
    await _verify(ctx, user, password=password, known=password_record, address=address)
    if password_record is None:
        raise AuthenticationFailed(_WRONG)
    _require_trusted(ctx, password_record)
    return password_record


def _require_trusted(ctx: Context, known: Password) -> None:
    """Refuse a password that was set by a caller whose authentication this server does not trust.

    Raises AuthenticationFailed for such a password.
    """
    if known.trust not in ctx.services.rules.trusts:
        raise AuthenticationFailed(
            "The password is not valid on this server, because the user who set it was not authenticated. Have a"
            " service admin set it again",
            was_right=True,
            principal=known.user,
        )


async def session_refresh(ctx: Context, *, text: str) -> PasswordSession:
    """Issue a new session token for a refresh token, which stays valid. Raises AuthenticationFailed if the refresh
    token is invalid or expired.
    """
    credential = ctx.services.authenticator.credential(f"Bearer {text}".encode("utf-8", "replace"))
    if credential is None or credential.user is not None:
        raise AuthenticationFailed(_OVER)
    token = await ctx.look_up(partial(token_read, credential.token_id))
    if token is None or token.secret_hash != credential.secret_hash or token.purpose is not TokenPurpose.REFRESH:
        raise AuthenticationFailed("This is not a refresh token: sign in with 'limnos login'")
    password_record = await ctx.look_up(partial(password_read, token.user))
    if password_record is None or not _is_refreshable(token, password_record, now_ms=ctx.services.store.time.now_ms()):
        raise AuthenticationFailed(_OVER, was_right=True, principal=token.user)
    _require_trusted(ctx, password_record)
    return await _open(ctx, password_record, lives_s=(ctx.services.defaults.session_s,), refresh=token.id)


def _is_refreshable(token: Token, known: Password, *, now_ms: int) -> bool:
    return not token.revoked and token.root_id == known.root_id and (token.expires_at or 0) > now_ms


async def _open(ctx: Context, known: Password, *, lives_s: tuple[int, ...], refresh: int | None) -> PasswordSession:
    secrets = tuple(new_secret() for _ in lives_s)
    user = known.user
    credential = Credential(user=user, expires_ms=1 << 62)
    bearer = Context(ctx.services, credential, ctx.request_id, audited_request=ctx.audited_request)

    def decide(request_view: RequestView) -> Permit[SessionOpen]:
        command = SessionOpen(
            password=known,
            secrets=tuple(map(hash_secret, secrets)),
            lives_s=lives_s,
            refresh=refresh,
            rules=request_view.rules,
        )
        return request_view.permit(command, _own_decision(request_view, user))

    tokens = await bearer.write(RequestScope(), decide, session_open)
    texts = [token_text(token.id, secret) for token, secret in zip(tokens, secrets, strict=True)]
    lives = [max(((token.expires_at or 0) - token.created_at) // 1000, 1) for token in tokens]
    if refresh is not None:
        return PasswordSession(
            user=user, token=texts[0], expires_in_s=lives[0], refresh_token=None, refresh_expires_in_s=None
        )
    return PasswordSession(
        user=user, token=texts[0], expires_in_s=lives[0], refresh_token=texts[1], refresh_expires_in_s=lives[1]
    )


def session_open(tx: Tx, permit: Permit[SessionOpen]) -> list[Token]:
    """Insert a session's tokens, and delete the user's long-expired sessions. Returns the new tokens. The token of a
    refresh token ends with that at the latest.

    Raises AuthenticationFailed if the user was disabled, or the password or refresh token is no longer valid.
    """
    command, password_record = permit.command, permit.command.password
    check_sign_in(command.rules, tx.principals.user_status(password_record.user), user=password_record.user)
    if tx.passwords.find(password_record.user) != password_record:
        raise AuthenticationFailed(_OVER, was_right=True, principal=password_record.user)
    origin = CredentialOrigin(trust=password_record.trust, root_id=password_record.root_id, signed_in_ms=tx.now_ms)
    if command.refresh is not None:
        token = tx.tokens.by_id(command.refresh)
        if token is None or not _is_refreshable(token, password_record, now_ms=tx.now_ms):
            raise AuthenticationFailed(_OVER, was_right=True, principal=password_record.user)
        origin = origin._replace(
            opened_by=token.id, expires_ms=token.expires_at, signed_in_ms=token.signed_in_at or token.created_at
        )
    tx.tokens.forget_ended(password_record.user)
    purposes = (TokenPurpose.SESSION, TokenPurpose.REFRESH)
    return [
        tx.tokens.create(
            user=password_record.user,
            name="login",
            secret_hash=secret,
            trust=origin.trust,
            root_id=origin.root_id,
            expires_at=origin.end_ms(tx.now_ms, lives_s=life_s),
            purpose=purpose,
            opened_by=origin.opened_by,
            signed_in_at=origin.signed_in_ms,
        )
        for secret, life_s, purpose in zip(command.secrets, command.lives_s, purposes, strict=False)
    ]
