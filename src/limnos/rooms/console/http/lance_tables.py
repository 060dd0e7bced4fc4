# SPDX-License-Identifier: Apache-2.0
"""Pages of Lance tables: columns, the first rows, properties, code snippets, and the tabs of rooms.

Has no business rules.
"""

from __future__ import annotations

import msgspec

from limnos.http.response import Response
from limnos.model.kinds import Kind
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.connect import Snippet, snippets_of
from limnos.rooms.console.http.frame import Frame
from limnos.rooms.console.http.object_tabs import tabs_of
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.room_tab import room_tab
from limnos.rooms.console.http.sheets import TabPart
from limnos.rooms.console.http.table_metadata import ColumnLine
from limnos.rooms.console.http.table_parts.lance_columns import LanceColumns, lance_columns
from limnos.rooms.console.http.table_parts.preview import PreviewTab, preview_tab
from limnos.rooms.console.http.tabs import (
    Chip,
    Fact,
    ObjectHeading,
    Property,
    facts_of,
    heading_of,
    object_frame,
    properties_of,
    tab_of,
)
from limnos.services.governance.details import details_load


class LanceTablePage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a Lance table's page. `refusal` is the reason why the columns were not read."""

    frame: Frame
    heading: ObjectHeading
    tab: str
    facts: tuple[Fact, ...]
    properties: tuple[Property, ...]
    snippets: tuple[Snippet, ...]
    preview: PreviewTab
    columns: tuple[ColumnLine, ...]
    columns_count: int
    refusal: str
    part: TabPart


async def table_page(page_request: PageRequest, address: ObjectAddress) -> Response:
    """Show a Lance table. Only the tabs about its content read its files."""
    details = await page_request.ctx.read(
        address.scope, lambda view: details_load(view, Kind.TABLE, levels=address.levels)
    )
    tabs = tabs_of(Kind.TABLE, is_lance=True, site=page_request.site)
    tab = tab_of(page_request, tabs)
    record = details.node.record
    heading = heading_of(
        page_request,
        address,
        details=details,
        tabs=tabs,
        tab=tab,
        chips=(Chip("Lance", "accent", "table"),),
        comment=getattr(record, "comment", None) or "",
    )
    columns = await lance_columns(page_request, address) if tab == "columns" else LanceColumns()
    view = LanceTablePage(
        frame=await object_frame(page_request, address),
        heading=heading,
        tab=tab,
        facts=(*columns.facts, *facts_of(details)),
        properties=properties_of(record.properties),
        snippets=snippets_of(page_request, address, is_lance=True) if tab == "connect" else (),
        preview=await preview_tab(page_request, address, is_lance=True) if tab == "preview" else PreviewTab(),
        columns=columns.lines,
        columns_count=columns.lines_count,
        refusal=columns.refusal,
        part=await room_tab(page_request, address, tab=tab, is_lance=True),
    )
    return html_response(page_request.request, render("lance_table.html", view), status=view.preview.status)
