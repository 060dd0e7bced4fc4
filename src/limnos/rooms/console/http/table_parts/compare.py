# SPDX-License-Identifier: Apache-2.0
"""The comparison of two snapshots of a table: differences in its columns, and in the counts of its summary.

Pure: it compares snapshots in the metadata that the page has loaded.
"""

from __future__ import annotations

from typing import Final

from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import count_text, exact_time
from limnos.rooms.console.http.sheets import (
    Choice,
    FormInput,
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    TabPart,
    hidden_fields,
)
from limnos.rooms.console.http.table_metadata import MetadataPart, SnapshotPart, schema_changes

CHOICES_MAX: Final = 200
_COUNTS: Final = (
    ("total-records", "Rows"),
    ("total-data-files", "Data files"),
    ("total-delete-files", "Delete files"),
    ("total-files-size", "Bytes"),
    ("total-position-deletes", "Position deletes"),
    ("total-equality-deletes", "Equality deletes"),
)


def compare_part(page_request: PageRequest, address: ObjectAddress, *, metadata: MetadataPart) -> TabPart:
    """Return the form that selects two snapshots, and their differences if the query has two."""
    newest = sorted(metadata.snapshots, key=lambda each: (each.timestamp_ms, each.sequence_number), reverse=True)
    if len(newest) < 2:
        return TabPart()
    by_id = {str(each.snapshot_id): each for each in newest}
    query = page_request.request.query
    former_part = by_id.get(query("from") or "")
    after = by_id.get(query("to") or "")
    form = _form(page_request, address, newest=newest, chosen=(former_part or newest[1], after or newest[0]))
    if former_part is None or after is None:
        return TabPart(forms=(form,))
    return TabPart(sheets=(_columns(metadata, former_part, after=after), _counts(former_part, after)), forms=(form,))


def _form(
    page_request: PageRequest, address: ObjectAddress, *, newest: list[SnapshotPart], chosen: tuple[SnapshotPart, ...]
) -> FormView:
    inputs = tuple(
        FormInput(
            name=name,
            label=label,
            choices=tuple(Choice(str(each.snapshot_id), _text(each), each is mark) for each in newest[:CHOICES_MAX]),
        )
        for name, label, mark in zip(("from", "to"), ("Earlier snapshot", "Later snapshot"), chosen, strict=True)
    )
    object_url = page_request.base + address.path
    return FormView(
        action=object_url,
        button="Compare",
        fields=hidden_fields(tab="snapshots"),
        inputs=inputs,
        title="Compare two snapshots",
        method="get",
    )


def _text(snapshot: SnapshotPart) -> str:
    return f"{exact_time(snapshot.timestamp_ms)} {snapshot.summary.get('operation', '')} {snapshot.snapshot_id}"


def _columns(metadata: MetadataPart, before: SnapshotPart, *, after: SnapshotPart) -> Sheet:
    schemas = {each.schema_id: each for each in metadata.schemas}
    old, new = (schemas.get(-1 if each.schema_id is None else each.schema_id) for each in (before, after))
    columns = (SheetColumn(text="Change of columns"),)
    if old is None or new is None:
        return Sheet(
            title="Columns", columns=columns, rows=(), note="A snapshot of this table does not record its columns."
        )
    rows = tuple((SheetCell(text=each),) for each in schema_changes(old, new))
    return Sheet(title="Columns", columns=columns, rows=rows, note="The columns are the same.")


def _counts(before: SnapshotPart, after: SnapshotPart) -> Sheet:
    columns = (
        SheetColumn(text="Count"),
        SheetColumn(text="Before", is_number=True),
        SheetColumn(text="After", is_number=True),
        SheetColumn(text="Difference", is_number=True),
    )
    rows = []
    for key, label in _COUNTS:
        old, new = (_number(each.summary.get(key)) for each in (before, after))
        if old is None and new is None:
            continue
        difference = "" if old is None or new is None else f"{'+' if new > old else ''}{count_text(new - old)}"
        counts = ("?" if each is None else count_text(each) for each in (old, new))
        rows.append(
            (
                SheetCell(text=label, is_name=True),
                *(SheetCell(text=each) for each in counts),
                SheetCell(text=difference),
            )
        )
    return Sheet(
        title="Counts", columns=columns, rows=tuple(rows), note="The writers of these snapshots wrote no counts."
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else None
