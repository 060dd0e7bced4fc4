# SPDX-License-Identifier: Apache-2.0
"""Files of filesets: a page of a directory, and the beginning of a file.

Has no business rules. Gravitino's route lists a directory as a whole.
"""

from __future__ import annotations

from limnos.http.admin.bodies import names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import NO_STORE, Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.services.catalog.fileset_browsing import FilePath, directory_page, file_preview
from limnos.services.catalog.filesets import printable
from limnos.services.iceberg.reports import catalog_require
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


async def entries(request: Request, ctx: Context) -> Response:
    """Return a page of the entries of a `directory` of a `fileset`, directories first."""
    scope = RequestScope(*names_of(request))
    at = await _path_of(request, ctx, scope=scope, path=request.query("directory") or "/")
    page = await directory_page(
        ctx, scope, at=at, after=request.query("after") or "", size=_number(request, "limit", default="200")
    )
    results: list[dict[str, object]] = [{"name": printable(name), "directory": True} for name in page.directories]
    for each in page.files:
        modified_at = instant(each.modified_ms) if each.modified_ms else None
        results.append({"name": printable(each.name), "directory": False, "size": each.size, "changed_at": modified_at})
    return json_response({"entries": results, "after": page.after})


async def preview(request: Request, ctx: Context) -> Response:
    """Return the beginning of a `file` of a `fileset`: up to `rows` rows, or text; no content of a binary file."""
    scope = RequestScope(*names_of(request))
    at = await _path_of(request, ctx, scope=scope, path=request.query("file") or "")
    result = await file_preview(ctx, scope, at=at, rows=_number(request, "rows", default="100"))
    kind = "rows" if result.columns else "binary" if result.text is None else "text"
    body: dict[str, object] = {"kind": kind, "size": result.size, "complete": result.is_complete}
    if kind == "rows":
        columns = [{"name": name, "type": type_} for name, type_ in result.columns]
        body |= {"columns": columns, "rows": result.rows, "columns_left_out": result.columns_left_out}
    if kind == "text":
        body["text"] = result.text
    return json_response(body, headers=(NO_STORE,))


async def _path_of(request: Request, ctx: Context, *, scope: RequestScope, path: str) -> FilePath:
    """Parse the fileset's name and the path in it.

    Raises BadRequest if one is missing or malformed, but first NotFound or PermissionDenied if the caller may not use
    the catalog.
    """
    fileset = tuple(display.parse(request.query("fileset") or "-"))
    if len(fileset) < 2 or not path:
        await ctx.read(scope, catalog_require)
        raise BadRequest(
            "Name the fileset by its path below the catalog, and a file in it: ?fileset=raw.scans&file=a.csv"
        )
    return FilePath(fileset, path, request.query("location") or None)


def _number(request: Request, name: str, *, default: str) -> int:
    number = number_of(request.query(name) or default)
    if number is None:
        raise BadRequest(f"{name} must be a number, as ?{name}=20")
    return number


_FILESETS = "/api/limnos/v1/metalakes/{m}/catalogs/{c}/filesets"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=f"{_FILESETS}/entries",
        handler=entries,
        operation="list-fileset-entries",
        query=("fileset", "directory", "location", "after", "limit"),
    ),
    Route(
        method="GET",
        path=f"{_FILESETS}/preview",
        handler=preview,
        operation="preview-fileset-file",
        query=("fileset", "file", "location", "rows"),
    ),
)
