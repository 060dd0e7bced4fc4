# SPDX-License-Identifier: Apache-2.0
"""Previews of tables: the first rows visible to the caller.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.admin.bodies import names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import NO_STORE, Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.model.previews import PreviewRequest
from limnos.names import display
from limnos.services.iceberg.previews import named_table_preview
from limnos.services.iceberg.reports import catalog_require
from limnos.services.lance.table_files import LANCE_FILES
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

_SNAPSHOT_DIGITS_MAX = 19


async def preview(request: Request, ctx: Context) -> Response:
    """Return the first `rows` rows of a `table`, optionally of some `columns` or of one `snapshot`."""
    metalake, catalog = names_of(request)
    scope, name = RequestScope(metalake, catalog), request.query("table")
    path = tuple(display.parse(name)) if name else ()
    try:
        preview_request = preview_request_of(request)
    except BadRequest:  # raised only for callers who may use the catalog
        await ctx.read(scope, catalog_require)
        raise
    result = await named_table_preview(ctx, scope, path=path, preview_request=preview_request)
    if result is None:
        result = await LANCE_FILES.of(ctx.services).preview(ctx, scope, path=path, preview_request=preview_request)
    columns = [{"name": each.name, "type": each.type, "masked": each.is_masked} for each in result.columns]
    body = {
        "columns": columns,
        "rows": result.rows,
        "snapshot_id": result.snapshot_id,
        "complete": result.is_complete,
        "restricted": result.is_restricted,
        "columns_left_out": result.columns_left_out,
    }
    return json_response(body, headers=(NO_STORE,))


def preview_request_of(request: Request) -> PreviewRequest:
    """Parse the query parameters of a preview. Raises BadRequest for an invalid parameter."""
    rows = number_of(request.query("rows") or "100")
    snapshot = request.query("snapshot")
    if rows is None:
        raise BadRequest("rows must be a number, as ?rows=20")
    is_number = snapshot is None or (
        snapshot.isascii() and snapshot.isdigit() and len(snapshot) <= _SNAPSHOT_DIGITS_MAX
    )
    if not is_number:
        raise BadRequest("snapshot must be a snapshot's id, as ?snapshot=3497810964824022504")
    columns = tuple(name for name in (request.query("columns") or "").split(",") if name)
    return PreviewRequest(rows, columns, None if snapshot is None else int(snapshot))


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/catalogs/{c}/tables/preview",
        handler=preview,
        operation="preview-table",
        query=("table", "rows", "columns", "snapshot"),
    ),
)
