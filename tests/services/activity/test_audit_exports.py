# SPDX-License-Identifier: Apache-2.0
"""Export of audit records as Parquet: only complete days are exported, and each record is exported once, also if a task
runs twice. Records are deleted after the retention time.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from limnos.access.actions import Action
from limnos.app.task_kinds import KINDS
from limnos.files import allow_everything
from limnos.formats.audit_files import DAY_MS
from limnos.model.errors import PermissionDenied
from limnos.model.permits import upkeep_permit
from limnos.services.activity.audit import audit_read
from limnos.services.activity.audit_exports import (
    EXPORT_AUDIT,
    AuditDays,
    AuditExport,
    audit_export,
    days_run,
    first_open_day,
)
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.audit import AuditFilter, lines_expire
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk

NEVER = date(1970, 1, 1)


def aged(desk: ServiceDesk, *, days: int) -> int:
    """Move all records some days into the past. Returns their number."""
    desk.run(audit_read(desk.ctx(), LAKE, filters=AuditFilter(), limit=1))
    desk.rows(f"UPDATE audit SET at = at - {days * DAY_MS}")
    return int(desk.rows("SELECT count(*) FROM audit")[0][0])


def task_context(desk: ServiceDesk) -> TaskContext:
    """The context of a background task."""
    return TaskContext(
        0,
        store=desk.lab.store,
        permit=upkeep_permit("test"),
        allowed=allow_everything(),
        warehouse="file:/w",
        lease_ms=30_000,
        services=desk.node.services,
    )


def done(desk: ServiceDesk, payload: AuditExport) -> str | None:
    """Run the export task."""
    task = KINDS[EXPORT_AUDIT].runner(task_context(desk), msgspec.json.encode(payload).decode())
    return desk.run(task).result  # type: ignore[arg-type]


def test_past_days_are_exported_once(desk: ServiceDesk, tmp_path: Path) -> None:
    """Yesterday's records are exported once, into files of that day, even if the task runs twice. Today's records are
    not exported.
    """
    desk.namespace("a")
    count = aged(desk, days=1)
    desk.namespace("b")
    today = datetime.now(UTC).date()
    payload = AuditExport(f"file://{tmp_path}/out", NEVER, today)

    first, second = done(desk, payload), done(desk, payload)

    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert first == second == f"wrote {count} records in 1 files"
    assert len(rows) == len({row["id"] for row in rows}) == count
    assert {str(row["day"]) for row in rows} == {str(today - timedelta(days=1))}
    assert {row["path"] for row in rows if row["change"] == "create"} >= {"main.a"}
    assert "main.b" not in {row["path"] for row in rows}


def test_daily_task_exports_each_day_that_has_ended(
    desk: ServiceDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a location the daily task does nothing. Its first run exports the last day that has ended, its next one
    the days since; it writes no day twice, and none that has not ended.
    """
    desk.namespace("a")
    aged(desk, days=1)
    work, services = task_context(desk), desk.node.services
    nothing = desk.run(days_run(work, AuditDays()))
    rules = services.defaults.audit._replace(export=f"file://{tmp_path}/out")
    monkeypatch.setattr(services, "defaults", services.defaults._replace(audit=rules))
    open_day = first_open_day(desk.run(work.submit(lambda tx: tx.now_ms)))

    first, summary = desk.run(days_run(work, AuditDays()))
    again, second_summary = desk.run(days_run(work, first))
    _, missed_summary = desk.run(days_run(work, AuditDays(open_day - timedelta(days=3))))

    assert nothing == (AuditDays(), None)
    assert first == again == AuditDays(open_day)
    assert summary == missed_summary
    assert summary is not None
    assert summary.endswith(" records in 1 files")
    assert not summary.startswith("wrote 0")
    assert second_summary == "wrote 0 records in 0 files"


def test_export_needs_the_right_to_read_all_records(desk: ServiceDesk) -> None:
    """A caller who may not read all records cannot create an export task."""
    with pytest.raises(PermissionDenied) as refused:
        desk.run(audit_export(desk.ctx("ana"), location="file:/out", since=None, until=None))

    assert refused.value.decision.action == Action.AUDIT_READ_ALL.word  # type: ignore[attr-defined]
    assert desk.rows("SELECT 1 FROM task WHERE kind = ?", EXPORT_AUDIT) == []


def test_records_older_than_retention_are_deleted(desk: ServiceDesk) -> None:
    """Records older than the retention time are deleted; newer records are not."""
    aged(desk, days=10)
    desk.namespace("b")
    desk.run(audit_read(desk.ctx(), LAKE, filters=AuditFilter(), limit=1))

    desk.run(desk.lab.store.submit(upkeep_permit("test"), lambda tx: lines_expire(tx, keep_ms=5 * DAY_MS)))

    assert [row[0] for row in desk.rows("SELECT path FROM audit")] == ["main.b"]
