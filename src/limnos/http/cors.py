# SPDX-License-Identifier: Apache-2.0
"""CORS headers for pages of the allowed origins in the settings (Fetch standard).

Must not know routes. `http.head_admission` refuses all other origins first, so an origin seen here is the server's own
or one of the settings. Credentials are headers, never cookies. So `Access-Control-Allow-Credentials` is not sent, and
no response names `*`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

Fields = list[tuple[bytes, bytes]]

METHODS: Final = b"GET, HEAD, POST, PUT, PATCH, DELETE"
EXPOSED: Final = b"ETag, Location, Retry-After, WWW-Authenticate, X-Request-Id"
"""Response headers that a page may read, besides those that CORS always allows."""
MAX_AGE_S: Final = b"600"
VARY: Final = (b"vary", b"Origin")
_NAMES: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2000}")
"""Header names, separated by commas."""


def allow_origin(headers: Mapping[bytes, bytes], origins: Collection[bytes]) -> Fields:
    """Return the headers that allow a page to read the response; empty without `origins` or an `Origin` header.

    The value of `Origin` is not compared with `origins`: `http.head_admission` has checked it.
    """
    origin = headers.get(b"origin")
    if not origins or origin is None:
        return []
    return [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", EXPOSED)]


def is_preflight(method: str, headers: Mapping[bytes, bytes], *, origins: Collection[bytes]) -> bool:
    """Return whether the request is a browser's CORS preflight, by its headers; False if `origins` is empty."""
    return (
        bool(origins) and method == "OPTIONS" and b"origin" in headers and b"access-control-request-method" in headers
    )


def preflight_fields(headers: Mapping[bytes, bytes], origins: Collection[bytes]) -> Fields:
    """Return the headers of a preflight response: all methods of the protocols, and the requested headers."""
    requested_headers = headers.get(b"access-control-request-headers", b"")
    header_fields = (
        [(b"access-control-allow-headers", requested_headers)] if _NAMES.fullmatch(requested_headers) else []
    )
    return [
        *allow_origin(headers, origins),
        (b"access-control-allow-methods", METHODS),
        *header_fields,
        (b"access-control-max-age", MAX_AGE_S),
    ]
