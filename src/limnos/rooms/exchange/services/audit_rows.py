# SPDX-License-Identifier: Apache-2.0
"""Rows of the system table `audit`: audit records, read in the order of their times, the latest first.

Must not know wire formats. The key of a part is the time of a record. Conditions on times, users, objects, paths and
requests are those of an index; other conditions are evaluated by the database on a bounded number of records at a time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Final

from limnos.formats.system_tables import OCCURRED_AT, Cells, RowRequest
from limnos.model.audit import AuditRecord
from limnos.rooms.exchange.services.part_reads import ROWS_AT_ONCE, IdRange
from limnos.rooms.exchange.services.table_access import TableAccess
from limnos.rooms.exchange.services.table_rows import PageRows
from limnos.store.activity.audit import (
    NEWEST,
    AuditFilter,
    AuditMoment,
    AuditTimePart,
    latest_part_read,
    narrows_action,
)

_WORDS: Final = ("change", "action", "operation")
"""The columns that one filter of records compares with a word."""


async def audit_pages(access: TableAccess, request: RowRequest, *, part: IdRange) -> AsyncGenerator[PageRows, None]:
    """Yield the records of a part that the caller may see: all, or those of the caller's own actions."""
    audit_filter = _filter_of(access, request, part=part)
    has_rights = "rights" in request.wanted
    moment: AuditMoment | None = NEWEST
    while moment is not None and audit_filter is not None:
        read = await _read(access, audit_filter, before=moment, has_rights=has_rights)
        yield partial(_rows, read.records)
        last = read.records[-1] if len(read.records) >= ROWS_AT_ONCE else None
        moment = read.following if last is None else AuditMoment(last.at, last.id)


async def _read(
    access: TableAccess, audit_filter: AuditFilter, *, before: AuditMoment, has_rights: bool
) -> AuditTimePart:
    """Read the next records from the snapshot."""
    load = latest_part_read(audit_filter, before, limit=ROWS_AT_ONCE, has_rights=has_rights)
    try:
        query = next(load)
        while True:
            query = load.send(await access.snapshot.rows(query))
    except StopIteration as stop:
        result: AuditTimePart = stop.value
        return result


def _filter_of(access: TableAccess, request: RowRequest, *, part: IdRange) -> AuditFilter | None:
    """Return a filter that finds all requested records of a part; None if there can be none."""
    first, last = request.range_of(OCCURRED_AT, first=part.first, last=part.last)
    texts = {name: _text(request, name) for name in ("user_name", "path", "outcome", "request_id", *_WORDS)}
    numbers = request.equal_to("id")
    number = next(iter(numbers), None) if numbers else None
    subject = access.caller.subject
    if first > last or (subject.user_id is None and not access.caller.is_auditor):
        return None
    word = next((texts[name] for name in _WORDS if texts[name] and narrows_action(texts[name] or "")), None)
    return AuditFilter(
        metalake_id=access.snapshot.metalake_id,
        user=texts["user_name"],
        user_id=None if access.caller.is_auditor else subject.user_id,
        object_id=number if isinstance(number, int) else None,
        path=texts["path"],
        since=first,
        until=last + 1,
        action=word,
        outcome=texts["outcome"],
        request_id=texts["request_id"],
    )


def _text(request: RowRequest, column: str) -> str | None:
    """Return the text to which a condition sets a column equal, and that the database can compare; None without one."""
    value = next(iter(request.equal_to(column) or ()), None)
    return value if isinstance(value, str) and value and "\0" not in value else None


def _rows(records: Sequence[AuditRecord]) -> list[Cells]:
    return [_cells(each) for each in records]


def _cells(record: AuditRecord) -> Cells:
    target = (record.object_id, record.kind, record.path) if record.kind else (None, None, None)
    return (
        *target,
        record.id,
        record.at,
        record.user or None,
        record.outcome,
        record.change or None,
        record.action or None,
        record.new_path or None,
        record.detail or None,
        record.rights,
        record.protocol or None,
        record.operation or None,
        record.status or None,
        record.request_id or None,
        record.client or None,
        record.peer or None,
        record.credential or None,
        record.zone,
        record.revision,
        record.ordinal,
    )
