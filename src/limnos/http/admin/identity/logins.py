# SPDX-License-Identifier: Apache-2.0
"""Local users: sign in with a password, refresh a session, set or delete a password.

Must not know hashes. Bodies of these requests are never logged, and responses with tokens must not be cached
(`no-store`).
"""

from __future__ import annotations

from typing import Final

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.throttle import address_of
from limnos.model.errors import BadRequest
from limnos.services.identity import logins
from limnos.services.request.context import Context

NO_STORE: Final = ((b"cache-control", b"no-store"),)
ANONYMOUS: Final = frozenset({"login"})


class LoginRequest(AdminRequestBody, frozen=True):
    """The body of a sign-in request: a user name and a password, or the refresh token of a session."""

    user: str | None = None
    password: str | None = None
    refresh_token: str | None = None


class PasswordSet(AdminRequestBody, frozen=True):
    """The body of a request to set a password. Users who change their own must also send the current one as `old`."""

    password: str
    old: str | None = None


class PasswordForget(AdminRequestBody, frozen=True):
    """The body of a request to delete a password. Users who delete their own must send it as `old`."""

    old: str | None = None


async def login(request: Request, ctx: Context) -> Response:
    """Open a session with a password, or issue a new session token for a refresh token, which stays valid."""
    body = Request.decode(await request.body(), LoginRequest)
    if body.refresh_token is not None and body.user is None and body.password is None:
        session = await logins.session_refresh(ctx, text=body.refresh_token)
    elif body.refresh_token is None and body.user is not None and body.password is not None:
        session = await logins.login(ctx, user=body.user, password=body.password, address=address_of(request.peer))
    else:
        raise BadRequest("Send user and password, or only refresh_token")
    return json_response(session._asdict(), headers=NO_STORE)


async def password_set(request: Request, ctx: Context) -> Response:
    """Set a user's password, and end all sessions of the user. Returns whether it replaced one."""
    (user,) = names_of(request)
    body = Request.decode(await request.body(), PasswordSet)
    address = address_of(request.peer)
    is_replaced = await logins.password_set(ctx, user=user, password=body.password, old=body.old, address=address)
    return json_response({"user": user, "replaced": is_replaced})


async def password_forget(request: Request, ctx: Context) -> Response:
    """Delete a user's password, and end all sessions of the user. Returns whether a password existed."""
    (user,) = names_of(request)
    text = await request.body()
    body = Request.decode(text, PasswordForget) if text else PasswordForget()
    is_removed = await logins.password_set(
        ctx, user=user, password=None, old=body.old, address=address_of(request.peer)
    )
    return json_response({"removed": is_removed})


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="POST", path="/api/limnos/v1/login", handler=login, operation="login"),
    Route(method="PUT", path="/api/limnos/v1/users/{u}/password", handler=password_set, operation="set-password"),
    Route(
        method="DELETE", path="/api/limnos/v1/users/{u}/password", handler=password_forget, operation="remove-password"
    ),
)
