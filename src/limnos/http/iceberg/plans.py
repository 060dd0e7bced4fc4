"""Routes that plan scans: plan one, fetch more of it.

May import `access`, `formats` for the shape of a request, `model`, `names`, `services` and the shared modules of `limnos.http`. What was planned becomes an answer
in `_scan_tasks` alone.

403 or 404: as for reading the table's credentials, but with the right to read its rows: a table that does not exist is 404 to whoever could read it, had it no grants of its own,
and to whoever creates tables or works with views in its namespace; else 403.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from limnos.formats.scans.request import ScanRequest
from limnos.http.iceberg.paths import levels_of, name_of, split, through_of
from limnos.http.iceberg.vended import delegates_of, entry_of
from limnos.http.response import JSON, NO_STORE, Response
from limnos.model.errors import BadRequest
from limnos.services import scans
from limnos.services.credentials import table_credentials, vends

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from limnos.http.request import Request
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.scans import Scanned, Told
    from limnos.services.scene import Scope

T = TypeVar("T")
LOOK_S: Final = 0.5
"""How often it is looked whether who asked is still there."""


async def scan_plan(request: Request, ctx: Context) -> Response:
    """POST plan: the files of a scan."""
    scope, params = split(request, ctx, 2)
    path = (*levels_of(params[0]), name_of(params[1]))
    asked = request.decode(await request.body(), ScanRequest)
    asked.check()
    through = through_of(request) if request.query_string else ()
    scanned = await ctx.read(scope, lambda scene: scans.scan_look(scene, path, asked=asked, through=through))
    told = await unless_gone(request.is_gone, _planned(ctx, scanned))
    head = b'"status":"completed","plan-id":' + msgspec.json.encode(token_hex(16))
    credentials = await _credentials(request, ctx, scope=scope, path=path, scanned=scanned)
    return _scan_tasks(told, head=head, credentials=credentials)


async def _planned(ctx: Context, scanned: Scanned) -> Told:
    scan = await scans.scan_of(ctx, scanned)
    return await scan.tasks(await scan.needed())


async def _credentials(request: Request, ctx: Context, *, scope: Scope, path: Levels, scanned: Scanned) -> bytes:
    """Spell the credentials that a client asked for, where the catalog gives some out."""
    if not (delegates_of(request) and vends(scanned.place.catalog.properties)):
        return b""
    found = await table_credentials(ctx, scope, levels=path)
    if found is None:
        return b""
    return b',"storage-credentials":' + msgspec.json.encode([entry_of(found, scope, levels=path)])


def _scan_tasks(told: Told, *, head: bytes, credentials: bytes = b"") -> Response:
    """Answer with what was planned. Delete files are left out where there are none, as clients insist that tasks refer to them."""
    deletes = b"".join((b'"delete-files":[', told.deletes, b"],")) if told.deletes else b""
    body = b"".join((b"{", head, b",", deletes, b'"file-scan-tasks":[', told.files, b"]", credentials, b"}"))
    return Response(200, body, (JSON, NO_STORE))


async def unless_gone(is_gone: Callable[[], bool] | None, work: Coroutine[object, object, T]) -> T:
    """Do something for a client as long as it is there; what is under way is ended when it leaves. Raises BadRequest."""
    task = asyncio.ensure_future(work)
    try:
        while True:
            await asyncio.wait((task,), timeout=LOOK_S)
            if task.done():
                return task.result()
            if is_gone is not None and is_gone():
                raise BadRequest("The client went away before its scan was planned")
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
