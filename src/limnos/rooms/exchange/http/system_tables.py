# SPDX-License-Identifier: Apache-2.0
"""System tables: the tree of a metalake as tables, in parts at one revision, as Arrow IPC streams.

Must not know how rows are built.
"""

from __future__ import annotations

import re
from typing import Final

from limnos.formats.system_tables import SYSTEM_TABLES, SystemTable, row_request, system_table
from limnos.http.admin.bodies import names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, begun_stream_response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.rooms.exchange.services.part_reads import IdRange
from limnos.rooms.exchange.services.system_tables import WHOLE, PartRequest, table_read, table_scan, tables_list
from limnos.services.request.context import Context

_TABLES: Final = "/api/limnos/v1/metalakes/{m}/system-tables"
_ONE: Final = f"{_TABLES}/{{table}}"
_ARROW: Final = b"application/vnd.apache.arrow.stream"
_PARTS: Final = 8
_PART: Final = re.compile(r"(\d{1,19})-(\d{1,19})", re.ASCII)
_REVISION: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_ROWS_S: Final = 120.0
"""The time limit of a page, in seconds: a page of effective access may have many users."""


async def system_tables_list(request: Request, ctx: Context) -> Response:
    """Return the system tables with their columns."""
    (metalake,) = names_of(request)
    await tables_list(ctx, metalake)
    return json_response({"tables": [_encode(each) for each in SYSTEM_TABLES.values()]})


def _encode(table: SystemTable) -> dict[str, object]:
    columns = [{"name": each.name, "type": each.type} for each in table.columns]
    return {"name": table.name, "about": table.about, "columns": columns}


async def system_table_scan(request: Request, ctx: Context) -> Response:
    """Hold the current revision for a read of a table, and return it with the parts of the table (`parts`, at most 64;
    8 by default) and the table's columns.
    """
    metalake, name = names_of(request)
    await tables_list(ctx, metalake)  # before the request is looked at, as a stranger learns nothing about it
    table = system_table(name)
    parts = number_of(request.query("parts") or str(_PARTS))
    scan = await table_scan(ctx, metalake, table=table, parts=-1 if parts is None else parts)
    return json_response(
        {
            "revision": scan.revision,
            "parts": [f"{part.first}-{part.last}" for part in scan.parts],
            "held_s": scan.held_s,
            "table": _encode(table),
        }
    )


async def system_table_rows(request: Request, ctx: Context) -> Response:
    """Return the rows of a part of a table (`part`) at a revision (`revision`) that a scan returned, as an Arrow IPC
    stream; without them, all rows at the current revision.

    `columns` are the names of columns, separated by commas. `where` is a JSON list of conditions, such as
    `[["kind", "=", "table"]]`. A revision that can no longer be read is refused with the code `revision-ended`.
    """
    metalake, name = names_of(request)
    await tables_list(ctx, metalake)
    rows = row_request(system_table(name), columns=request.query("columns"), where=request.query("where"))
    part, revision = _part(request.query("part")), request.query("revision") or None
    if revision is not None and _REVISION.fullmatch(revision) is None:
        raise BadRequest("revision must be one that a scan of a table returned")
    if part != WHOLE and revision is None:
        raise BadRequest("A part is read at the revision of its scan: give revision, too")
    stream = table_read(ctx, metalake, request=PartRequest(rows, part, revision))
    return await begun_stream_response(stream, ((b"content-type", _ARROW),))


def _part(text: str | None) -> IdRange:
    if not text:
        return WHOLE
    match = _PART.fullmatch(text)
    if match is None:
        raise BadRequest("part must be one that a scan of a table returned, such as 0-1000")
    return IdRange(min(int(match[1]), WHOLE.last), min(int(match[2]), WHOLE.last))


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_TABLES, handler=system_tables_list, operation="list-system-tables"),
    Route(method="GET", path=_ONE, handler=system_table_scan, operation="scan-system-table", query=("parts",)),
    Route(
        method="GET",
        path=f"{_ONE}/rows",
        handler=system_table_rows,
        operation="read-system-table",
        query=("revision", "part", "columns", "where"),
        deadline_s=_ROWS_S,
    ),
)
