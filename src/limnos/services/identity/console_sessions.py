# SPDX-License-Identifier: Apache-2.0
"""Sessions of the console: opened with a password, a token, a one-time code or the external issuer, extended by use,
and ended.

Must not know any wire format: the console's package puts the session's token into a cookie. A session never has more
trust than the credential that opened it. When its token or password becomes invalid, or its user ends it, every node
refuses it from the next request on.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple, Protocol

import msgspec

from limnos.access.actions import Action
from limnos.access.authentication import ANONYMOUS, Credential, hash_secret, new_secret, token_text
from limnos.access.principal_names import check_new_user
from limnos.model.decisions import Decision, DecisionFactor
from limnos.model.entities import Password, Token
from limnos.model.errors import AuthenticationFailed, NotFound, PermissionDenied
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.model.principals import TokenPurpose
from limnos.services.identity.issuer import ISSUER, AuthorizationRequest
from limnos.services.identity.issuer_sign_in import sign_in, store_identity
from limnos.services.identity.logins import password_verify
from limnos.services.identity.tokens import CredentialOrigin, origin_of, require_minting, require_valid
from limnos.services.identity.users import check_sign_in
from limnos.services.request.context import Context
from limnos.services.request.defaults import AccessSettings
from limnos.services.request.multi_catalog_reads import refuse_former
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.tokens import console_sessions_read, token_read
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact
from limnos.view.keys import token_key

CODE_S: Final = 120
"""The lifetime of a code, in seconds."""
EXTEND_EVERY_MS: Final = 300_000
"""The minimum time between two extensions of a session, in milliseconds, so that most clicks write nothing."""
CLIENT_NAME_MAX: Final = 100
_NOBODY: Final = "Authenticate: a session of the console needs a user"
_OVER: Final = "The session has expired: sign in again"
_NO_CODE: Final = "The code was used already or has expired: create a new one with 'limnos console'"


class ConsoleSessionOpen(msgspec.Struct, frozen=True, kw_only=True):
    """The command to open a session, or to create a one-time code. Each given credential of `password`, `code` and
    `origin` must still be valid. A session that is opened with a password has no `signed_in_ms` yet.
    """

    user: str
    client: str
    secret_hash: bytes
    purpose: TokenPurpose
    origin: CredentialOrigin
    lives_s: int
    rules: AccessSettings
    password: Password | None = None
    code: Token | None = None
    session_s: int | None = None
    """The maximum lifetime of the session in seconds; None for a code, which is never extended."""


class ConsoleSessionExtend(msgspec.Struct, frozen=True):
    """The command to extend a session by `idle_s` seconds from now."""

    token_id: int
    idle_s: int


class ConsoleSessionsEnd(msgspec.Struct, frozen=True):
    """The command to revoke one console session of a user, or all; with `ends_logins` also the password logins."""

    user: str
    token_id: int | None
    ends_logins: bool = False


class OpenCommand(Protocol):
    """Builds the command to open a session, from a request view and the hash of the session's secret."""

    def __call__(self, request_view: RequestView, /, *, secret_hash: bytes) -> ConsoleSessionOpen:
        """Build the command; `secret_hash` is the hash of the session's secret."""


class ConsoleSession(NamedTuple):
    """An opened session: its user, and the value of its cookie, which the server does not store."""

    user: str
    text: str


class SessionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A session for display. Times are milliseconds since 1970."""

    id: int
    client: str
    created_at: int
    expires_at: int
    is_own: bool


async def session_open_with_password(
    ctx: Context, *, user: str, password: str, address: str, client: str
) -> ConsoleSession:
    """Open a session for a caller who knows a user's password.

    `client` describes the browser. Raises AuthenticationFailed for a wrong password, TooManyAttempts,
    ServiceUnavailable.
    """
    password_record = await password_verify(ctx, user=user, password=password, address=address)
    bearer = Context(
        ctx.services,
        Credential(user=password_record.user, expires_ms=1 << 62),
        ctx.request_id,
        audited_request=ctx.audited_request,
    )

    def command(_: RequestView, *, secret_hash: bytes) -> ConsoleSessionOpen:
        return ConsoleSessionOpen(
            user=password_record.user,
            client=client,
            secret_hash=secret_hash,
            purpose=TokenPurpose.CONSOLE,
            origin=CredentialOrigin(trust=password_record.trust, root_id=password_record.root_id),
            lives_s=ctx.services.defaults.console_idle_s,
            rules=ctx.services.rules,
            password=password_record,
            session_s=ctx.services.defaults.console_session_s,
        )

    return await _open(bearer, command)


async def session_open_with_header(ctx: Context, *, header: bytes, client: str) -> ConsoleSession:
    """Open a session for the holder of a token, or for a user name if the server accepts names without authentication.

    `header` is the value of an Authorization header. The session ends when the token does, or earlier. Raises
    AuthenticationFailed for an invalid credential, PermissionDenied for the anonymous user, ServiceUnavailable.
    """
    credential = ctx.services.authenticator.credential(header)
    if credential is None:
        credential = await sign_in(ctx.services, header, request_id=ctx.request_id, audited_request=ctx.audited_request)
    bearer = Context(ctx.services, credential, ctx.request_id, audited_request=ctx.audited_request)
    await refuse_former(bearer)
    return await _open(bearer, partial(_with_credential, bearer, client=client, purpose=TokenPurpose.CONSOLE))


async def session_open_at_issuer(
    ctx: Context, *, code: str, request: AuthorizationRequest, client: str
) -> ConsoleSession:
    """Open a session for a user whom the issuer redirected with an authorization code.

    The issuer's tokens are not stored, so the session lasts as long as one opened with a password. Raises
    AuthenticationFailed for an invalid code or ID token, ServiceUnavailable.
    """
    identity = await ISSUER.of(ctx.services).identity_of_code(code, request)
    credential = await store_identity(
        ctx.services, identity, request_id=ctx.request_id, audited_request=ctx.audited_request
    )
    bearer = Context(ctx.services, credential, ctx.request_id, audited_request=ctx.audited_request)
    await refuse_former(bearer)

    def command(request_view: RequestView, *, secret_hash: bytes) -> ConsoleSessionOpen:
        session_command = _with_credential(
            bearer, request_view, secret_hash=secret_hash, client=client, purpose=TokenPurpose.CONSOLE
        )
        return msgspec.structs.replace(session_command, origin=session_command.origin._replace(expires_ms=None))

    return await _open(bearer, command)


async def code_create(ctx: Context) -> tuple[str, int]:
    """Create a one-time code that opens a session for the caller. Returns the code and its lifetime in seconds.

    Raises PermissionDenied for the anonymous user, AuthenticationFailed for a token of an earlier user of the name.
    """
    await refuse_former(ctx)
    session = await _open(ctx, partial(_with_credential, ctx, client="", purpose=TokenPurpose.CONSOLE_CODE))
    return session.text, CODE_S


async def code_user(ctx: Context, *, code: str) -> str:
    """Return the user for whom a code opens a session, without using it up. Raises AuthenticationFailed for an invalid
    or used code.
    """
    return (await _code_of(ctx, code)).user


async def session_open_with_code(ctx: Context, *, code: str, client: str) -> ConsoleSession:
    """Open a session with a code, which is used up. Raises AuthenticationFailed for an invalid or used code."""
    token = await _code_of(ctx, code)
    bearer = Context(
        ctx.services,
        Credential(user=token.user, expires_ms=1 << 62),
        ctx.request_id,
        audited_request=ctx.audited_request,
    )

    def command(_: RequestView, *, secret_hash: bytes) -> ConsoleSessionOpen:
        origin = CredentialOrigin(
            trust=token.trust,
            root_id=token.root_id,
            opened_by=token.opened_by,
            expires_ms=token.ends_at,
            signed_in_ms=token.signed_in_at,
        )
        return ConsoleSessionOpen(
            user=token.user,
            client=client,
            secret_hash=secret_hash,
            purpose=TokenPurpose.CONSOLE,
            origin=origin,
            lives_s=ctx.services.defaults.console_idle_s,
            rules=ctx.services.rules,
            code=token,
            session_s=ctx.services.defaults.console_session_s,
        )

    return await _open(bearer, command)


async def _code_of(ctx: Context, code: str) -> Token:
    try:
        credential = ctx.services.authenticator.credential(b"Bearer " + code.encode("utf-8", "replace"))
    except AuthenticationFailed:
        credential = None
    if credential is None or credential.user is not None:
        raise AuthenticationFailed(_NO_CODE)
    token = await ctx.look_up(partial(token_read, credential.token_id))
    if token is None or token.secret_hash != credential.secret_hash or token.purpose is not TokenPurpose.CONSOLE_CODE:
        raise AuthenticationFailed(_NO_CODE)
    if token.revoked or token.is_over(ctx.services.store.time.now_ms()) or token.trust not in ctx.services.rules.trusts:
        raise AuthenticationFailed(_NO_CODE, was_right=True)
    return token


def _with_credential(
    ctx: Context, request_view: RequestView, *, secret_hash: bytes, client: str, purpose: TokenPurpose
) -> ConsoleSessionOpen:
    """Return the command to open a session, or to create a one-time code, with the caller's own credential.

    Raises PermissionDenied for the anonymous user.
    """
    user, defaults = request_view.user, ctx.services.defaults
    if user == ANONYMOUS:
        raise PermissionDenied(_NOBODY)
    require_minting(ctx, request_view)
    is_code = purpose is TokenPurpose.CONSOLE_CODE
    return ConsoleSessionOpen(
        user=user,
        client=client,
        secret_hash=secret_hash,
        purpose=purpose,
        origin=origin_of(ctx, request_view, user=user),
        lives_s=CODE_S if is_code else defaults.console_idle_s,
        rules=request_view.rules,
        session_s=None if is_code else defaults.console_session_s,
    )


async def _open(bearer: Context, command: OpenCommand) -> ConsoleSession:
    secret = new_secret()

    def decide(request_view: RequestView) -> Permit[ConsoleSessionOpen]:
        return request_view.permit(
            command(request_view, secret_hash=hash_secret(secret)), _own_sessions_decision(request_view)
        )

    session = await bearer.write(RequestScope(), decide, console_session_insert)
    return ConsoleSession(session.user, token_text(session.id, secret))


def _own_sessions_decision(request_view: RequestView) -> Decision:
    """Return the decision on the caller's own sessions, which always allows."""
    factor = DecisionFactor(kind="self")
    word = Action.TOKEN_MANAGE_OTHERS.word
    return Decision(
        allowed=True,
        action=word,
        target_id=ROOT_ID,
        target="server",
        user=request_view.user,
        factors=(factor,),
        revision=request_view.stamps,
    )


def console_session_insert(tx: Tx, permit: Permit[ConsoleSessionOpen]) -> Token:
    """Insert a session or a one-time code, and delete the user's long-expired sessions. Raises AuthenticationFailed if
    the credential that opens it is no longer valid.
    """
    command, origin = permit.command, permit.command.origin
    user_status = tx.principals.user_status(command.user)
    check_sign_in(command.rules, user_status, user=command.user)
    if not user_status.is_known:
        check_new_user(tx, command.user, admins=command.rules.service_admins)
    if command.password is not None and tx.passwords.find(command.user) != command.password:
        raise AuthenticationFailed(_OVER, was_right=True)
    require_valid(tx, origin.opened_by)
    if command.code is not None and not tx.tokens.revoke(command.code):
        raise AuthenticationFailed(_NO_CODE, was_right=True)
    tx.tokens.forget_ended(command.user)
    origin = origin._replace(expires_ms=origin.end_ms(tx.now_ms, lives_s=command.session_s))
    return tx.tokens.create(
        user=command.user,
        name=command.client[:CLIENT_NAME_MAX],
        secret_hash=command.secret_hash,
        expires_at=origin.end_ms(tx.now_ms, lives_s=command.lives_s),
        trust=origin.trust,
        root_id=origin.root_id,
        purpose=command.purpose,
        opened_by=origin.opened_by,
        ends_at=origin.expires_ms,
        signed_in_at=tx.now_ms if command.password is not None else origin.signed_in_ms,
    )


async def session_extend(ctx: Context) -> str:
    """Return the user of the caller's session, and extend the session unless it was extended recently.

    Raises AuthenticationFailed for a session that has ended.
    """
    own_session = await ctx.read(RequestScope(), partial(_own_session, ctx))
    idle_s = ctx.services.defaults.console_idle_s
    expires_at = min(ctx.services.store.time.now_ms() + idle_s * 1000, own_session.ends_at or 0)
    if expires_at - (own_session.expires_at or 0) >= EXTEND_EVERY_MS:

        def decide(request_view: RequestView) -> Permit[ConsoleSessionExtend]:
            return request_view.permit(
                ConsoleSessionExtend(own_session.id, idle_s), _own_sessions_decision(request_view)
            )

        await ctx.write(RequestScope(), decide, console_session_extend)
    return own_session.user


def _own_session(ctx: Context, request_view: RequestView) -> Token:
    token = require_fact(request_view.view, token_key(ctx.credential.token_id), zone=ROOT_ID)
    if token is None or token.purpose is not TokenPurpose.CONSOLE:
        raise AuthenticationFailed(_OVER)
    return token


def console_session_extend(tx: Tx, permit: Permit[ConsoleSessionExtend]) -> None:
    """Extend the session. Raises AuthenticationFailed if it is no longer valid."""
    token = tx.tokens.by_id(permit.command.token_id)
    if token is None or token.revoked or token.is_over(tx.now_ms):
        raise AuthenticationFailed(_OVER, was_right=True)
    tx.tokens.extend(token.id, expires_at=min(tx.now_ms + permit.command.idle_s * 1000, token.ends_at or 0))


async def sessions_list(ctx: Context) -> list[SessionLine]:
    """Return the caller's valid sessions of the console, the oldest first. Raises PermissionDenied for the anonymous
    user.
    """
    user = await ctx.read(RequestScope(), _named_user)
    token = await ctx.look_up(partial(console_sessions_read, user, ctx.services.store.time.now_ms()))
    return [
        SessionLine(
            id=each.id,
            client=each.name,
            created_at=each.created_at,
            expires_at=each.expires_at or 0,
            is_own=each.id == ctx.credential.token_id,
        )
        for each in token
        if each.purpose is TokenPurpose.CONSOLE
    ]


def _named_user(request_view: RequestView) -> str:
    if request_view.user == ANONYMOUS:
        raise PermissionDenied(_NOBODY)
    return request_view.user


async def sessions_end(ctx: Context, *, session_id: int | None) -> int:
    """End one of the caller's sessions, or all of them for None, at the next request on every node.

    Returns the count of ended sessions. Raises NotFound for a session that is not the caller's, PermissionDenied for
    the anonymous user.
    """

    def decide(request_view: RequestView) -> Permit[ConsoleSessionsEnd]:
        return request_view.permit(
            ConsoleSessionsEnd(_named_user(request_view), session_id), _own_sessions_decision(request_view)
        )

    return await ctx.write(RequestScope(), decide, console_sessions_end)


async def user_sign_out(ctx: Context, *, user: str) -> int:
    """End all sessions of a user, of the console and of password logins, at the next request on every node.

    API tokens and secrets stay valid. Returns the count of ended sessions. Raises PermissionDenied unless it is the
    caller or the caller manages the tokens of others.
    """

    def decide(request_view: RequestView) -> Permit[ConsoleSessionsEnd]:
        is_own = user == _named_user(request_view)
        decision = (
            _own_sessions_decision(request_view) if is_own else request_view.require(Action.TOKEN_MANAGE_OTHERS, ())
        )
        return request_view.permit(ConsoleSessionsEnd(user, None, ends_logins=True), decision)

    return await ctx.write(RequestScope(), decide, console_sessions_end)


def console_sessions_end(tx: Tx, permit: Permit[ConsoleSessionsEnd]) -> int:
    """Revoke one console session, or all of the user's, if requested with the password logins. Returns the count of
    revoked sessions. Raises NotFound for a session of another user.
    """
    command = permit.command
    if command.ends_logins:
        return tx.tokens.close(command.user)
    if command.token_id is None:
        return tx.tokens.close_console(command.user)
    token = tx.tokens.by_id(command.token_id)
    if token is None or token.user != command.user or token.purpose is not TokenPurpose.CONSOLE:
        raise NotFound("This session does not exist, or is not yours", kind=Kind.TOKEN.word)
    return int(tx.tokens.revoke_family(token) > 0)
