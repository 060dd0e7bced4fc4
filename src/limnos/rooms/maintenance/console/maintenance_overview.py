# SPDX-License-Identifier: Apache-2.0
"""The page about the maintenance of a catalog's tables: the findings about each table with their reasons, and
operations.

Has no business rules. The services return only tables that the caller may maintain.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.names.path import Levels
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.frame import Link, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.sheets import Sheet, SheetCell, SheetColumn, SheetPage, number_field, sheet_response
from limnos.rooms.console.http.tabs import Fact
from limnos.rooms.maintenance.console.health import operation_chip, operation_text, requester_cell, result_text
from limnos.rooms.maintenance.services.lance.reports import lance_orphans
from limnos.rooms.maintenance.services.reports import (
    FindingsPage,
    TableOperation,
    assessment_time,
    catalog_format,
    executor_queue,
    findings_list,
    operations_list,
)
from limnos.services.catalog.catalogs import catalogs_list
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.table_formats import LANCE

OPERATIONS_SHOWN: Final = 100
_LATEST: Final = (1 << 63) - 1


async def maintenance_page(page_request: PageRequest) -> Response:
    """Show the findings about the tables of one catalog, and the latest operations on them."""
    frame = await frame_of(page_request, "Maintenance", section="maintenance")
    nodes = await page_request.ctx.read(RequestScope(frame.metalake), catalogs_list)
    names = [each.name for each in nodes]
    default = page_request.ctx.services.defaults.catalog
    catalog = page_request.request.query("catalog") or (default if default in names or not names else names[0])
    if catalog not in names:
        raise NotFound("There is no catalog that you may see", kind=Kind.CATALOG.word)
    base = f"{page_request.base}/maintenance?"
    tabs = tuple(
        Link(each, base + urlencode({"metalake": frame.metalake, "catalog": each}), each == catalog) for each in names
    )
    scope, after = RequestScope(frame.metalake, catalog), page_request.request.query("after")
    findings = await findings_list(page_request.ctx, scope, after=number_field(after, what="The page") if after else 0)
    operations = await operations_list(page_request.ctx, scope, before=_LATEST)
    following = ""
    if findings.after is not None:
        query = {"metalake": frame.metalake, "catalog": catalog, "after": str(findings.after)}
        following = base + urlencode(query)
    page = SheetPage(
        frame=frame,
        title="Maintenance",
        icon="wrench",
        intro=(
            "Tables that need work, by the last assessment, and the work on them. Policies define what the server does"
            " by itself: attach one to a namespace for all of its tables."
        ),
        tabs=tabs,
        facts=await _facts(page_request, scope, operations=operations),
        sheets=(
            _findings_sheet(page_request, scope, findings=findings, following=following),
            _operations_sheet(page_request, scope, operations=operations),
        ),
    )
    return sheet_response(page_request, page)


async def _facts(
    page_request: PageRequest, scope: RequestScope, *, operations: tuple[TableOperation, ...]
) -> tuple[Fact, ...]:
    """Return the server's settings for tables without a policy, and the time of the last assessment."""
    ctx = page_request.ctx
    settings, is_lance = ctx.services.defaults.maintenance, await catalog_format(ctx, scope) == LANCE
    queue = await executor_queue(ctx, scope, operations=operations)
    assessed_at = await assessment_time(ctx) if settings.assess else None
    rewrites = "of all tables" if settings.rewrite else "where a policy says so"
    if not is_lance and queue.executor == "off" and not queue.is_active:
        rewrites += " (no executor: run limnos maintenance work)"
    orphans = {"all": "of all tables", "policies": "where a policy says so"}.get(
        settings.orphans, "no: setting maintenance.orphan_files"
    )
    return (
        Fact(label="Assesses tables", text="yes" if settings.assess else "no: setting maintenance.assess"),
        *(() if assessed_at is None else (Fact(label="Last assessment", at_ms=assessed_at),)),
        Fact(label="Expires snapshots", text="of all tables" if settings.expire else "where a policy says so"),
        Fact(label="Rewrites files", text=rewrites),
        (
            Fact(label="Orphan files", text=lance_orphans(ctx.services.defaults.lance_debris_ms).removal)
            if is_lance
            else Fact(label="Removes orphan files", text=orphans)
        ),
    )


def _findings_sheet(page_request: PageRequest, scope: RequestScope, *, findings: FindingsPage, following: str) -> Sheet:
    columns = (
        SheetColumn(text="Table", is_code=True),
        SheetColumn(text="Needs"),
        SheetColumn(text="Score", is_number=True, hides=True),
        SheetColumn(text="Why"),
        SheetColumn(text="Found", hides=True),
    )
    rows = tuple(
        (
            _table_cell(page_request, scope, path=each.path),
            SheetCell(text=operation_text(each.row.kind)),
            SheetCell(text=str(each.row.score)),
            SheetCell(text=each.row.reason),
            SheetCell(at_ms=each.row.found_at),
        )
        for each in sorted(findings.findings, key=lambda finding: (-finding.row.score, finding.path))
    )
    note = "No table that you may maintain needs anything."
    return Sheet(title="Due operations", columns=columns, rows=rows, note=note, following=following)


def _operations_sheet(
    page_request: PageRequest, scope: RequestScope, *, operations: tuple[TableOperation, ...]
) -> Sheet:
    columns = (
        SheetColumn(text="Table", is_code=True),
        SheetColumn(text="Operation"),
        SheetColumn(text="State"),
        SheetColumn(text="For", hides=True),
        SheetColumn(text="Requested"),
        SheetColumn(text="Result", hides=True),
    )
    rows = tuple(
        (
            _table_cell(page_request, scope, path=each.path),
            SheetCell(text=operation_text(each.row.kind)),
            SheetCell(chips=(operation_chip(each.row.state),)),
            requester_cell(page_request, scope.metalake or "", row=each.row),
            SheetCell(at_ms=each.row.started_at),
            SheetCell(text=result_text(each.row.result or "")),
        )
        for each in operations[:OPERATIONS_SHOWN]
    )
    more = f"The newest {OPERATIONS_SHOWN} are shown." if len(operations) > OPERATIONS_SHOWN else ""
    return Sheet(
        title="Operations",
        columns=columns,
        rows=rows,
        note="No operation was requested on a table that you may maintain.",
        more=more,
    )


def _table_cell(page_request: PageRequest, scope: RequestScope, *, path: Levels) -> SheetCell:
    catalog = scope.catalog or ""
    address = ObjectAddress(Kind.TABLE, scope.metalake or "", catalog, path)
    return SheetCell(
        text=display.render((catalog, *path)), href=f"{page_request.base}{address.path}?tab=maintenance", is_name=True
    )


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/maintenance",
        handler=maintenance_page,
        operation="maintenance-page",
        query=("metalake", "catalog", "after", "done"),
    ),
)
