# SPDX-License-Identifier: Apache-2.0
"""Sign-in at the external OpenID Connect issuer: the browser is redirected to the issuer and returns with an
authorization code.

Has no business rules and no network access: `ISSUER` exchanges the code. A short-lived cookie binds the issuer's
redirect to the browser that began the sign-in (RFC 9700, section 4.7), which prevents login by a forged link (login
CSRF).
"""

from __future__ import annotations

import hmac
import re
import secrets
from typing import Final

from limnos.http.response import Response
from limnos.model.errors import AuthenticationFailed, BadRequest, PermissionDenied
from limnos.names.percent import quote, unquote_form
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sessions import (
    TO_ISSUER,
    client_of,
    require_sign_in_allowed,
    session_redirect,
    sign_in_response,
)
from limnos.rooms.console.http.site import SIGN_IN
from limnos.services.identity.console_sessions import session_open_at_issuer
from limnos.services.identity.issuer import ISSUER, AuthorizationRequest

FROM_ISSUER: Final = "/from-issuer"
LIFE_S: Final = 600
"""The maximum time from the redirect to the issuer to the return from it, in seconds."""
TARGET_CHARS_MAX: Final = 1_000
"""The maximum length of the path to open after the sign-in, so that the cookie is within the size limit of browsers."""
_ERROR: Final = re.compile("[a-z_]{1,60}")
_NOT_BEGUN: Final = (
    "This sign-in was not started in this browser, took longer than ten minutes, or was used already: sign in again"
)


async def to_issuer(page_request: PageRequest) -> Response:
    """Redirect the browser to the issuer's authorization endpoint, and set a cookie with state, nonce, code verifier
    and the page to open after the sign-in.
    """
    require_sign_in_allowed(page_request)
    target = page_request.site.path_below(page_request.request.query("next"))
    request = AuthorizationRequest(
        redirect_uri=_return_address(page_request),
        state=secrets.token_urlsafe(32),
        nonce=secrets.token_urlsafe(32),
        verifier=secrets.token_urlsafe(32),
    )
    url = await ISSUER.of(page_request.ctx.services).authorization_url(request)
    cookie_target = target if len(target) <= TARGET_CHARS_MAX else f"{page_request.base}/"
    text = ".".join((request.state, request.nonce, request.verifier, quote(cookie_target)))
    cookie = page_request.site.cookie_header(page_request.request.headers, text, purpose=SIGN_IN, life_s=LIFE_S)
    return redirect(url, headers=(cookie,))


async def from_issuer(page_request: PageRequest) -> Response:
    """Handle the redirect from the issuer: open a session, or show the sign-in page with the reason of a refusal.

    The cookie of the sign-in is deleted after a success or a refusal, but not after temporary errors.
    """
    require_sign_in_allowed(page_request)
    headers = page_request.request.headers
    ended = (page_request.site.cookie_header(headers, None, purpose=SIGN_IN),)
    target = f"{page_request.base}/"
    try:
        request, target = _pending_authorization(page_request)
        session = await session_open_at_issuer(
            page_request.ctx, code=_code_of(page_request), request=request, client=client_of(page_request)
        )
    except (AuthenticationFailed, BadRequest, PermissionDenied) as error:
        page_request.request.failure = error
        return sign_in_response(page_request, target, message=error.message, status=401, headers=ended)
    return session_redirect(page_request, session, target=target, headers=ended)


def _pending_authorization(page_request: PageRequest) -> tuple[AuthorizationRequest, str]:
    """Return the authorization request in this browser's cookie, and the page to open after the sign-in.

    Raises AuthenticationFailed if there is no cookie, or its state differs from that of the redirect.
    """
    cookie = page_request.site.cookie_of(page_request.request.headers, SIGN_IN) or b""
    parts = cookie.split(b".", 3)
    sent_state = (page_request.request.query("state") or "").encode("utf-8", "replace")
    if len(parts) != 4 or not parts[0] or not hmac.compare_digest(parts[0], sent_state):
        raise AuthenticationFailed(_NOT_BEGUN)
    state, nonce, verifier = (part.decode("latin-1") for part in parts[:3])
    target = page_request.site.path_below(unquote_form(parts[3]))
    peer = page_request.request.peer
    return AuthorizationRequest(
        redirect_uri=_return_address(page_request), state=state, nonce=nonce, verifier=verifier, peer=peer
    ), target


def _code_of(page_request: PageRequest) -> str:
    """Return the authorization code from the redirect. Raises AuthenticationFailed if the issuer sent an error or no
    code.
    """
    error = page_request.request.query("error")
    if error is not None:
        word = error if _ERROR.fullmatch(error) else "an unknown one"
        raise AuthenticationFailed(f"The issuer refused the sign-in. Its reason: {word.replace('_', ' ')}")
    code = page_request.request.query("code")
    if not code:
        raise AuthenticationFailed("The issuer sent no code: sign in again")
    return code


def _return_address(page_request: PageRequest) -> str:
    return f"{page_request.site.own_origin(page_request.request.headers)}{page_request.base}{FROM_ISSUER}"


ROUTES = (
    ConsoleRoute(
        method="GET", path=TO_ISSUER, handler=to_issuer, operation="to-issuer", query=("next",), is_public=True
    ),
    ConsoleRoute(
        method="GET",
        path=FROM_ISSUER,
        handler=from_issuer,
        operation="from-issuer",
        query=("code", "state", "error"),
        is_public=True,
    ),
)
