# SPDX-License-Identifier: Apache-2.0
"""The static files: style sheet, script, icons. Their URLs contain the digest of their content.

Must not know pages.
"""

from __future__ import annotations

import gzip
from functools import cache
from typing import Final

from limnos.http.response import Response
from limnos.model.errors import NotFound
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import STATIC, static_file, static_version
from limnos.rooms.console.http.responses import SAFE

_LASTING: Final = (b"cache-control", b"public, max-age=31536000, immutable")
_SHORT: Final = (b"cache-control", b"public, no-cache")


@cache
def _compress(name: str) -> bytes:
    return gzip.compress(static_file(name), compresslevel=9, mtime=0)


async def static(page_request: PageRequest) -> Response:
    """Return a static file, cacheable for a year if the URL contains the digest of its content."""
    name = page_request.request.params[0].decode("latin-1")
    kind = STATIC.get(name)
    if kind is None:
        raise NotFound("This page does not exist", kind="route")
    lasts = page_request.request.query("v") == static_version()
    headers = ((b"content-type", kind), _LASTING if lasts else _SHORT, (b"vary", b"Accept-Encoding"), *SAFE)
    if b"gzip" in page_request.request.headers.get(b"accept-encoding", b""):
        return Response(200, _compress(name), (*headers, (b"content-encoding", b"gzip")))
    return Response(200, static_file(name), headers)


ROUTES = (
    ConsoleRoute(
        method="GET", path="/static/{name}", handler=static, operation="static-file", query=("v",), is_public=True
    ),
)
