# SPDX-License-Identifier: Apache-2.0
"""Operations that write files for restricted users, without Spark: spans are fetched, written and reported."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest

from limnos.client.errors import DeniedError, RefusedError
from limnos.client.operation.maintenance_values import LeasedOperation, RestrictedSpan, RestrictedSpans
from limnos.model.errors import UnsupportedOperation
from limnos.rooms.maintenance.engine import runners
from limnos.rooms.maintenance.engine.executor import OperationEnd
from limnos.rooms.maintenance.engine.restricted_files import RestrictedFileRunner, SpanPool, thread_pool
from limnos.rooms.maintenance.engine.span_files import write_span
from tests.rooms.maintenance.engine.test_executor import FakeRunner


@dataclass(kw_only=True)
class FakeSource:
    """A server with an operation of some spans. It counts the spans that are fetched and not reported."""

    count: int
    refused: frozenset[str] = frozenset()
    lost_after: int | None = None
    reports: dict[str, list[str]] = field(default_factory=dict)
    fetched: int = 0
    open_max: int = 0

    def spans(self, catalog: str, operation: int, *, after: int = -1, limit: int = 16) -> RestrictedSpans:
        """Return the next spans."""
        assert (catalog, operation) == ("main", 7)
        if self.lost_after is not None and after >= self.lost_after:
            raise DeniedError("The lease has expired", status=403)
        numbers = range(after + 1, min(self.count, after + 1 + limit))
        self.fetched += len(numbers)
        self.open_max = max(self.open_max, self.fetched - len(self.reports))
        spans = [RestrictedSpan(number=each, name=f"n{each}", task={}, deletes=[], span=(0, 1)) for each in numbers]
        return RestrictedSpans(tuple(spans), {"into": "file:///x"})

    def report_span(self, catalog: str, operation: int, *, name: str, files: Sequence[str]) -> bool:
        """Record a report."""
        assert (catalog, operation) == ("main", 7)
        self.reports[name] = list(files)
        if name in self.refused:
            raise RefusedError("other columns", status=400)
        return True


def write(request: bytes) -> list[str]:
    """Return a location for a span, in place of writing it."""
    fields = json.loads(request)
    return [f"{fields['into']}/{fields['name']}.parquet"]


def run(source: FakeSource, *, pool: SpanPool, others: FakeRunner | None = None) -> OperationEnd:
    """Execute operation 7."""
    operation = LeasedOperation(operation=7, kind="restricted-files", catalog="main", path=("a", "t"), token="lim_1_x")
    runner = RestrictedFileRunner(others or FakeRunner(), connect=lambda _: nullcontext(source), pool=lambda _: pool)
    return runner.run(operation)


@pytest.mark.parametrize("at_once", [1, 3, 50])
def test_all_spans_are_written_and_reported(at_once: int) -> None:
    """Every span is written and reported once, and no more are fetched than are written at the same time."""
    source = FakeSource(count=20)
    end = run(source, pool=SpanPool(write, at_once))

    assert end == OperationEnd("done", "files of 20 spans were written")
    assert source.reports == {f"n{each}": [f"file:///x/n{each}.parquet"] for each in range(20)}
    assert (source.fetched, source.open_max <= at_once) == (20, True)


def test_refused_span_fails_the_operation_after_all_others() -> None:
    """If the server refuses the files of a span, the others are written, and the operation has failed."""
    source = FakeSource(count=5, refused=frozenset(["n1"]))
    end = run(source, pool=SpanPool(write, 2))

    assert (end.outcome, "other columns" in end.text, len(source.reports)) == ("failed", True, 5)


def test_error_of_a_span_fails_the_operation() -> None:
    """If a span cannot be written, the operation has failed with the reason, and no further span is fetched."""

    def fail(request: bytes) -> list[str]:
        del request
        raise UnsupportedOperation("A file of the table is of format orc")

    source = FakeSource(count=20)
    end = run(source, pool=SpanPool(fail, 2))

    assert (end.outcome, "format orc" in end.text, source.reports) == ("failed", True, {})
    assert source.fetched == 2


def test_refused_request_fails_the_operation() -> None:
    """If the lease has expired, the operation ends."""
    source = FakeSource(count=20, lost_after=3)

    assert run(source, pool=SpanPool(write, 2)).outcome == "failed"
    assert set(source.reports) <= {"n0", "n1", "n2", "n3", "n4"}


def test_cancelled_operation_ends_after_the_running_spans() -> None:
    """A cancelled operation writes no further spans."""
    source, is_cancelled = FakeSource(count=1_000), threading.Event()
    runner: RestrictedFileRunner

    def cancel(request: bytes) -> list[str]:
        if not is_cancelled.is_set():
            is_cancelled.set()
            runner.cancel(7)
        return write(request)

    others = FakeRunner(bars={7: threading.Event()})
    runner = RestrictedFileRunner(others, connect=lambda _: nullcontext(source), pool=lambda _: SpanPool(cancel, 1))
    runner.run(LeasedOperation(operation=7, kind="restricted-files", catalog="main", path=("a", "t"), token="lim_1_x"))

    assert len(source.reports) <= 1


def test_other_kinds_are_given_to_the_other_runner() -> None:
    """An operation of another kind is executed by the other runner, which is closed with this one."""
    others = FakeRunner()
    runner = RestrictedFileRunner(others, connect=lambda _: nullcontext(FakeSource(count=1)), pool=thread_pool(1))
    end = runner.run(LeasedOperation(operation=3, kind="compact", catalog="main", path=("a", "t"), token="lim_1_x"))
    runner.close()

    assert (end.text, others.ran, others.closed) == ("3 files became 1", [3], True)


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a library is missing where a span is written, the message names it and what to install."""
    monkeypatch.setitem(__import__("sys").modules, "limnos.services.iceberg.spans.writing", None)
    with pytest.raises(UnsupportedOperation, match=r"\[server,spark\]"):
        write_span(b"{}")


def test_local_master_has_a_thread_for_each_core() -> None:
    """The number of spans that a local executor writes at the same time is that of its master."""
    cores = [runners.local_cores(each) for each in ("local", "local[2]", "local[8,3]", "local[0]")]

    assert cores == [1, 2, 8, 1]
    assert runners.local_cores("local[*]") == runners.local_cores("sc://h:15002") >= 1
