# SPDX-License-Identifier: Apache-2.0
"""The engine's process before its first job, and how it sends results."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from msgspec import structs

from limnos.rooms.sqlpp.app.engine_process import EngineProcess
from limnos.rooms.sqlpp.engine import process as module
from limnos.rooms.sqlpp.engine import statements, wire
from limnos.rooms.sqlpp.engine.sessions import StatementSessions
from limnos.rooms.sqlpp.engine.wire import EngineStart
from limnos.rooms.sqlpp.language.jobs import EngineJob, encode

JOB = EngineJob(
    id="job",
    kind="query",
    plan=b"",
    slots=0,
    reads=(),
    target=None,
    returning=None,
    returning_slots=0,
    credential="token",
    deadline_ms=60_000,
    user="",
)


class Open:
    """Sessions without Spark."""

    parts = 1

    @contextmanager
    def of(self, _job: EngineJob) -> Iterator[None]:
        """Yield no session."""
        yield None

    def end(self, _job: str) -> None:
        """No-op: no job runs."""

    def has_tasks(self, _job: str) -> bool:
        """Return False."""
        return False

    def lacks_executor(self, _job: str) -> bool:
        """Return False."""
        return False

    def is_alive(self) -> bool:
        """Return True."""
        return True


@pytest.mark.parametrize("size,lines", [(9, 50), (40, 13), (400, 2), (600, 1)])
def test_result_batches_are_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch, size: int, lines: int) -> None:
    """A frame ends with the row that exceeds its size; the size is counted in bytes of UTF-8."""
    monkeypatch.setattr(module, "BATCH_BYTES", 450 if size == 9 else 500)
    monkeypatch.setattr(
        statements,
        "run_job",
        lambda *_, **_more: ("€" * (size // 3) + "x" * (size % 3) for _ in range(2 * lines + 1)),
    )
    session_future: Future[StatementSessions] = Future()
    session_future.set_result(cast("Any", Open()))
    ours, theirs = socket.socketpair()
    served = module._JobConnection(theirs, session_future, places=threading.Semaphore(1))
    thread = threading.Thread(target=served.run)
    thread.start()
    ours.sendall(wire.encode_frame(wire.JOB, encode(JOB)))
    line_counts = []
    while (frame := wire.receive(ours))[0] == wire.ROWS:
        line_counts.append(frame[1].count(b"\n"))
    thread.join(60)
    ours.close()

    assert frame[0] == wire.DONE
    assert line_counts == [lines, lines, 1]


def run_job_with(monkeypatch: pytest.MonkeyPatch, sessions: Open, lines: Iterator[str]) -> wire.JobFailure:
    """Return the failure of a job with these results."""
    monkeypatch.setattr(statements, "run_job", lambda *_, **_more: lines)
    session_future: Future[StatementSessions] = Future()
    session_future.set_result(cast("Any", sessions))
    ours, theirs = socket.socketpair()
    with ours:
        thread = threading.Thread(
            target=module._JobConnection(theirs, session_future, places=threading.Semaphore(1)).run
        )
        thread.start()
        ours.sendall(wire.encode_frame(wire.JOB, encode(JOB)))
        while (frame := wire.receive(ours))[0] == wire.ROWS:
            pass
        thread.join(60)

    assert frame[0] == wire.FAILED
    return msgspec.msgpack.decode(frame[1], type=wire.JobFailure)


def test_single_result_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement with a result that is too long for the server's memory gets an error; the engine goes on."""
    monkeypatch.setattr(wire, "LINE_BYTES_MAX", 1000)

    failure = run_job_with(monkeypatch, Open(), iter(["x" * 1000, "x" * 1001]))

    assert "has a result of more than" in failure.message
    assert not failure.replaces


def failing() -> Iterator[str]:
    """Yield a result, and fail."""
    yield "1"
    raise RuntimeError("no")


class Busy(Open):
    """Sessions whose job has tasks for some checks."""

    def __init__(self, checks: float) -> None:
        self.checks = checks

    def has_tasks(self, _job: str) -> bool:
        """Return whether fewer checks were made."""
        self.checks -= 1
        return self.checks >= 0


@pytest.mark.parametrize("checks,replaces", [(0, False), (3, False), (float("inf"), True)])
def test_failed_job_ends_after_its_tasks(monkeypatch: pytest.MonkeyPatch, checks: float, replaces: bool) -> None:
    """The end of a failed job is reported after its Spark tasks have ended. If they do not end in time, the engine is
    to be replaced.
    """
    monkeypatch.setattr(module, "TASKS_END_S", 0.5)
    monkeypatch.setattr(module, "TASKS_END_CHECK_S", 0.01)
    sessions = Busy(checks)

    failure = run_job_with(monkeypatch, sessions, failing())

    assert failure.replaces is replaces
    assert replaces or sessions.checks == -1


class WaitingSessions(Open):
    """Sessions on a cluster that has no executor until a time; a job ends when it is cancelled."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.cancelled = threading.Event()

    def lacks_executor(self, _job: str) -> bool:
        """Return whether the time has not come."""
        return time.monotonic() < self.until

    def end(self, _job: str) -> None:
        """Cancel the job."""
        self.cancelled.set()

    def results(self, *, wait_s: float) -> Iterator[str]:
        """Yield a result after some time; fail if the job is cancelled before."""
        if self.cancelled.wait(wait_s):
            raise RuntimeError("Job 1 cancelled")
        yield "1"


def outcome_of(
    monkeypatch: pytest.MonkeyPatch, sessions: WaitingSessions, *, job: EngineJob = JOB, executor_wait_s: float = 60
) -> wire.JobFailure | None:
    """Return the failure of a job that needs a second; None if it succeeds."""
    monkeypatch.setattr(module, "EXECUTOR_CHECK_S", 0.01)
    monkeypatch.setattr(statements, "run_job", lambda *_, **_more: sessions.results(wait_s=1))
    session_future: Future[StatementSessions] = Future()
    session_future.set_result(cast("Any", sessions))
    ours, theirs = socket.socketpair()
    with ours:
        served = module._JobConnection(
            theirs, session_future, places=threading.Semaphore(1), executor_wait_s=executor_wait_s
        )
        thread = threading.Thread(target=served.run)
        thread.start()
        ours.sendall(wire.encode_frame(wire.JOB, encode(job)))
        while (frame := wire.receive(ours))[0] == wire.ROWS:
            pass
        thread.join(60)
    return None if frame[0] == wire.DONE else msgspec.msgpack.decode(frame[1], type=wire.JobFailure)


def test_job_without_executor_is_refused_with_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose tasks wait for an executor for too long is cancelled, and may be sent again. A wait that ends before
    that does no harm, and a deadline during the wait names it, too.
    """
    late = outcome_of(monkeypatch, WaitingSessions(float("inf")), executor_wait_s=0.2)
    timed_out = outcome_of(monkeypatch, WaitingSessions(float("inf")), job=structs.replace(JOB, deadline_ms=200))

    for failure in (late, timed_out):
        assert failure is not None
        assert (failure.number, failure.again, failure.replaces) == (3102, True, False)
        assert "has had no executor for the engine for 0 s" in failure.message
        assert "spark.cores.max" in failure.message
    assert outcome_of(monkeypatch, WaitingSessions(time.monotonic() + 0.3), executor_wait_s=30) is None


class JavaError(Exception):
    """An error from Java, as PySpark raises it: its exception is a chain of causes, here of class names."""

    def __init__(self, message: str, *names: str) -> None:
        super().__init__(message)
        self.java_exception = JavaThrowable(names) if names else None


class JavaThrowable:
    """A Java exception with causes."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def getClass(self) -> JavaThrowable:  # noqa: N802 - Java's name
        """Return the class."""
        return self

    def getName(self) -> str:  # noqa: N802
        """Return the class's name."""
        return self._names[0]

    def getCause(self) -> JavaThrowable | None:  # noqa: N802
        """Return the cause."""
        return JavaThrowable(self._names[1:]) if self._names[1:] else None


FAILED = "org.apache.spark.SparkException"


@pytest.mark.parametrize(
    "error,replaces",
    [
        (JavaError("no", FAILED, "java.lang.ExceptionInInitializerError"), True),
        (JavaError("no", "java.lang.NoClassDefFoundError"), True),
        (JavaError("no", FAILED, FAILED, "java.lang.OutOfMemoryError"), True),
        (JavaError("the value 'java.lang.NoClassDefFoundError' cannot be cast", FAILED), False),
        (RuntimeError("java.lang.NoClassDefFoundError"), False),
        (RuntimeError("No space left on device"), False),
    ],
)
def test_permanent_java_error_replaces_engine(
    monkeypatch: pytest.MonkeyPatch, error: Exception, replaces: bool
) -> None:
    """If a class could not be loaded, or Java had no memory, the answer says that the engine is to be replaced. The
    engine does not end, because other statements run in it. A text in a message decides nothing.
    """
    killed: list[object] = []
    monkeypatch.setattr(module.os, "killpg", lambda *args: killed.append(args))

    def fail(*_: object, **_more: object) -> Iterator[str]:
        raise error

    monkeypatch.setattr(statements, "run_job", fail)
    session_future: Future[StatementSessions] = Future()
    session_future.set_result(cast("Any", Open()))
    ours, theirs = socket.socketpair()
    served = module._JobConnection(theirs, session_future, places=threading.Semaphore(1))
    thread = threading.Thread(target=served.run)
    thread.start()
    ours.sendall(wire.encode_frame(wire.JOB, encode(JOB)))
    kind, body = wire.receive(ours)
    thread.join(60)
    ours.close()

    assert kind == wire.FAILED
    assert msgspec.msgpack.decode(body, type=wire.JobFailure).replaces is replaces
    assert killed == []


@pytest.mark.spark
def test_engine_of_killed_server_ends_and_removes_scratch() -> None:
    """The engine ends when its control socket is closed, and its scratch directory is removed."""
    process = EngineProcess(
        EngineStart(
            uri="http://127.0.0.1:1",
            metalake="lake",
            master="local",
            memory="256m",
            slots=3,
            statements_max=2,
            scratch="",
            readable=(),
            writable=(),
            closed=(),
        )
    )
    spilled = Path(process.scratch, "blockmgr", "00")
    spilled.mkdir(parents=True)
    (spilled / "shuffle.data").write_bytes(b"what a statement has spilled")
    try:
        process.control.close()
        _, status = os.waitpid(process.pid, 0)

        assert os.WIFSIGNALED(status)
        assert not Path(process.scratch, "blockmgr").exists()
    finally:
        process.end()


def test_thread_start_is_retried_until_memory_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a statement uses all memory, the engine waits instead of ending."""
    refusals = iter([RuntimeError("can't start new thread")] * 2)
    start = threading.Thread.start

    def start_or_refuse(thread: threading.Thread) -> None:
        for error in refusals:
            raise error
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_refuse)
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    ran = threading.Event()
    module._start_thread(ran.set)
    assert ran.wait(10)


def test_a_thread_that_never_starts_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last try the error is raised, so that the server gets another engine."""
    tries: list[threading.Thread] = []

    def refuse(thread: threading.Thread) -> None:
        tries.append(thread)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    with pytest.raises(RuntimeError, match="new thread"):
        module._start_thread(threading.Event().set)
    assert len(tries) == module.THREAD_TRIES
