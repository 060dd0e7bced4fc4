# SPDX-License-Identifier: Apache-2.0
"""The tab with the reports that engines sent about their scans and commits of a table.

Reports reveal other users' queries, so the service returns them only to users who may change the table.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.model.errors import PermissionDenied
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import count_text
from limnos.rooms.console.http.sheets import Sheet, SheetCell, SheetColumn, TabPart
from limnos.services.iceberg.reports import reports_list

SHOWN: Final = 100
_LATEST: Final = 1 << 62
_KINDS: Final = (("scan", "Scans"), ("commit", "Commits"))
_COUNTS: Final = (
    ("result-data-files", "data files"),
    ("result-delete-files", "delete files"),
    ("skipped-data-manifests", "manifests skipped"),
    ("added-data-files", "files added"),
    ("removed-data-files", "files removed"),
    ("added-records", "rows added"),
)
_FILTER_CHARS_MAX: Final = 300


class _Counter(msgspec.Struct, frozen=True):
    value: int = 0


class _Report(msgspec.Struct, frozen=True, rename="kebab"):
    filter: object = None
    projected_field_names: list[str] = []
    metrics: dict[str, object] = {}


async def scans_tab(page_request: PageRequest, address: ObjectAddress) -> TabPart:
    """Return lists of the newest reports. A refusal is returned as the tab's warning."""
    sheets = []
    try:
        for kind, title in _KINDS:
            sheets.append(await _reports(page_request, address, kind=kind, title=title))
    except PermissionDenied as error:
        return TabPart(warning=f"Reports show other users' queries. {error.message}")
    return TabPart(sheets=tuple(sheets))


async def _reports(page_request: PageRequest, address: ObjectAddress, *, kind: str, title: str) -> Sheet:
    rows, more = await reports_list(
        page_request.ctx,
        address.scope,
        namespace=address.levels[:-1],
        name=address.levels[-1],
        kind=kind,
        before=_LATEST,
        limit=SHOWN,
    )
    columns = (
        SheetColumn(text="When"),
        SheetColumn(text="Who"),
        SheetColumn(text="What"),
        SheetColumn(text="Filter", hides=True, is_code=True),
        SheetColumn(text="Columns", hides=True),
    )
    lines = []
    for each in rows:
        report = _decode_report(each.body)
        lines.append(
            (
                SheetCell(at_ms=each.at),
                SheetCell(text=each.reporter),
                SheetCell(text=_counts(report)),
                SheetCell(
                    text=""
                    if report.filter in (None, True)
                    else msgspec.json.encode(report.filter).decode()[:_FILTER_CHARS_MAX]
                ),
                SheetCell(text=", ".join(report.projected_field_names[:20])),
            )
        )
    note = f"No engine has reported a {kind} of this table."
    return Sheet(
        title=title,
        columns=columns,
        rows=tuple(lines),
        note=note,
        more=f"The newest {SHOWN} are shown." if more else "",
    )


def _decode_report(body: bytes) -> _Report:
    """Decode a report. If its structure is unknown, the result is empty."""
    try:
        return msgspec.json.decode(body, type=_Report)
    except msgspec.MsgspecError:
        return _Report()


def _counts(report: _Report) -> str:
    words = []
    for name, text in _COUNTS:
        try:
            value = msgspec.convert(report.metrics[name], _Counter).value
        except (KeyError, msgspec.ValidationError):
            continue
        if value:
            words.append(f"{count_text(value)} {text}")
    return ", ".join(words)
