# SPDX-License-Identifier: Apache-2.0
"""Reports of files that executors wrote: a lying executor, repeated reports, and quotas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from structlog.testing import capture_logs

from limnos.rooms.maintenance.engine.span_files import write_span
from limnos.services.iceberg.spans import verification
from tests.http.driver import DriverAnswer
from tests.http.iceberg import wire
from tests.http.iceberg.test_plans import steer
from tests.http.iceberg.test_restricted_plans import RestrictedTable
from tests.http.iceberg.test_restricted_sharing import list_rewritten_files, written
from tests.http.iceberg.test_restrictions import restrict
from tests.rooms.maintenance.services.rewriting.executor import list_operations
from tests.rooms.maintenance.services.spans.fake_executor import SpanExecutor, plan_beside, request_of
from tests.rooms.maintenance.services.spans.test_queue import VISIBLE

pytestmark = pytest.mark.slow

Lie = Callable[[Path, list[str]], list[str]]


def _elsewhere(file: Path, _: list[str]) -> list[str]:
    outside = file.parent.parent / file.name
    outside.write_bytes(file.read_bytes())
    return [f"file://{outside}"]


def _with_dots(file: Path, _: list[str]) -> list[str]:
    return [f"file://{file.parent}/../{file.parent.name}/{file.name}"]


def _of_other_span(_: Path, others: list[str]) -> list[str]:
    return others


def _twice(file: Path, _: list[str]) -> list[str]:
    return [f"file://{file}"] * 2


def _missing(file: Path, _: list[str]) -> list[str]:
    return [f"file://{file.parent}/{file.name[:-16]}00000000.parquet"]


def _link(file: Path, others: list[str]) -> list[str]:
    del others
    target = file.parent.parent / "target.parquet"
    file.rename(target)
    file.symlink_to(target)
    return [f"file://{file}"]


def _changed(change: Callable[[pa.Table], pa.Table]) -> Lie:
    def lie(file: Path, _: list[str]) -> list[str]:
        pq.write_table(change(pq.read_table(file)), file, store_schema=False)
        return [f"file://{file}"]

    return lie


def _field_id(column: str) -> Lie:
    def lie(file: Path, _: list[str]) -> list[str]:
        rows = pq.read_table(file)
        fields = [
            each.with_metadata({"PARQUET:field_id": "9"}) if each.name == column else each for each in rows.schema
        ]
        pq.write_table(rows.cast(pa.schema(fields)), file, store_schema=False)
        return [f"file://{file}"]

    return lie


def _no_parquet(file: Path, _: list[str]) -> list[str]:
    file.write_bytes(b"PAR1 and so on PAR1")
    return [f"file://{file}"]


def _large_footer(file: Path, _: list[str]) -> list[str]:
    file.write_bytes(b"PAR1" + bytes(file.stat().st_size) + b"\xff\xff\xff\x0fPAR1")
    return [f"file://{file}"]


LIES: dict[str, Lie] = {
    "another directory": _elsewhere,
    "a path with dots": _with_dots,
    "the file of another span": _of_other_span,
    "one file twice": _twice,
    "a missing file": _missing,
    "a link to another directory": _link,
    "one column less": _changed(lambda rows: rows.drop_columns(["home"])),
    "one column more": _changed(lambda rows: rows.append_column("more", rows.column("id"))),
    "another type": _changed(lambda rows: rows.set_column(0, "id", rows.column("id").cast(pa.int32()))),
    "another field id": _field_id("card"),
    "another field id of a struct": _field_id("home"),
    "more rows than the data file": _changed(lambda rows: pa.concat_tables([rows] * 3)),
    "no rows": _changed(lambda rows: rows.slice(0, 0)),
    "no Parquet": _no_parquet,
    "a footer beyond the file": _large_footer,
}


@pytest.mark.parametrize("lie", LIES)
def test_files_of_a_liar_are_refused_and_logged(table: RestrictedTable, lie: str) -> None:
    """Files that the server would not have written are 400 and logged as an error. No plan uses them, other files stay,
    and the server writes the span itself.
    """

    async def tell(executor: SpanExecutor) -> DriverAnswer:
        operation = await executor.await_operation()
        batch = await executor.spans(operation)
        files = [write_span(request_of(batch, each)) for each in batch["spans"]]
        body = {"name": batch["spans"][0]["name"], "files": LIES[lie](wire.local(files[0][0]), files[1])}
        with capture_logs() as logs:
            answer = await executor.request(operation, "files", body)
        assert [each["log_level"] for each in logs if "files were refused" in each["event"]] == ["error"], logs
        for each, paths in zip(batch["spans"][1:], files[1:], strict=True):
            report = await executor.request(operation, "files", {"name": each["name"], "files": paths})
            assert report.status == 200, report.body
        await executor.end(operation, "failed")
        return answer

    plan, answer = plan_beside(table, tell)

    assert answer.status == 400, answer.body
    assert b"not used" in answer.body
    assert table.rows(plan) == VISIBLE * 4
    assert written(table) == 1
    assert [each["state"] for each in list_operations(table.node)] == ["failed"]
    assert len(list((wire.local(table.location) / "metadata").glob("?-?.parquet"))) == 4


@pytest.mark.parametrize("rows", [9, 11])
def test_number_of_rows_is_exact_without_filter_and_deletes(table: RestrictedTable, rows: int) -> None:
    """Without a row filter and deletes, the files must have exactly the rows of the span."""
    assert restrict(table.node, masks={"card": "show-last-4"}).status == 200

    async def leave_out(executor: SpanExecutor) -> list[int]:
        operation = await executor.await_operation()
        batch = await executor.spans(operation)
        statuses = []
        for each in batch["spans"][:2]:
            files = write_span(request_of(batch, each))
            if not statuses:
                whole = pq.read_table(wire.local(files[0]))
                pq.write_table(
                    pa.concat_tables([whole, whole]).slice(0, rows), wire.local(files[0]), store_schema=False
                )
            report = await executor.request(operation, "files", {"name": each["name"], "files": files})
            statuses.append(report.status)
        statuses.append((await executor.request(operation, "files", {"name": each["name"][::-1]})).status)
        await executor.end(operation, "failed")
        return statuses

    plan, statuses = plan_beside(table, leave_out)

    assert statuses == [400, 200, 400]
    assert len(table.rows(plan)) == 40


def test_span_without_visible_rows_needs_no_file(table: RestrictedTable) -> None:
    """With a row filter a span may have no files."""

    async def write_nothing(executor: SpanExecutor) -> None:
        operation = await executor.await_operation()
        for each in (await executor.spans(operation))["spans"]:
            report = await executor.request(operation, "files", {"name": each["name"], "files": []})
            assert report.status == 200, report.body
        await executor.end(operation)

    plan, _ = plan_beside(table, write_nothing)
    assert (table.rows(plan), written(table)) == ([], 0)


def test_repeated_report_changes_nothing(table: RestrictedTable) -> None:
    """A report whose response was lost may be repeated: the file stays. A second file of the span is deleted."""

    async def repeat(executor: SpanExecutor) -> list[str]:
        operation = await executor.await_operation()
        batch = await executor.spans(operation, limit=1)
        (span,) = batch["spans"]
        first, second = (write_span(request_of(batch, span)) for _ in range(2))
        for files in (first, first, second):
            report = await executor.request(operation, "files", {"name": span["name"], "files": files})
            assert report.status == 200, report.body
        remaining = list_rewritten_files(table)
        await executor.end(operation, "failed")
        assert remaining == [str(wire.local(first[0]))]
        return remaining

    plan, (file,) = plan_beside(table, repeat)
    assert file in {str(wire.local(each["data-file"]["file-path"])) for each in plan.json()["file-scan-tasks"]}
    assert written(table) == 3


def test_statistics_are_those_of_the_file(table: RestrictedTable) -> None:
    """The statistics of a file that an executor wrote are equal to those of the server's own rewrite."""
    steer(table.node, restricted_executor_spans=0)
    requested = {"stats-fields": ["id", "card"]}
    own = [each["data-file"] for each in table.seen(stats_fields=["id", "card"]).json()["file-scan-tasks"]]
    assert restrict(table.node, filter="City = 'Rome' and id >= 0", masks={"card": "show-last-4"}).status == 200
    steer(table.node, restricted_executor_spans=2)
    plan_beside(table, SpanExecutor.execute)
    answer = table.node.post(f"{table.path}/plan", requested, user="bob")
    files = [each["data-file"] for each in answer.json()["file-scan-tasks"]]

    assert written(table) == 4
    names = ("record-count", "lower-bounds", "upper-bounds", "value-counts", "null-value-counts", "file-size-in-bytes")
    assert [[each.get(name) for name in names] for each in files] == [
        [each.get(name) for name in names] for each in own
    ]


def test_quota_ends_the_work_of_an_executor(table: RestrictedTable) -> None:
    """The bytes of reported files count for the reader's quota. Beyond it a report is 503, and so is the plan."""
    steer(table.node, restricted_reader_bytes=1)

    async def write(executor: SpanExecutor) -> list[DriverAnswer]:
        operation = await executor.await_operation()
        reports = await executor.write(operation, await executor.spans(operation, limit=1))
        await executor.end(operation, "failed")
        return reports

    plan, (report,) = plan_beside(table, write)

    assert (report.status, plan.status) == (503, 503)
    assert b"restricted_bytes_per_reader" in report.body


def test_file_is_read_up_to_a_limit(table: RestrictedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a reported file reads a limited number of bytes."""
    monkeypatch.setattr(verification, "FOOTER_BYTES_MAX", 100)

    _, reports = plan_beside(table, SpanExecutor.execute)

    assert [each.status for each in reports] == [400] * 4


def test_masked_values_are_in_the_files_of_an_executor(table: RestrictedTable) -> None:
    """No file that an executor wrote has a hidden value."""
    plan_beside(table, SpanExecutor.execute)
    cards: Any = [pq.read_table(each).column("card") for each in list_rewritten_files(table)]

    assert len(cards) == 4
    assert all(pc.all(pc.starts_with(each, "xxxxx")).as_py() for each in cards)
