# SPDX-License-Identifier: Apache-2.0
"""Responses of the console: pages with their security headers, redirects, and compressed bodies.

Must not know pages.
"""

from __future__ import annotations

import gzip
from typing import Final

from limnos.http.request import Request
from limnos.http.response import NO_STORE, Response

Headers = tuple[tuple[bytes, bytes], ...]

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types limnos"
)
SAFE: Final[Headers] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
"""The security headers of every response of the console."""
HSTS: Final = (b"strict-transport-security", b"max-age=31536000")
_HTML: Final = (b"content-type", b"text/html; charset=utf-8")
_VARY: Final = (b"vary", b"Accept-Encoding, Cookie, X-Limnos-Part")
_GZIP: Final = (b"content-encoding", b"gzip")
COMPRESSED_MIN: Final = 1_000
LEVEL: Final = 3
"""The compression level of gzip: higher ones cost more time than they save."""


def html_response(
    request: Request, text: str, *, status: int = 200, headers: Headers = (), is_secret: bool = False
) -> Response:
    """Return a page as a response. A page with a secret is not compressed: its length must not depend on the secret
    (BREACH).
    """
    body = text.encode()
    sent_headers: Headers = (_HTML, NO_STORE, _VARY, *SAFE, *headers)
    if not is_secret and len(body) >= COMPRESSED_MIN and b"gzip" in request.headers.get(b"accept-encoding", b""):
        body = gzip.compress(body, compresslevel=LEVEL, mtime=0)
        sent_headers = (*sent_headers, _GZIP)
    return Response(status, body, sent_headers)


def redirect(to: str, *, headers: Headers = ()) -> Response:
    """Return a redirect with status 303 to a path of this server, which the browser then requests by GET."""
    return Response(303, b"", ((b"location", to.encode("ascii")), NO_STORE, *SAFE, *headers))
