# SPDX-License-Identifier: Apache-2.0
"""Loads of many Iceberg tables or views of a catalog: the metadata of each, or its error, as a line.

Has no business rules. A client asks again for the objects that have no line.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.catalog.item_audit import audit_item_error, request_of_item
from limnos.http.admin.errors import error_fields
from limnos.http.request import Request
from limnos.http.response import NO_STORE, Response, begun_stream_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.services.iceberg.batch_loads import (
    PATHS_MAX,
    LoadedKind,
    LoadedObject,
    LoadRequest,
    SnapshotMode,
    objects_load,
)
from limnos.services.iceberg.reports import catalog_require
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_HEADERS = ((b"content-type", b"application/x-ndjson"), NO_STORE)


class LoadObjects(AdminRequestBody, frozen=True):
    """The body of a request to load objects: their paths below the catalog."""

    paths: list[list[str]]
    kind: LoadedKind = "table"
    snapshots: SnapshotMode = "refs"


async def load_objects(request: Request, ctx: Context) -> Response:
    """Return the metadata of at most 100 Iceberg tables or views, a JSON object a line, in the order of `paths`; then a
    line with the number of lines.

    Each is decided as its single load; a line may have an error. An answer ends after 8 MiB of metadata: ask again for
    the objects without a line. `snapshots` is `refs`, for the snapshots of branches and tags, or `all`.
    """
    scope = RequestScope(*names_of(request))
    await ctx.read(scope, catalog_require)
    body = request.decode(await request.body(), LoadObjects)
    if not 0 < len(body.paths) <= PATHS_MAX:
        raise BadRequest(f"A request loads 1 to {PATHS_MAX} objects, not {len(body.paths)}")
    loads = LoadRequest([tuple(each) for each in body.paths], body.kind, body.snapshots)
    return await begun_stream_response(_lines(request, ctx, scope=scope, loads=loads), _HEADERS)


async def _lines(
    request: Request, ctx: Context, *, scope: RequestScope, loads: LoadRequest
) -> AsyncGenerator[bytes, None]:
    count = 0
    async for loaded in objects_load(ctx, scope, request=loads):
        count += len(loaded)
        for each in loaded:
            if each.error is not None:
                audit_item_error(request_of_item(request), ctx, error=each.error)
        if request.decided is not None:  # refused items have records of their own
            request.decided = [each for each in request.decided if each.allowed]
        yield b"".join([_line(each, request.id) for each in loaded])
    yield msgspec.json.encode({"count": count}) + b"\n"


def _line(each: LoadedObject, request_id: str) -> bytes:
    if each.error is not None:
        fields = {"index": each.position, **error_fields(each.error), "request_id": request_id}
        return msgspec.json.encode(fields) + b"\n"
    location = msgspec.json.encode(each.metadata_location)
    # line breaks in JSON are only between its tokens
    metadata = each.body.translate(_LINE_BREAKS)
    return b'{"index":%d,"metadata_location":%b,"metadata":%b}\n' % (each.position, location, metadata)


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="POST",
        path="/api/limnos/v1/metalakes/{m}/catalogs/{c}/load",
        handler=load_objects,
        operation="load-objects",
    ),
)
