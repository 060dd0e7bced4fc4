# SPDX-License-Identifier: Apache-2.0
"""Tabs on the console's pages of Lance tables: versions with tags and branches, and indexes.

Has no business rules. Refusals, tables without data and failures of storage are shown on the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from limnos.access.actions import Action
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import count_text, size_text
from limnos.rooms.console.http.sheets import Sheet, SheetCell, SheetColumn, TabPart, number_field
from limnos.rooms.console.http.table_parts.lance_columns import (
    NO_DATA,
    SHOWN_ERRORS,
    ArrowField,
    arrow_type_text,
    lance_columns,
)
from limnos.rooms.console.http.tabs import Chip
from limnos.rooms.lance.services.references import references_list
from limnos.rooms.lance.services.row_operations import ask_files
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.services.versions import VersionWindow, versions_list
from limnos.rooms.lance.sources.questions import LanceIndex, ListIndices, TableReferences

VERSIONS_SHOWN: Final = 100


_NEWEST: Final = VersionReference()


async def versions_tab(page_request: PageRequest, address: ObjectAddress, *, is_lance: bool) -> TabPart:
    """Show the versions of the main branch, newest first, with the tags and branches that refer to them."""
    del is_lance
    after, ctx = page_request.request.query("after"), page_request.ctx
    start = number_field(after, what="after") if after else None
    window = VersionWindow(start, VERSIONS_SHOWN, descending=True)
    try:
        versions, last = await versions_list(ctx, address.scope, levels=address.levels, branch="", window=window)
        references = await references_list(ctx, address.scope, levels=address.levels)
    except SHOWN_ERRORS as error:
        return TabPart(warning=error.message)
    chips = _chips_by_version(references)
    if start is None and versions:
        chips.setdefault(versions[0].version, []).insert(0, Chip("current", "ok", "check"))
    query = urlencode({"tab": "versions", "after": last})
    sheet = Sheet(
        title="",
        columns=(
            SheetColumn(text="Version", is_code=True),
            SheetColumn(text="When"),
            SheetColumn(text="Tags and branches"),
            SheetColumn(text="Size of its manifest", hides=True, is_number=True),
        ),
        rows=tuple(
            (
                SheetCell(text=count_text(each.version)),
                SheetCell(at_ms=each.at_ms),
                SheetCell(chips=tuple(chips.get(each.version, ()))),
                SheetCell(text=size_text(each.size)),
            )
            for each in versions
        ),
        note=NO_DATA,
        following="" if last is None else f"{page_request.base}{address.path}?{query}",
    )
    return TabPart(sheets=(sheet, *_branch_sheets(references), *_branch_tag_sheets(references)))


def _chips_by_version(references: TableReferences) -> dict[int, list[Chip]]:
    """Return the tags of the main branch, and the branches that begin there, by version."""
    chips: dict[int, list[Chip]] = {}
    for name, tag in sorted(references.tags.items()):
        if not tag.branch:
            chips.setdefault(tag.version, []).append(Chip(name, "plain", "tag"))
    for name, branch in sorted(references.branches.items()):
        if not branch.parent_branch:
            chips.setdefault(branch.parent_version, []).append(Chip(f"{name} begins here", "accent", "branch"))
    return chips


def _branch_sheets(references: TableReferences) -> Iterator[Sheet]:
    """Yield the table of branches, if there are some."""
    rows = tuple(
        (
            SheetCell(text=name, is_name=True),
            SheetCell(text=branch.parent_branch or "main"),
            SheetCell(text=count_text(branch.parent_version)),
            SheetCell(at_ms=None if branch.created_at is None else branch.created_at * 1000),
        )
        for name, branch in sorted(references.branches.items())
    )
    columns = (
        SheetColumn(text="Branch"),
        SheetColumn(text="Begins in"),
        SheetColumn(text="At version", is_number=True),
        SheetColumn(text="Created"),
    )
    if rows:
        yield Sheet(title="Branches", columns=columns, rows=rows)


def _branch_tag_sheets(references: TableReferences) -> Iterator[Sheet]:
    """Yield the table of tags on other branches than main, if there are some."""
    rows = tuple(
        (SheetCell(text=name, is_name=True), SheetCell(text=str(tag.branch)), SheetCell(text=str(tag.version)))
        for name, tag in sorted(references.tags.items())
        if tag.branch
    )
    columns = (SheetColumn(text="Tag"), SheetColumn(text="Branch"), SheetColumn(text="Version", is_number=True))
    if rows:
        yield Sheet(title="Tags on branches", columns=columns, rows=rows)


async def indexes_tab(page_request: PageRequest, address: ObjectAddress, *, is_lance: bool) -> TabPart:
    """Show the table's indexes with their counts of covered rows, and the vector columns without an index."""
    del is_lance
    columns = await lance_columns(page_request, address)
    if columns.refusal:
        return TabPart(warning=columns.refusal)
    try:
        indexes = await ask_files(
            page_request.ctx,
            address.scope,
            levels=address.levels,
            at=_NEWEST,
            question=ListIndices(location="", options={}),
            shape=list[LanceIndex],
            action=Action.TABLE_LOAD,
        )
    except SHOWN_ERRORS as error:
        return TabPart(warning=error.message)
    return TabPart(facts=columns.facts, sheets=(_index_sheet(indexes), *_vector_sheet(columns.vectors, indexes)))


def _index_sheet(indexes: list[LanceIndex]) -> Sheet:
    columns = (
        SheetColumn(text="Index"),
        SheetColumn(text="Columns", is_code=True),
        SheetColumn(text="Type"),
        SheetColumn(text="Rows covered", is_number=True),
        SheetColumn(text="Not covered", is_number=True),
        SheetColumn(text="Size", hides=True, is_number=True),
        SheetColumn(text="Created", hides=True),
    )
    rows = tuple(
        (
            SheetCell(text=each.index_name, is_name=True),
            SheetCell(text=", ".join(each.columns)),
            SheetCell(text=each.index_type),
            SheetCell(text=count_text(each.num_indexed_rows)),
            _unindexed_cell(each.num_unindexed_rows),
            SheetCell(text=size_text(each.size_bytes)),
            SheetCell(at_ms=_instant_ms(each.created_at)),
        )
        for each in indexes
    )
    return Sheet(
        title="Indexes", columns=columns, rows=rows, note="No index: each search and each filter reads all rows."
    )


def _unindexed_cell(count: int) -> SheetCell:
    """Return the cell with the count of rows that are not indexed; searches scan these rows."""
    return SheetCell(chips=(Chip(count_text(count), "warn", "alert"),)) if count else SheetCell(text="0")


def _vector_sheet(vectors: tuple[ArrowField, ...], indexes: list[LanceIndex]) -> tuple[Sheet, ...]:
    """Return the list of a table's vector columns, each with its index; empty for a table without vector columns."""
    columns = (
        SheetColumn(text="Column"),
        SheetColumn(text="Dimensions", is_number=True),
        SheetColumn(text="Numbers"),
        SheetColumn(text="Nearest neighbours"),
    )
    rows = []
    for each in vectors:
        index = next((index for index in indexes if index.columns == [each.name]), None)
        chip = (
            Chip("no index: all rows are compared", "warn", "alert")
            if index is None
            else Chip(f"index {index.index_name}", "ok", "check")
        )
        numbers = arrow_type_text(each.type.fields[0].type)
        rows.append(
            (
                SheetCell(text=each.name, is_name=True),
                SheetCell(text=count_text(each.type.length or 0)),
                SheetCell(text=numbers),
                SheetCell(chips=(chip,)),
            )
        )
    return (Sheet(title="Vectors", columns=columns, rows=tuple(rows)),) if rows else ()


def _instant_ms(text: str | None) -> int | None:
    try:
        return None if text is None else int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return None
