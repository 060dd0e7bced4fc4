# SPDX-License-Identifier: Apache-2.0
"""Pages of Iceberg tables: columns, snapshots, properties, partitions, code snippets for clients, and the metadata
itself.

Has no business rules. A restricted user sees the same columns as over Iceberg REST, and a label that states the
restriction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from limnos.http.response import Response
from limnos.model.kinds import Kind
from limnos.rooms.console.http import lance_tables
from limnos.rooms.console.http.addresses import ObjectAddress, run_path
from limnos.rooms.console.http.connect import Snippet, snippets_of
from limnos.rooms.console.http.frame import Frame
from limnos.rooms.console.http.navigation.heading_words import format_chip, query_url
from limnos.rooms.console.http.object_tabs import tabs_of
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import count_text, render, size_text
from limnos.rooms.console.http.responses import html_response, redirect
from limnos.rooms.console.http.room_tab import room_tab
from limnos.rooms.console.http.sheets import TabPart
from limnos.rooms.console.http.table_metadata import (
    ColumnLine,
    MetadataPart,
    ReferencePart,
    SnapshotPart,
    column_lines,
    decode_metadata,
)
from limnos.rooms.console.http.table_parts.compare import compare_part
from limnos.rooms.console.http.table_parts.preview import PreviewTab, preview_tab
from limnos.rooms.console.http.table_parts.scans import scans_tab
from limnos.rooms.console.http.tabs import (
    Chip,
    Fact,
    ObjectHeading,
    Property,
    dashboard_facts,
    facts_of,
    heading_of,
    object_frame,
    properties_of,
    tab_of,
)
from limnos.services.catalog.dashboards import dashboards_of
from limnos.services.governance.details import ObjectDetails, details_load
from limnos.services.iceberg.restricted_tables import TableVisibility, document_for_caller, table_visibility
from limnos.services.iceberg.unreadable_documents import reader_problems
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, format_of

SNAPSHOTS_SHOWN: Final = 200
_RUN_ID_CHARS: Final = 8
"""The number of characters of a run's id in lists."""
METADATA_BYTES_MAX: Final = 150_000
"""The maximum size of the metadata that a page shows, in bytes."""


class SnapshotLine(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot in the list. Counts are texts from its summary, empty if the writer omitted them.

    `writer` is the run of a pipeline, or else the engine; `run` is the full id of the run, or empty.
    """

    id: str
    at_ms: int
    operation: str
    references: tuple[Chip, ...]
    is_current: bool
    rows_changed: str
    rows_total: str
    files_changed: str
    size: str
    writer: str
    run: str


class LayoutLine(msgspec.Struct, frozen=True):
    """A field of the partition spec or the sort order, as text."""

    column: str
    words: str


class TablePage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page of an Iceberg table."""

    frame: Frame
    heading: ObjectHeading
    tab: str
    facts: tuple[Fact, ...]
    columns: list[ColumnLine]
    columns_count: int
    snapshots: tuple[SnapshotLine, ...]
    snapshots_count: int
    runs: str
    """The URL of a run's page, to which the run's id is appended."""
    properties: tuple[Property, ...]
    partitions: tuple[LayoutLine, ...]
    sorting: tuple[LayoutLine, ...]
    snippets: tuple[Snippet, ...]
    metadata: str
    is_metadata_cut: bool
    is_bound: bool
    masked: tuple[str, ...]
    """The names of the columns whose values are masked for the caller."""
    problems: tuple[str, ...]
    """Why some readers refuse the table's metadata, with what corrects it."""
    preview: PreviewTab
    part: TabPart


class _TableState(NamedTuple):
    details: ObjectDetails
    visible: TableVisibility
    dashboards: Mapping[str, str]


async def table_page(page_request: PageRequest, address: ObjectAddress) -> Response:
    """Show an Iceberg table. Lance tables are passed to their own page, and the tab `lineage` redirects to the lineage
    page.
    """
    if page_request.request.query("tab") == "lineage":
        return redirect(f"{page_request.base}/lineage{address.path.removeprefix('/o')}")

    def read(view: RequestView) -> _TableState | None:
        if format_of(view) == LANCE:
            return None
        visible = table_visibility(view, address.levels)
        details = details_load(view, Kind.TABLE, levels=address.levels)
        return _TableState(details, visible, dashboards_of(view, address.levels))

    state = await page_request.ctx.read(address.scope, read)
    if state is None:
        return await lance_tables.table_page(page_request, address)
    document = state.visible.document
    if state.visible.bound is not None:
        document = await document_for_caller(page_request.ctx, state.visible)
    metadata = decode_metadata(document.body)
    tab = tab_of(page_request, tabs_of(Kind.TABLE, is_lance=False, site=page_request.site))
    view = await _page(page_request, address, state=state, metadata=metadata, body=document.body, tab=tab)
    return html_response(page_request.request, render("table.html", view), status=view.preview.status)


def _masked_columns(visible: TableVisibility, metadata: MetadataPart) -> tuple[str, ...]:
    masks = {} if visible.bound is None else visible.bound.masks
    return tuple(field.name for field in metadata.current_schema().fields if field.id in masks)


async def _page(
    page_request: PageRequest,
    address: ObjectAddress,
    *,
    state: _TableState,
    metadata: MetadataPart,
    body: bytes,
    tab: str,
) -> TablePage:
    is_bound = state.visible.bound is not None
    columns, count = column_lines(metadata.current_schema(), state.details.column_tags)
    chips = [format_chip(metadata.format_version)]
    if is_bound:
        chips.append(Chip("You see only a part of it", "warn", "alert"))
    heading = heading_of(
        page_request,
        address,
        details=state.details,
        tabs=tabs_of(Kind.TABLE, is_lance=False, site=page_request.site),
        tab=tab,
        chips=tuple(chips),
        comment=metadata.properties.get("comment", ""),
        query="" if is_bound else query_url(page_request, address, details=state.details),
    )
    text = msgspec.json.format(body, indent=2)[:METADATA_BYTES_MAX] if tab == "metadata" else b""
    return TablePage(
        frame=await object_frame(page_request, address),
        heading=heading,
        tab=tab,
        facts=_facts(state, metadata, columns=count),
        columns=columns if tab == "columns" else [],
        columns_count=count,
        snapshots=snapshot_lines(metadata) if tab == "snapshots" else (),
        snapshots_count=len(metadata.snapshots),
        runs=page_request.base + run_path(address.metalake, run=""),
        properties=properties_of(metadata.properties) if tab == "properties" else (),
        partitions=_partitions(metadata),
        sorting=_sorting(metadata),
        snippets=snippets_of(page_request, address, is_restricted=is_bound) if tab == "connect" else (),
        metadata=text.decode("utf-8", "replace"),
        is_metadata_cut=len(text) == METADATA_BYTES_MAX,
        is_bound=is_bound,
        masked=_masked_columns(state.visible, metadata),
        problems=() if is_bound else tuple(await reader_problems(page_request.ctx.services, state.visible.document)),
        preview=await preview_tab(page_request, address) if tab == "preview" else PreviewTab(),
        part=await _tab_part(page_request, address, metadata=metadata, tab=tab),
    )


async def _tab_part(page_request: PageRequest, address: ObjectAddress, *, metadata: MetadataPart, tab: str) -> TabPart:
    """Return the content of the tabs that have no template of their own."""
    if tab == "snapshots":
        return compare_part(page_request, address, metadata=metadata)
    if tab == "scans":
        return await scans_tab(page_request, address)
    return await room_tab(page_request, address, tab=tab)


def _facts(state: _TableState, metadata: MetadataPart, *, columns: int) -> tuple[Fact, ...]:
    last = max((each.timestamp_ms for each in metadata.snapshots), default=None)
    current = next((each for each in metadata.snapshots if each.snapshot_id == metadata.current_snapshot_id), None)
    rows = None if current is None else current.summary.get("total-records")
    owner, *_ = facts_of(state.details)
    is_bound = state.visible.bound is not None  # restricted readers get a stand-in for the location
    return (
        Fact(label="Columns", text=str(columns)),
        *(() if rows is None or not rows.isdigit() else (Fact(label="Rows", text=count_text(int(rows))),)),
        Fact(label="Snapshots", text=str(len(metadata.snapshots))),
        owner,
        Fact(label="Last write", text="", at_ms=last)
        if last is not None
        else Fact(label="Last write", text="none yet"),
        Fact(label="Changed", text="", at_ms=metadata.last_updated_ms),
        *(() if is_bound else (Fact(label="Location", text=metadata.location, is_code=True),)),
        *dashboard_facts(state.dashboards),
    )


def snapshot_lines(metadata: MetadataPart) -> tuple[SnapshotLine, ...]:
    """Return the latest snapshots, newest first, with the branches and tags that refer to them."""
    references_by_id: dict[int, list[tuple[str, ReferencePart]]] = {}
    for name, reference in metadata.refs.items():
        references_by_id.setdefault(reference.snapshot_id, []).append((name, reference))
    newest = sorted(metadata.snapshots, key=lambda each: (each.timestamp_ms, each.sequence_number), reverse=True)
    return tuple(_snapshot_line(each, metadata, named=references_by_id) for each in newest[:SNAPSHOTS_SHOWN])


def _snapshot_line(
    snapshot: SnapshotPart, metadata: MetadataPart, *, named: dict[int, list[tuple[str, ReferencePart]]]
) -> SnapshotLine:
    summary = snapshot.summary
    size, run = summary.get("total-files-size", ""), summary.get("limnos.run", "")
    references = named.get(snapshot.snapshot_id, [])
    return SnapshotLine(
        id=str(snapshot.snapshot_id),
        at_ms=snapshot.timestamp_ms,
        operation=summary.get("operation", ""),
        references=tuple(
            Chip(name, "accent" if each.type == "branch" else "plain", each.type) for name, each in references
        ),
        is_current=snapshot.snapshot_id == metadata.current_snapshot_id,
        rows_changed=_change_counts(summary.get("added-records", ""), summary.get("deleted-records", "")),
        rows_total=_count(summary.get("total-records", "")),
        files_changed=_change_counts(summary.get("added-data-files", ""), summary.get("deleted-data-files", "")),
        size=size_text(int(size)) if size.isdigit() and len(size) < 20 else "",
        writer=run[:_RUN_ID_CHARS] or summary.get("engine-name", ""),
        run=run,
    )


def _count(text: str) -> str:
    return count_text(int(text)) if text.isdigit() and len(text) < 20 else text


def _change_counts(added: str, removed: str) -> str:
    """Format the counts of rows or files that a snapshot added and removed, such as `+3`; zeros are omitted."""
    marks = (("+", added), ("\N{MINUS SIGN}", removed))
    return " ".join(f"{mark}{_count(text)}" for mark, text in marks if text not in ("", "0"))


def _partitions(metadata: MetadataPart) -> tuple[LayoutLine, ...]:
    names = _names_by_id(metadata)
    spec = next((each for each in metadata.partition_specs if each.spec_id == metadata.default_spec_id), None)
    fields = [] if spec is None else spec.fields
    return tuple(LayoutLine(names.get(each.source_id, each.name), each.transform) for each in fields)


def _sorting(metadata: MetadataPart) -> tuple[LayoutLine, ...]:
    names = _names_by_id(metadata)
    order = next((each for each in metadata.sort_orders if each.order_id == metadata.default_sort_order_id), None)
    fields = [] if order is None else order.fields
    return tuple(
        LayoutLine(names.get(each.source_id, "?"), f"{each.transform}, {each.direction}, {each.null_order}")
        for each in fields
    )


def _names_by_id(metadata: MetadataPart) -> dict[int, str]:
    return {each.id: each.name for each in metadata.current_schema().fields}
