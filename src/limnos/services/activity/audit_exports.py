# SPDX-License-Identifier: Apache-2.0
"""Audit exports: write audit records to files day by day, on request or daily by a setting.

A task does the work, so it continues after a crash. File names are a function of the records, so exporting a day again
produces the same file. Only days that are over are exported, because later records could still be added to the current
day.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.files import root_of, store_for
from limnos.formats.audit_files import begin_of, day_of, file_of, name_of, next_day
from limnos.model.audit import AuditRecord
from limnos.model.errors import AlreadyExists, BadRequest
from limnos.model.permits import Permit
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import refuse_former
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.task_context import Heartbeat, TaskContext
from limnos.store.activity.audit import AuditFilter, first_at, lines_read
from limnos.store.sql import drive_load
from limnos.store.tx import Tx

EXPORT_AUDIT: Final = "export-audit"
EXPORT_AUDIT_DAYS: Final = "export-audit-days"
EVERY_S: Final = 3600.0
SETTLED_MS: Final = 600_000
"""The delay after midnight before a day is exported, in milliseconds: by then its last records are written."""
READ_AT_ONCE: Final = 1_000
LINES_PER_FILE: Final = 100_000


class AuditExport(msgspec.Struct, frozen=True):
    """The command, and task payload, to write the audit records of some days below a location: from `since` (inclusive)
    to `until` (exclusive).
    """

    location: str
    since: date
    until: date


class AuditDays(msgspec.Struct, frozen=True):
    """The task payload: the first day that has not been exported yet."""

    next: date | None = None


def export_days(ctx: Context, *, location: str | None, since: date | None, until: date | None) -> AuditExport:
    """Return the command for a request to export: by default all complete days to the configured location. Raises
    BadRequest for a missing or malformed location, OutsideRoots for one that the settings do not allow.
    """
    export_location = location or ctx.services.defaults.audit.export
    if export_location is None:
        raise BadRequest("The setting audit.export has no location: set the location of the files")
    root = root_of(export_location)
    ctx.services.defaults.allowed.check_root(root)
    open_day = first_open_day(ctx.services.store.time.now_ms())
    return AuditExport(root, since or date(1970, 1, 1), min(until or open_day, open_day))


def first_open_day(now_ms: int) -> date:
    """Return the first day, in UTC, to which audit records may still be added at a time in milliseconds since 1970."""
    return day_of(now_ms - SETTLED_MS)


async def audit_export(ctx: Context, *, location: str | None, since: date | None, until: date | None) -> int:
    """Create a task that exports the audit records of some days; for service admins.

    Returns its id. Raises PermissionDenied, AuthenticationFailed for a token of an earlier user of the name, and as
    `export_days`.
    """
    await refuse_former(ctx)

    def decide(request_view: RequestView) -> Permit[AuditExport]:
        decision = request_view.require(Action.AUDIT_READ_ALL, ())
        return request_view.permit(export_days(ctx, location=location, since=since, until=until), decision)

    task_id = await ctx.write(RequestScope(), decide, export_task_create)
    ctx.services.wake_worker()
    return task_id


def export_task_create(tx: Tx, permit: Permit[AuditExport]) -> int:
    """Create the export task. Returns its id."""
    return tx.tasks.create(EXPORT_AUDIT, msgspec.json.encode(permit.command).decode())


async def export_run(work: TaskContext, payload: AuditExport) -> str:
    """Run the task that exports the requested days. Returns a summary."""
    files = lines = 0
    first = await work.submit(first_at)
    day = payload.since if first is None else max(payload.since, day_of(first))
    while first is not None and day < payload.until:
        more_files, more_lines = await day_write(work, payload.location, day=day)
        files, lines, day = files + more_files, lines + more_lines, next_day(day)
    return f"wrote {lines} records in {files} files"


async def days_run(work: TaskContext, payload: AuditDays) -> tuple[AuditDays, str | None]:
    """Run the daily task: export the days that have ended since its last execution, if the settings name a location.

    Returns the next payload and a summary.
    """
    services = work.services
    if services is None or services.defaults.audit.export is None:
        return payload, None
    now_ms = await work.submit(lambda tx: tx.now_ms)
    until = first_open_day(now_ms)
    root = root_of(services.defaults.audit.export)
    services.defaults.allowed.check_root(root)
    export = await export_run(work, AuditExport(root, payload.next or until - timedelta(days=1), until))
    return AuditDays(max(until, payload.next or until)), export


async def day_write(work: TaskContext, location: str, *, day: date) -> tuple[int, int]:
    """Export one day's audit records. Returns the count of files and the count of records."""
    files = total = after = 0
    while lines := await _lines(work, day, after=after):
        target = f"{location.rstrip('/')}/{name_of(day, lines)}"
        await work.run_in_thread(partial(_write, target, lines=lines))
        files, total, after = files + 1, total + len(lines), lines[-1].id
    return files, total


async def _lines(work: TaskContext, day: date, *, after: int) -> list[AuditRecord]:
    """Read the next audit records of a day, as many as fit in one file."""
    records: list[AuditRecord] = []
    while len(records) < LINES_PER_FILE:
        last = records[-1].id if records else after
        lines = AuditFilter(since=begin_of(day), until=begin_of(next_day(day)), after=last)
        page = await work.submit(lambda tx, of=lines: drive_load(lines_read(of, limit=READ_AT_ONCE), tx.rows))  # type: ignore[misc]
        records += page
        if len(page) < READ_AT_ONCE:
            break
    return records


def _write(target: str, beat: Heartbeat, *, lines: list[AuditRecord]) -> None:
    beat(len(lines))
    with suppress(AlreadyExists):  # an earlier attempt wrote it
        store_for(target, {}).write_new(target, file_of(lines))
