# SPDX-License-Identifier: Apache-2.0
"""The page with the first rows of a table as another user sees them, for those who may restrict the table.

The service makes all access decisions.
"""

from __future__ import annotations

from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import parse_address
from limnos.rooms.console.http.frame import crumbs_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.sheets import Sheet, SheetCell, SheetColumn, SheetPage, sheet_response
from limnos.rooms.console.http.table_parts.preview import preview_tab_as
from limnos.rooms.console.http.tabs import object_frame


async def seen_as_page(page_request: PageRequest) -> Response:
    """Show the first rows of a table as the requested user sees them, or why they cannot be shown."""
    address, user = parse_address(page_request.request.params), page_request.request.query("as")
    if not user or address.kind is not Kind.TABLE:
        raise BadRequest("Name a table and a user, on the page of the table's read restrictions")
    tab = await preview_tab_as(page_request, address, user=user)
    path = display.render((address.catalog, *address.levels))
    columns = tuple(
        SheetColumn(text=f"{each.name} (masked)" if each.is_masked else each.name, is_number=each.is_number)
        for each in tab.columns
    )
    rows = tuple(tuple(SheetCell(text="NULL" if cell.is_null else cell.text) for cell in row) for row in tab.rows)
    note = tab.refusal or f"{user} sees no row."
    more = "" if tab.is_restricted or tab.refusal else f"No restriction applies to {user}."
    page = SheetPage(
        frame=await object_frame(page_request, address),
        title=f"{path} as {user} sees it",
        icon="lock",
        intro="The first rows, with the row filters and masks that apply to this user. The audit has a record of it.",
        crumbs=crumbs_of(page_request, address),
        sheets=(Sheet(title="", columns=columns, rows=rows, note=note, more=more),),
    )
    return sheet_response(page_request, page, status=tab.status)


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/seen-as/{kind}/{path...}",
        handler=seen_as_page,
        operation="seen-as-page",
        query=("as",),
        is_form=True,
    ),
)
