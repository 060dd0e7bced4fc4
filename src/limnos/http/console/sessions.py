"""Signing in and out, and one's own sessions.

May import `model`, `names`, `services`, the shared modules of `limnos.http` and of this package. Knows no rule. A
secret that a form sends is exchanged for a session at once, and no page shows it.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

import msgspec

from limnos.http.console.answers import html_response, redirect
from limnos.http.console.frame import Frame, frame_of, plain_frame
from limnos.http.console.look import render
from limnos.http.console.page_requests import ConsoleRoute
from limnos.http.throttle import address_of
from limnos.model.errors import AuthenticationFailed, BadRequest, LimnosError, PermissionDenied, TooManyAttempts
from limnos.services.identity import console_sessions
from limnos.services.identity.console_sessions import ConsoleSession, SessionLine

if TYPE_CHECKING:
    from limnos.http.console.page_requests import PageRequest
    from limnos.http.response import Response

_BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"), ("iPhone", "iOS"), ("iPad", "iOS"), ("Windows", "Windows"), ("Mac OS X", "macOS"), ("Linux", "Linux"),
)  # fmt: skip


class SignInPage(msgspec.Struct, frozen=True):
    """The sign-in page."""

    frame: Frame
    next: str
    takes: bool
    believes_names: bool
    message: str
    user: str


class EnterPage(msgspec.Struct, frozen=True):
    """The page on which a one-use code is confirmed."""

    frame: Frame
    code: str
    user: str
    takes: bool


class SessionsPage(msgspec.Struct, frozen=True):
    """One's own sessions of the console."""

    frame: Frame
    sessions: tuple[SessionLine, ...]


async def sign_in_page(asked: PageRequest) -> Response:
    """Show the sign-in page; who is signed in goes on to the console."""
    target = asked.site.path_below(asked.request.query("next"))
    if asked.site.cookie_of(asked.request.headers) is not None:
        try:
            await asked.identify()
        except LimnosError:
            return _sign_in(asked, target)
        return redirect(target)
    return _sign_in(asked, target)


def _sign_in(asked: PageRequest, target: str, *, message: str = "", user: str = "", status: int = 200) -> Response:
    takes = asked.site.takes_sign_in(asked.request.headers)
    view = SignInPage(plain_frame(asked, "Sign in"), target, takes, asked.site.believes_names, message, user)
    return html_response(asked.request, render("sign_in.html", view), status=status)


async def sign_in(asked: PageRequest) -> Response:
    """Open a session with a password, a token or, on loopback, a name."""
    fields = await asked.form()
    target = asked.site.path_below(fields.get("next"))
    _require_takes(asked)
    try:
        session = await _session_of(asked, fields)
    except (AuthenticationFailed, BadRequest, PermissionDenied, TooManyAttempts) as error:
        asked.request.failure = error
        status = 429 if isinstance(error, TooManyAttempts) else 401
        return _sign_in(asked, target, message=error.message, user=fields.get("user", ""), status=status)
    return _signed_in(asked, session, target=target)


def _require_takes(asked: PageRequest) -> None:
    if not asked.site.takes_sign_in(asked.request.headers):
        raise PermissionDenied(
            "The console takes no sign-in over http from another machine: a cookie could be read on the way. "
            "Set tls.certificate, or server.public_url to the https address of the proxy before it"
        )


async def _session_of(asked: PageRequest, fields: dict[str, str]) -> ConsoleSession:
    client, ctx = client_of(asked), asked.ctx
    if fields.get("token"):
        header = b"Bearer " + fields["token"].strip().encode()
        return await console_sessions.session_open_with_header(ctx, header=header, client=client)
    user = fields.get("user", "").strip()
    if not user:
        raise BadRequest("Give a name, or a token")
    if fields.get("password") or not asked.site.believes_names:
        address = address_of(asked.request.peer)
        return await console_sessions.session_open_with_password(
            ctx, user=user, password=fields.get("password", ""), address=address, client=client
        )
    header = b"Basic " + base64.b64encode(f"{user}:".encode())
    return await console_sessions.session_open_with_header(ctx, header=header, client=client)


def _signed_in(asked: PageRequest, session: ConsoleSession, *, target: str) -> Response:
    return redirect(target, headers=(asked.site.cookie_header(asked.request.headers, session.text),))


async def enter_page(asked: PageRequest) -> Response:
    """Show whose session a one-use code opens. Showing it does not use it up."""
    code = asked.request.query("code") or ""
    user = await console_sessions.code_user(asked.ctx, code=code)
    view = EnterPage(
        plain_frame(asked, "Go on to the console"), code, user, asked.site.takes_sign_in(asked.request.headers)
    )
    return html_response(asked.request, render("enter.html", view), is_secret=True)


async def enter(asked: PageRequest) -> Response:
    """Open a session with a one-use code."""
    fields = await asked.form()
    _require_takes(asked)
    session = await console_sessions.session_open_with_code(
        asked.ctx, code=fields.get("code", ""), client=client_of(asked)
    )
    return _signed_in(asked, session, target=f"{asked.base}/")


async def sign_out(asked: PageRequest) -> Response:
    """End this session, or with `everywhere` all of one's sessions of the console."""
    fields = await asked.form()
    everywhere = fields.get("everywhere") == "yes"
    await console_sessions.sessions_end(asked.ctx, session_id=None if everywhere else asked.ctx.credential.token_id)
    return redirect(f"{asked.base}/sign-in", headers=(asked.site.cookie_header(asked.request.headers, None),))


async def sessions_page(asked: PageRequest) -> Response:
    """Show one's own sessions."""
    frame = await frame_of(asked, "Your sessions", section="sessions")
    view = SessionsPage(frame, tuple(await console_sessions.sessions_list(asked.ctx)))
    return html_response(asked.request, render("sessions.html", view))


async def session_end(asked: PageRequest) -> Response:
    """End one of one's own sessions."""
    fields = await asked.form()
    text = fields.get("id", "")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BadRequest("The session's id is a number")
    await console_sessions.sessions_end(asked.ctx, session_id=int(text))
    return redirect(f"{asked.base}/sessions?done=The+session+has+ended")


def client_of(asked: PageRequest) -> str:
    """Return a short description of the browser and its address."""
    agent = asked.request.headers.get(b"user-agent", b"").decode("latin-1")
    browser = next((name for mark, name in _BROWSERS if mark in agent), "A browser")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    where = f" on {system}" if system else ""
    return f"{browser}{where}, {asked.request.peer or 'unknown address'}"


ROUTES = (
    ConsoleRoute("GET", "/sign-in", sign_in_page, "sign-in-page", ("next",), is_public=True),
    ConsoleRoute("POST", "/sign-in", sign_in, "sign-in", is_public=True),
    ConsoleRoute("GET", "/enter", enter_page, "enter-page", ("code",), is_public=True),
    ConsoleRoute("POST", "/enter", enter, "enter", is_public=True),
    ConsoleRoute("POST", "/sign-out", sign_out, "sign-out"),
    ConsoleRoute("GET", "/sessions", sessions_page, "sessions-page", ("done",)),
    ConsoleRoute("POST", "/sessions/end", session_end, "end-session"),
)
