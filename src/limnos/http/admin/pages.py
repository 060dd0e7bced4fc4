# SPDX-License-Identifier: Apache-2.0
"""Pages at the root: an overview of the API as text or HTML, and one OpenAPI document for all protocols.

Must not know resources. The document is merged from the committed ones in openapi/, which the wheel contains, too.
"""

from __future__ import annotations

import hashlib
from functools import cache
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

import limnos
from limnos import __version__
from limnos.http.request import Request
from limnos.http.response import JSON, NO_STORE, Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import NotFound
from limnos.services.request.context import Context

_TITLE: Final = f"Limnos {__version__}: one governed tree of names for lakehouse data."
_ROOTS: Final = (
    (
        "/iceberg",
        "/iceberg/v1/config",
        "Iceberg REST (Spark, PyIceberg, DuckDB, Trino): the catalog's uri, with warehouse=<catalog>",
    ),
    ("/lance", "", "Lance REST Namespace (LanceDB, Lance's Spark connector): the namespace's uri"),
    ("/query/service", "", "SQL++ (AsterixDB's query service)"),
    ("/api", "/api/version", "Gravitino REST (Gravitino's clients): their server uri is this page's"),
    ("/api/limnos/v1", "/api/limnos/v1/whoami", "Limnos' own API: moves, group members, tokens, explanations"),
    ("/docs", "", "the documentation, with every operation of the API"),
    ("/openapi.json", "/openapi.json", "every operation, as OpenAPI"),
    ("/configs", "/configs", "the server's public settings"),
    ("/health", "/health", "UP, or the failed checks"),
    ("/metrics", "/metrics", "metrics for Prometheus"),
)
"""The protocols' roots, each with a path below it that a browser can open (or an empty one), and its purpose."""
_VARY: Final = (b"vary", b"accept")
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_HTML: Final = (b"content-type", b"text/html; charset=utf-8")
_SAFE: Final = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
)
_PAGE_TEXT: Final = "\n".join([_TITLE, "", *(f"  {root:<15} {words}" for root, _, words in _ROOTS), ""]).encode()


def _row(root: str, link: str, *, words: str) -> str:
    text = f"<code>{escape(root)}</code>"
    term = f'<a href="{escape(link)}">{text}</a>' if link else text
    return f"<dt>{term}</dt><dd>{escape(words)}</dd>"


_PAGE_HTML: Final = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Limnos</title></head>
<body>
<h1>Limnos</h1>
<p>{escape(_TITLE)}</p>
<dl>
{chr(10).join(_row(root, link, words=words) for root, link, words in _ROOTS)}
</dl>
<p><code>limnos --help</code> lists the commands.</p>
</body>
</html>
""".encode()
CONTRACTS: Final = ("admin", "asterix", "gravitino", "iceberg", "lance")
"""The protocols that have a committed document."""
_FOLDERS: Final = (Path(limnos.__file__).parent / "openapi", Path(limnos.__file__).parents[2] / "openapi")
"""The documents' folder in a wheel, and in a checkout."""
_PREFIXES: Final = (b'"#/components/schemas/', b'"#/components/responses/', b'"operationId": "')
"""The JSON before names that several protocols use: the merge inserts the protocol's name after it."""


class OpenApiContract(NamedTuple):
    """The served OpenAPI document and its entity tag."""

    body: bytes
    etag: bytes


async def first_page(request: Request, ctx: Context) -> Response:
    """Return an overview of the server's URLs as plain text. Browsers are redirected to the console, or get the
    overview as HTML.
    """
    if b"text/html" in request.headers.get(b"accept", b"").lower():
        if ctx.services.defaults.has_console:
            return Response(303, b"", ((b"location", b"console/"), _VARY, NO_STORE, *_SAFE))
        return Response(200, _PAGE_HTML, (_HTML, _VARY, *_SAFE))
    return Response(200, _PAGE_TEXT, (_TEXT, _VARY))


async def openapi(request: Request, _ctx: Context) -> Response:
    """Return the operations of all protocols as one OpenAPI document, which changes only with the release."""
    open_api_contract = contract()
    headers = (JSON, (b"etag", open_api_contract.etag), (b"cache-control", b"public, no-cache"))
    header = request.headers.get(b"if-none-match", b"")
    if header == b"*" or open_api_contract.etag in [each.strip().removeprefix(b"W/") for each in header.split(b",")]:
        return Response(304, b"", headers[1:])
    return Response(200, open_api_contract.body, headers)


@cache
def contract() -> OpenApiContract:
    """Merge the committed OpenAPI documents of the protocols. Raises NotFound if the installation lacks them.

    Names of components and operations get their protocol as a prefix: several protocols have an `Error` and a
    `load-table`.
    """
    folder = next((each for each in _FOLDERS if (each / f"{CONTRACTS[0]}.json").is_file()), None)
    if folder is None:
        raise NotFound("This installation has no OpenAPI documents: reinstall the wheel", kind="route")
    document_json: dict[str, object] = {
        "openapi": "3.1.0",
        "info": {"title": "Limnos", "version": __version__, "description": "Every operation of every protocol."},
        "servers": [{"url": "/"}],
        "security": [],
    }
    paths: dict[str, object] = {}
    components: dict[str, dict[str, object]] = {}
    for protocol in CONTRACTS:
        text = (folder / f"{protocol}.json").read_bytes()
        for prefix in _PREFIXES:
            text = text.replace(prefix, prefix + protocol.encode() + b".")
        document = msgspec.json.decode(text, type=OpenApiDocument)
        document_json |= {"openapi": document.openapi, "security": document.security}
        paths |= document.paths
        for group, definitions in document.components.items():
            own = "" if group == "securitySchemes" else f"{protocol}."
            components.setdefault(group, {}).update({f"{own}{name}": value for name, value in definitions.items()})
    body = msgspec.json.encode({**document_json, "paths": paths, "components": components})
    return OpenApiContract(body, b'"%s"' % hashlib.sha256(body).hexdigest()[:32].encode())


class OpenApiDocument(msgspec.Struct):
    """The parts of an OpenAPI document that the merge combines."""

    openapi: str
    security: list[object]
    paths: dict[str, object]
    components: dict[str, dict[str, object]]


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path="/", handler=first_page, operation="first-page"),
    Route(method="GET", path="/openapi.json", handler=openapi, operation="openapi"),
)
ANONYMOUS = frozenset(route.operation for route in ROUTES)
