# SPDX-License-Identifier: Apache-2.0
"""The documentation site below `/docs`: static pages from a compressed ZIP file that `scripts/build_site.py` writes.

The wheel contains the file; in a checkout `make site` writes it. A name is looked up among the members of the file, so
no path leaves it. Everybody may read the pages: they are the same for all servers of a release.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import zipfile
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import limnos
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import NotFound
from limnos.services.request.context import Context

FILES: Final = (
    Path(limnos.__file__).parent / "documentation.zip.xz",
    Path(limnos.__file__).parents[2] / "build" / "documentation.zip.xz",
)
"""The site's file in a wheel, and in a checkout."""
_KINDS: Final = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "json": b"application/json",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_SAFE: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_MISSING: Final = "This page does not exist"
_NOT_BUILT: Final = "This installation has no documentation pages: run 'make site' in the checkout"


PAGES_KEPT: Final = 64
"""The number of pages whose ETags are kept."""


@cache
def _site(file: Path) -> zipfile.ZipFile:
    """Return the site, unpacked: 3 MB in memory from the first request for a page on."""
    return zipfile.ZipFile(io.BytesIO(lzma.decompress(file.read_bytes())))


@lru_cache(PAGES_KEPT)
def _read(file: Path, name: str) -> tuple[bytes, bytes]:
    """Return a file of the site and its ETag. Raises KeyError if the site has no such file."""
    body = _site(file).read(name)
    return body, b'"%s"' % hashlib.sha256(body).hexdigest()[:32].encode()


def site_file() -> Path | None:
    """Return the site's file, or None if this installation has none."""
    return next((file for file in FILES if file.is_file()), None)


async def first_page(request: Request, _ctx: Context) -> Response:
    """Redirect to the list of all pages, by a relative address, because a proxy may put a path before it."""
    if site_file() is None:
        raise NotFound(_NOT_BUILT, kind="route")
    location = b"index.html" if request.path.endswith(b"/") else b"docs/index.html"
    return Response(303, b"", ((b"location", location), *_SAFE))


async def page(request: Request, _ctx: Context) -> Response:
    """Return a file of the site, which changes only with the release."""
    file = site_file()
    if file is None:
        raise NotFound(_NOT_BUILT, kind="route")
    name = "/".join(part.decode("latin-1") for part in request.params)
    kind = _KINDS.get(name.rpartition(".")[2])
    if kind is None:
        raise NotFound(_MISSING, kind="route")
    try:
        body, etag = _read(file, name)
    except KeyError:
        raise NotFound(_MISSING, kind="route") from None
    headers = ((b"content-type", kind), (b"etag", etag), (b"cache-control", b"public, no-cache"), *_SAFE)
    if etag in request.headers.get(b"if-none-match", b"").replace(b"W/", b"").split(b", "):
        return Response(304, b"", headers[1:])
    return Response(200, body, headers)


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path="/docs", handler=first_page, operation="documentation"),
    Route(method="GET", path="/docs/{page}", handler=page, operation="documentation-page"),
    Route(method="GET", path="/docs/{folder}/{page}", handler=page, operation="documentation-folder-page"),
)
ANONYMOUS = frozenset(route.operation for route in ROUTES)
