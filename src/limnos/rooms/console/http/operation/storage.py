# SPDX-License-Identifier: Apache-2.0
"""Checks of a catalog's storage: a list of catalogs with a button for each, and the results of a check's steps.

Has no business rules: the service allows owners of a catalog to check its storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from limnos.http.response import Response
from limnos.rooms.console.http.frame import Frame, frame_of
from limnos.rooms.console.http.operation.sections import operation_tabs
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.sheets import (
    CodeBlock,
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    SheetPage,
    hidden_fields,
    sheet_response,
)
from limnos.rooms.console.http.tabs import Chip, ChipLook, Fact
from limnos.services.catalog.catalogs import catalogs_list
from limnos.services.request.request_scope import RequestScope
from limnos.services.vending.storage_checks import StorageCheckStep, storage_check

_LOOKS: Final[Mapping[str, tuple[ChipLook, str]]] = {
    "ok": ("ok", "check"),
    "passed": ("ok", "check"),
    "failed": ("bad", "cross"),
}


async def storage_page(page_request: PageRequest) -> Response:
    """List the visible catalogs, with a button that checks the storage of each."""
    frame = await frame_of(page_request, "Storage", section="operations")
    nodes = await page_request.ctx.read(RequestScope(frame.metalake), catalogs_list)
    rows = tuple(
        (SheetCell(text=each.name, is_name=True), SheetCell(form=_form(page_request, frame, catalog=each.name)))
        for each in nodes
    )
    sheet = Sheet(
        title="",
        columns=(SheetColumn(text="Catalog"), SheetColumn(text="Action")),
        rows=rows,
        note="There is no catalog that you may see.",
    )
    page = SheetPage(
        frame=frame,
        title="Storage",
        intro=(
            "A check writes, lists, reads and deletes a small file in the catalog's storage, and tries vended"
            " credentials. Owners of a catalog may check it."
        ),
        tabs=operation_tabs(page_request, frame.metalake, current="storage"),
        sheets=(sheet,),
    )
    return sheet_response(page_request, page)


def _form(page_request: PageRequest, frame: Frame, *, catalog: str) -> FormView:
    fields = hidden_fields(metalake=frame.metalake, catalog=catalog)
    return FormView(
        action=f"{page_request.base}/storage/check",
        button="Check",
        fields=fields,
        label=f"Check the storage of {catalog}",
    )


async def check(page_request: PageRequest) -> Response:
    """Check a catalog's storage, and show each step, with its remedy if it failed."""
    fields = await page_request.form()
    metalake, catalog = fields.get("metalake", ""), fields.get("catalog", "")
    storage_report = await storage_check(page_request.ctx, RequestScope(metalake, catalog))
    frame = await frame_of(page_request, f"Storage of {catalog}", metalake=metalake, section="operations")
    columns = (SheetColumn(text="Step"), SheetColumn(text="Outcome"), SheetColumn(text="Result"))
    page = SheetPage(
        frame=frame,
        title=f"Storage of {catalog}",
        chips=(Chip("passed", "ok", "check") if storage_report.passed else Chip("failed", "bad", "cross"),),
        tabs=operation_tabs(page_request, metalake, current="storage"),
        facts=(Fact(label="Location", text=storage_report.location, is_code=True),),
        blocks=tuple(
            CodeBlock(f"Policy statement for {each.name}", each.statement)
            for each in storage_report.steps
            if each.statement
        ),
        sheets=(Sheet(title="", columns=columns, rows=tuple(_row(each) for each in storage_report.steps)),),
        forms=(_form(page_request, frame, catalog=catalog),),
    )
    return sheet_response(page_request, page)


def _row(step: StorageCheckStep) -> tuple[SheetCell, ...]:
    look, icon = _LOOKS.get(step.outcome, ("plain", ""))
    return (
        SheetCell(text=step.name, is_name=True),
        SheetCell(chips=(Chip(step.outcome, look, icon),)),
        SheetCell(text=step.told),
    )


ROUTES = (
    ConsoleRoute(method="GET", path="/storage", handler=storage_page, operation="storage-page", query=("metalake",)),
    ConsoleRoute(method="POST", path="/storage/check", handler=check, operation="check-storage-from-console"),
)
