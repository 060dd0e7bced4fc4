# SPDX-License-Identifier: Apache-2.0
"""Login at an external issuer from a terminal: OpenID Connect discovery, device flow, refresh, revocation.

Must not know Limnos servers or profiles. RFC 8628 (device authorization), RFC 6749 section 6 (refresh), RFC 7009
(revocation). The client is public: it has an id and no secret.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from limnos.cli.failures import StoppedError
from limnos.cli.output import visible
from limnos.cli.profiles import ExternalIssuer

DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
DISCOVERY: Final = "/.well-known/openid-configuration"
INTERVAL_S: Final = 5.0
"""Default polling interval (RFC 8628, section 3.2), and the increment after `slow_down` (section 3.5)."""
INTERVAL_MIN_S: Final = 1.0
LIFE_S: Final = 1_800.0
ANSWER_BYTES_MAX: Final = 1 << 20


class IssuerAccess(NamedTuple):
    """The connection to an issuer: a timeout, and a file of additional certificate authorities."""

    timeout_s: float
    ca_file: str | None = None

    def tls_context(self) -> ssl.SSLContext | bool:
        """Return the HTTP client's `verify` argument: a TLS context with the additional authorities, or True without
        any.
        """
        if self.ca_file is None:
            return True
        context = ssl.create_default_context()
        context.load_verify_locations(self.ca_file)
        return context


class TokenGrant(NamedTuple):
    """An issuer's response: a token, its lifetime in seconds, and a refresh token, if the issuer sent one."""

    token: str
    expires_in_s: float
    refresh_token: str | None


class IssuerEndpoints(NamedTuple):
    """URLs of an issuer's endpoints: device authorization, token, and revocation (None without one)."""

    device: str
    token: str
    revoke: str | None


def endpoints_of(issuer: str, *, reach: IssuerAccess) -> IssuerEndpoints:
    """Read an issuer's endpoints from its discovery document. Raises StoppedError if it is unreachable or malformed,
    of another issuer, or has no device flow.
    """
    answer = _answer(issuer.rstrip("/") + DISCOVERY, None, reach=reach)[1]
    if answer.get("issuer") != issuer:
        raise StoppedError(
            f"{issuer} has a discovery document with another issuer identifier",
            hint="write it exactly as the claim `iss` of its tokens",
        )
    device, token, revoke = (
        answer.get(name) for name in ("device_authorization_endpoint", "token_endpoint", "revocation_endpoint")
    )
    if not isinstance(device, str) or not isinstance(token, str):
        raise StoppedError(
            f"the issuer {issuer} offers no device flow", hint="sign in with a password, or with a token of the issuer"
        )
    for url in (device, token):
        check_address(url)
    return IssuerEndpoints(device, token, revoke if isinstance(revoke, str) and _is_safe(revoke) else None)


def check_address(url: str) -> None:
    """Raise StoppedError for a URL without TLS, except on loopback."""
    if not _is_safe(url):
        raise StoppedError(
            f"{url} is not https://…: an issuer on another machine needs TLS",
            hint="ask the issuer's operator for its https:// URL",
        )


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost"))


def sign_in(
    endpoints: IssuerEndpoints, client_id: str, *, scope: str, show: Callable[[str], None], reach: IssuerAccess
) -> TokenGrant:
    """Run the device flow: show the URL and the code, and wait until the user has signed in. Raises StoppedError if the
    user declines or the code expires.
    """
    requested = {"client_id": client_id, "scope": scope}
    status, fields = _answer(endpoints.device, requested, reach=reach)
    code, where, user_code = (fields.get(name) for name in ("device_code", "verification_uri", "user_code"))
    if status != 200 or not (isinstance(code, str) and isinstance(where, str) and isinstance(user_code, str)):
        raise _refusal_error("begin a sign-in", fields)
    show(f"Open {visible(where)} in a browser, and enter the code {visible(user_code)}")
    interval_s = max(_seconds(fields, "interval", otherwise=INTERVAL_S), INTERVAL_MIN_S)
    ends = time.monotonic() + _seconds(fields, "expires_in", otherwise=LIFE_S)
    form = {"grant_type": DEVICE_GRANT, "device_code": code, "client_id": client_id}
    while time.monotonic() < ends:
        pause(interval_s)
        status, fields = _answer(endpoints.token, form, reach=reach, patient=True)
        if status == 200:
            return _parse_grant(fields)
        if fields.get("error") not in ("authorization_pending", "slow_down"):
            raise _refusal_error("sign you in", fields)
        if fields.get("error") == "slow_down":
            interval_s += INTERVAL_S
    raise StoppedError("the code expired before it was entered", hint="'limnos login --device' gives another one")


pause = time.sleep


def refresh(external_issuer: ExternalIssuer, refresh_token: str, *, reach: IssuerAccess) -> TokenGrant:
    """Get a new token by the refresh token (RFC 6749, section 6). Raises StoppedError if the issuer refuses."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": external_issuer.client_id}
    status, fields = _answer(external_issuer.token_url, form, reach=reach)
    if status != 200:
        raise _refusal_error("continue your session", fields)
    return _parse_grant(fields)


def revoke(external_issuer: ExternalIssuer, refresh_token: str, *, reach: IssuerAccess) -> None:
    """Revoke a session's tokens, if the issuer has a revocation endpoint (RFC 7009). Raises StoppedError if the request
    fails.
    """
    if external_issuer.revoke_url is not None:
        form = {"token": refresh_token, "token_type_hint": "refresh_token", "client_id": external_issuer.client_id}
        _answer(external_issuer.revoke_url, form, reach=reach)


def _parse_grant(fields: Mapping[str, object]) -> TokenGrant:
    token, refresh_token = fields.get("access_token"), fields.get("refresh_token")
    if not isinstance(token, str):
        raise StoppedError("the issuer signed you in but gave no token", hint="report it to the issuer's operator")
    return TokenGrant(
        token,
        _seconds(fields, "expires_in", otherwise=300.0),
        refresh_token if isinstance(refresh_token, str) else None,
    )


def _seconds(fields: Mapping[str, object], name: str, *, otherwise: float) -> float:
    result = fields.get(name)
    if isinstance(result, bool) or not isinstance(result, int | float) or not 0 <= result <= 1e9:
        return otherwise
    return float(result)


def _refusal_error(what: str, fields: Mapping[str, object]) -> StoppedError:
    words = {
        "access_denied": "the sign-in was refused in the browser",
        "expired_token": "the code expired before it was entered",
        "invalid_grant": "the session has expired",
    }
    error = str(fields.get("error") or "no reason given")
    why = words.get(error) or str(fields.get("error_description") or error)
    return StoppedError(
        f"the issuer does not {what}: {why[:300]}", code="denied", hint="sign in again with 'limnos login --device'"
    )


def _answer(
    url: str, form: Mapping[str, str] | None, *, reach: IssuerAccess, patient: bool = False
) -> tuple[int, Mapping[str, object]]:
    """Send a form by POST, or a GET request if `form` is None. Returns the status and the decoded JSON object.

    With `patient`, a failed connection counts as `authorization_pending` instead of raising. Raises StoppedError if the
    issuer is unreachable or its response is not a JSON object.
    """
    import httpx2

    method, headers = "GET" if form is None else "POST", {"accept": "application/json"}
    try:
        with (
            httpx2.Client(timeout=reach.timeout_s, verify=reach.tls_context(), follow_redirects=False) as http,
            http.stream(method, url, data=form, headers=headers) as answer,
        ):
            body = b""
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > ANSWER_BYTES_MAX:
                    raise ValueError(f"more than {ANSWER_BYTES_MAX} bytes")
            result = json.loads(body) if body else {}
            status = answer.status_code
    except httpx2.TransportError as error:
        if patient:
            return 0, {"error": "authorization_pending"}
        raise StoppedError(f"the issuer at {url} does not respond: {error}", code="unavailable") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise StoppedError(f"the issuer at {url} sent an unexpected response: {str(error)[:300]}") from None
    if not isinstance(result, dict) or (form is None and status != 200):
        raise StoppedError(f"{url} answers {status}: check that it is an issuer's URL")
    return status, result
