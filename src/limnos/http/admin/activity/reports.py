# SPDX-License-Identifier: Apache-2.0
"""Metrics reports of clients about scans of a table and commits to it.

Must not know the content of a report.
"""

from __future__ import annotations

import msgspec

from limnos.http.admin.bodies import names_of
from limnos.http.admin.numbers import ID_MAX, number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.services.iceberg import reports
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

KINDS = ("scan", "commit")


async def reports_list(request: Request, ctx: Context) -> Response:
    """Return a page of a `table`'s reports, newest first; optionally of one `type`.

    A page has at most `limit` reports, with ids below `before`.
    """
    metalake, catalog = names_of(request)
    path = tuple(display.parse(request.query("table") or "-"))
    if not request.query("table"):
        await ctx.read(RequestScope(metalake, catalog), reports.catalog_require)
        raise BadRequest("Name the table by its path below the catalog, as ?table=raw.trips")
    kind = request.query("type") or ""
    if kind and kind not in KINDS:
        raise BadRequest(f"'{kind[:50]}' is not a type of report: use one of {', '.join(KINDS)}")
    limit = _number(request, "limit", reports.PAGE_MAX)
    rows, more = await reports.reports_list(
        ctx,
        RequestScope(metalake, catalog),
        namespace=path[:-1],
        name=path[-1],
        kind=kind,
        before=_number(request, "before", ID_MAX),
        limit=limit,
    )
    entries = [
        {
            "id": each.id,
            "type": each.kind,
            "at": instant(each.at),
            "user": each.reporter,
            "snapshot_id": each.snapshot_id,
            "report": msgspec.Raw(each.body),
        }
        for each in rows
    ]
    return json_response({"reports": entries, "before": rows[-1].id if more and rows else None})


def _number(request: Request, name: str, default: int) -> int:
    text = request.query(name)
    if not text:
        return default
    number = number_of(text)
    if not number:
        raise BadRequest(f"{name} must be a number from 1, not '{text[:20]}'")
    return number


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/catalogs/{c}/reports",
        handler=reports_list,
        operation="list-reports",
        query=("table", "type", "before", "limit"),
    ),
)
