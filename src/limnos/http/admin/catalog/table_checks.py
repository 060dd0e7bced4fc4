# SPDX-License-Identifier: Apache-2.0
"""Checks of tables: whether the files in a table's metadata exist and have the sizes that it states.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.admin.bodies import names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.services.iceberg import table_checks
from limnos.services.iceberg.reports import catalog_require
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

SNAPSHOTS = ("current", "all")


async def table_check(request: Request, ctx: Context) -> Response:
    """Check whether the next files of a `table`, after the page token `after`, exist and have the stated sizes.

    The files are those of its current snapshot, or with `snapshots=all` of all snapshots. Returns the problems.
    """
    metalake, catalog = names_of(request)
    path = tuple(display.parse(request.query("table") or "-"))
    if not request.query("table"):
        await ctx.read(RequestScope(metalake, catalog), catalog_require)
        raise BadRequest("Name the table by its path below the catalog, as ?table=raw.trips")
    snapshots = request.query("snapshots") or SNAPSHOTS[0]
    if snapshots not in SNAPSHOTS:
        raise BadRequest(f"'{snapshots[:50]}' is not a choice of snapshots: use one of {', '.join(SNAPSHOTS)}")
    check_slice = await table_checks.table_check(
        ctx, RequestScope(metalake, catalog), path=path, every=snapshots == "all", after=request.query("after")
    )
    findings = [{**each._asdict(), "told": each.advice} for each in check_slice.findings]
    for each in findings:
        del each["note"]  # `told` has it
    return json_response({"files": check_slice.files, "findings": findings, "after": check_slice.after})


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/catalogs/{c}/tables/check",
        handler=table_check,
        operation="check-table",
        query=("table", "snapshots", "after"),
    ),
)
