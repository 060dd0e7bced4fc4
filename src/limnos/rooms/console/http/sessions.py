# SPDX-License-Identifier: Apache-2.0
"""Signing in and out, and the user's own sessions.

Has no business rules. A password or token in a form is exchanged for a session immediately, and no page shows it.
"""

from __future__ import annotations

import base64
from typing import Final

import msgspec

from limnos.http.response import Response
from limnos.http.throttle import address_of
from limnos.model.errors import AuthenticationFailed, BadRequest, LimnosError, PermissionDenied, TooManyAttempts
from limnos.names.percent import quote
from limnos.rooms.console.http.frame import Frame, frame_of, plain_frame
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import Headers, html_response, redirect
from limnos.services.identity import console_sessions
from limnos.services.identity.console_sessions import ConsoleSession, SessionLine
from limnos.services.identity.issuer import ISSUER

TO_ISSUER: Final = "/to-issuer"
"""The path below the console's root that redirects to the issuer's sign-in page."""
_BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


class SignInPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the sign-in page; `next` is the path to open after the sign-in, `issuer` the host of the issuer."""

    frame: Frame
    next: str
    is_allowed: bool
    allows_name_only: bool
    message: str
    user: str
    issuer: str
    issuer_path: str


class EnterPage(msgspec.Struct, frozen=True):
    """The data of the page on which a user confirms a one-use code."""

    frame: Frame
    code: str
    user: str
    is_allowed: bool


class SessionsPage(msgspec.Struct, frozen=True):
    """The data of the page that lists the user's own sessions of the console."""

    frame: Frame
    sessions: tuple[SessionLine, ...]


async def sign_in_page(page_request: PageRequest) -> Response:
    """Show the sign-in page; a signed-in user is redirected to the console."""
    target = page_request.site.path_below(page_request.request.query("next"))
    if page_request.site.cookie_of(page_request.request.headers) is not None:
        try:
            await page_request.identify()
        except LimnosError:
            return sign_in_response(page_request, target)
        return redirect(target)
    return sign_in_response(page_request, target)


def sign_in_response(
    page_request: PageRequest,
    target: str,
    *,
    message: str = "",
    user: str = "",
    status: int = 200,
    headers: Headers = (),
) -> Response:
    """Return the sign-in page, with a message if an attempt failed."""
    is_allowed = page_request.site.allows_sign_in(page_request.request.headers)
    view = SignInPage(
        frame=plain_frame(page_request, "Sign in"),
        next=target,
        is_allowed=is_allowed,
        allows_name_only=page_request.site.allows_name_only,
        message=message,
        user=user,
        issuer=ISSUER.of(page_request.ctx.services).name,
        issuer_path=f"{page_request.base}{TO_ISSUER}?next={quote(target)}",
    )
    return html_response(page_request.request, render("sign_in.html", view), status=status, headers=headers)


async def sign_in(page_request: PageRequest) -> Response:
    """Handle the sign-in form: open a session with a password, a token or, on loopback, only a user name.

    If the credential is refused, the sign-in page is shown again with the reason.
    """
    fields = await page_request.form()
    target = page_request.site.path_below(fields.get("next"))
    require_sign_in_allowed(page_request)
    try:
        session = await _session_of(page_request, fields)
    except (AuthenticationFailed, BadRequest, PermissionDenied, TooManyAttempts) as error:
        page_request.request.failure = error
        status = 429 if isinstance(error, TooManyAttempts) else 401
        return sign_in_response(page_request, target, message=error.message, user=fields.get("user", ""), status=status)
    return session_redirect(page_request, session, target=target)


def require_sign_in_allowed(page_request: PageRequest) -> None:
    """Raise PermissionDenied for a sign-in over HTTP from another host, because its cookie could be intercepted."""
    if not page_request.site.allows_sign_in(page_request.request.headers):
        raise PermissionDenied(
            "The console refuses sign-in over http from another machine, because its cookie could be intercepted. Set"
            " tls.certificate, or server.public_url to the https address of the proxy before it"
        )


async def _session_of(page_request: PageRequest, fields: dict[str, str]) -> ConsoleSession:
    client, ctx = client_of(page_request), page_request.ctx
    if fields.get("token"):
        header = b"Bearer " + fields["token"].strip().encode()
        return await console_sessions.session_open_with_header(ctx, header=header, client=client)
    user = fields.get("user", "").strip()
    if not user:
        raise BadRequest("Give a user name, or a token")
    if fields.get("password") or not page_request.site.allows_name_only:
        address = address_of(page_request.request.peer)
        return await console_sessions.session_open_with_password(
            ctx, user=user, password=fields.get("password", ""), address=address, client=client
        )
    header = b"Basic " + base64.b64encode(f"{user}:".encode())
    return await console_sessions.session_open_with_header(ctx, header=header, client=client)


def session_redirect(
    page_request: PageRequest, session: ConsoleSession, *, target: str, headers: Headers = ()
) -> Response:
    """Return the redirect to `target` that sets the session's cookie."""
    cookie = page_request.site.cookie_header(page_request.request.headers, session.text)
    return redirect(target, headers=(cookie, *headers))


async def enter_page(page_request: PageRequest) -> Response:
    """Show the page on which the user of a one-use code confirms the sign-in. The code stays valid."""
    code = page_request.request.query("code") or ""
    user = await console_sessions.code_user(page_request.ctx, code=code)
    view = EnterPage(
        plain_frame(page_request, "Continue to the console"),
        code,
        user,
        page_request.site.allows_sign_in(page_request.request.headers),
    )
    return html_response(page_request.request, render("enter.html", view), is_secret=True)


async def enter(page_request: PageRequest) -> Response:
    """Open a session with a one-use code, which becomes invalid."""
    fields = await page_request.form()
    require_sign_in_allowed(page_request)
    session = await console_sessions.session_open_with_code(
        page_request.ctx, code=fields.get("code", ""), client=client_of(page_request)
    )
    return session_redirect(page_request, session, target=f"{page_request.base}/")


async def sign_out(page_request: PageRequest) -> Response:
    """End this session, or with `everywhere` all of the user's sessions of the console."""
    fields = await page_request.form()
    everywhere = fields.get("everywhere") == "yes"
    await console_sessions.sessions_end(
        page_request.ctx, session_id=None if everywhere else page_request.ctx.credential.token_id
    )
    return redirect(
        f"{page_request.base}/sign-in", headers=(page_request.site.cookie_header(page_request.request.headers, None),)
    )


async def sessions_page(page_request: PageRequest) -> Response:
    """Show the user's own sessions."""
    frame = await frame_of(page_request, "Your sessions", section="sessions")
    view = SessionsPage(frame, tuple(await console_sessions.sessions_list(page_request.ctx)))
    return html_response(page_request.request, render("sessions.html", view))


async def session_end(page_request: PageRequest) -> Response:
    """End one of the user's own sessions, and redirect to the list."""
    fields = await page_request.form()
    text = fields.get("id", "")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BadRequest("The session's id must be a number")
    await console_sessions.sessions_end(page_request.ctx, session_id=int(text))
    return redirect(f"{page_request.base}/sessions?done=The+session+has+ended")


def client_of(page_request: PageRequest) -> str:
    """Return a short description of the browser, its operating system and its IP address."""
    agent = page_request.request.headers.get(b"user-agent", b"").decode("latin-1")
    browser = next((name for mark, name in _BROWSERS if mark in agent), "A browser")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    where = f" on {system}" if system else ""
    return f"{browser}{where}, {page_request.request.peer or 'unknown address'}"


ROUTES = (
    ConsoleRoute(
        method="GET", path="/sign-in", handler=sign_in_page, operation="sign-in-page", query=("next",), is_public=True
    ),
    ConsoleRoute(method="POST", path="/sign-in", handler=sign_in, operation="sign-in", is_public=True),
    ConsoleRoute(
        method="GET", path="/enter", handler=enter_page, operation="enter-page", query=("code",), is_public=True
    ),
    ConsoleRoute(method="POST", path="/enter", handler=enter, operation="enter", is_public=True),
    ConsoleRoute(method="POST", path="/sign-out", handler=sign_out, operation="sign-out"),
    ConsoleRoute(method="GET", path="/sessions", handler=sessions_page, operation="sessions-page", query=("done",)),
    ConsoleRoute(method="POST", path="/sessions/end", handler=session_end, operation="end-session"),
)
