# SPDX-License-Identifier: Apache-2.0
"""The engine's main program: receives the sockets of jobs over its control socket and runs each job in a thread.

Must not know statements. It drops its rights to files before it imports Spark. It ends with all its child processes
when the control socket closes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from limnos.confinement.file_rules import FileRules
from limnos.model.struct_types import build_struct_types
from limnos.rooms.sqlpp.engine import wire
from limnos.rooms.sqlpp.engine.failures import (
    cancelled_error,
    failure_of,
    large_result_error,
    no_executor_error,
    start_error,
    timed_out_error,
)
from limnos.rooms.sqlpp.engine.sessions import StatementSessions
from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.spark.cluster import EXECUTOR_WAIT_S, ExecutorWait
from limnos.spark.confined_process import confine_spark_process
from limnos.spark.java_failures import is_permanent
from limnos.spark.network import limit_java_network

if TYPE_CHECKING:
    from limnos.rooms.sqlpp.engine.table_files import TableClient

logger = logging.getLogger(__name__)
CONTROL_FD = 0
BATCH_BYTES = 128 << 10
SOCKETS_AT_ONCE = 4
MEMORY_MAX = 3 << 30
"""Limit of this process's own data memory (RLIMIT_DATA), set after the JVM has started.

A statement that needs more fails; the others continue.
"""
THREAD_TRIES = 100
"""The maximum number of tries to start a thread, 0.1 s apart."""
END_AGAIN_S = 1.0
"""Seconds between the attempts to cancel a job in Spark, until it has ended."""
EXECUTOR_CHECK_S = 1.0
"""Seconds between the checks whether a job waits for an executor of a cluster."""
TASKS_END_S = 5.0
"""Seconds that the Spark tasks of a failed or cancelled job have to end.

Afterwards the job counts as not ended, and the server replaces the engine.
"""
TASKS_END_CHECK_S = 0.05
"""Seconds between the checks whether such tasks have ended."""
REPORT_WITHIN_S = 2.0
"""Seconds that an engine which cannot start or continue stays alive to report the reason."""


def main() -> None:
    """Serve jobs until the control socket closes; then kill this process and its children."""
    logging.getLogger().addHandler(logging.StreamHandler(sys.stderr))
    logging.getLogger("limnos").setLevel(logging.INFO)
    control = socket.socket(fileno=os.dup(CONTROL_FD))
    control.setblocking(True)
    _, body = wire.receive(control)
    start = msgspec.msgpack.decode(body, type=wire.EngineStart)
    os.umask(0o077)
    rules = FileRules(
        readable=start.readable,
        writable=(start.scratch, *start.writable),
        closed=start.closed,
        opened=tuple(filter(None, (*start.jars, start.java_home, start.java_runtime))),
    )
    confine_spark_process(rules)
    os.chdir(start.scratch)
    task: Future[StatementSessions] = Future()
    threading.Thread(target=_begin, args=(start, task), daemon=True).start()
    from limnos.rooms.sqlpp.engine.table_files import TableClient  # noqa: PLC0415 - heavy, so after the rights are taken away

    statement_slots = threading.Semaphore(start.statements_max)
    client = TableClient(start.uri, metalake=start.metalake)
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(control, SOCKETS_AT_ONCE, SOCKETS_AT_ONCE)
        except OSError:
            data, descriptors = b"", []
        if not data and not descriptors:
            shutil.rmtree(start.scratch, ignore_errors=True)  # a killed server can no longer remove it
            os.killpg(0, signal.SIGKILL)
        for descriptor in descriptors:
            served = _JobConnection(
                socket.socket(fileno=descriptor),
                task,
                places=statement_slots,
                client=client,
                executor_wait_s=start.executor_wait_s,
            )
            _start_thread(served.run)


def _start_thread(run: Callable[[], None]) -> None:
    """Run a function in a new thread. While a statement uses all memory, the system starts no thread: then tries again,
    because that statement fails soon.

    Raises RuntimeError after `THREAD_TRIES` tries; in `main` the engine then ends, and the server starts another one.
    """
    for left in reversed(range(THREAD_TRIES)):
        try:
            threading.Thread(target=run, daemon=True).start()
        except RuntimeError:
            if not left:
                raise
            time.sleep(0.1)
        else:
            return


def _begin(start: wire.EngineStart, task: Future[StatementSessions]) -> None:
    from limnos.rooms.sqlpp.engine.sessions import StatementSessions  # noqa: PLC0415 - after the rights are taken away

    try:
        build_struct_types()
        sessions = StatementSessions(start)
        sessions.begin(limit_java_network(start.uri, master=start.master))
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        # For this process only: the JVM runs already and keeps its limit.
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MAX, most))
    except BaseException as error:
        logger.exception("Spark could not be started")
        task.set_exception(start_error(error, start))
        _end_soon()  # the next statement gets a new engine
    else:
        task.set_result(sessions)


def _end_soon() -> None:
    """Kill this process and its children after `REPORT_WITHIN_S` seconds, in which it reports the reason."""
    threading.Timer(REPORT_WITHIN_S, os.killpg, (0, signal.SIGKILL)).start()


class _JobConnection:
    """The socket of one job, with the job's deadline and whether the client has disconnected."""

    def __init__(
        self,
        own: socket.socket,
        task: Future[StatementSessions],
        *,
        places: threading.Semaphore,
        client: TableClient | None = None,
        executor_wait_s: float = EXECUTOR_WAIT_S,
    ) -> None:
        self._socket = own
        self._client = client
        self._begun = task
        self._places = places
        self._job: EngineJob | None = None
        self._ends_at = float("inf")
        self._left = threading.Event()
        self._ended = threading.Event()
        self._wait = ExecutorWait(self._lacks_executor, max_s=executor_wait_s)

    def run(self) -> None:
        """Run the job, or start and warm up Spark for a PING. Sends any error to the server if it is still connected.

        Kills the engine if its JVM has died. If the JVM cannot run later jobs, the server replaces the engine.
        """
        with self._socket:
            try:
                self._serve()
            except BaseException as error:
                if self._is_over():
                    logger.exception("The Java process has ended, so the engine ends; waiting statements get an error")
                    os.killpg(0, signal.SIGKILL)
                with contextlib.suppress(OSError):
                    self._send_error(error)
            finally:
                self._ended.set()
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)  # ends the thread that listens on it

    def _is_over(self) -> bool:
        """Return whether Spark had started and its JVM no longer responds."""
        task = self._begun
        return task.done() and task.exception() is None and not task.result().is_alive()

    def _serve(self) -> None:
        kind, body = wire.receive(self._socket)
        if kind == wire.PING:
            self._begun.result().warm_up()
            self._socket.sendall(wire.encode_frame(wire.DONE))
            return
        from limnos.rooms.sqlpp.language.jobs import decode  # noqa: PLC0415

        job = self._job = decode(body)
        self._ends_at = time.monotonic() + job.deadline_ms / 1000
        _start_thread(self._watch)
        while not self._places.acquire(timeout=0.2):
            self._stop()
        try:
            warnings = self._look_up(job)
            if warnings is None:
                warnings = self._carry_out(self._begun.result(), job)
        finally:
            self._places.release()
        self._socket.sendall(wire.encode_frame(wire.DONE, warnings))

    def _look_up(self, job: EngineJob) -> bytes | None:
        """Run a lookup job and send its results. Returns its encoded warnings; None if the job is not a lookup."""
        from limnos.rooms.sqlpp.engine.key_lookups import look_up  # noqa: PLC0415
        from limnos.rooms.sqlpp.language.evaluator import Budget  # noqa: PLC0415
        from limnos.rooms.sqlpp.language.offloaded_work import packed_warnings  # noqa: PLC0415

        if self._client is None:
            return None
        budget = Budget(stop=self._stop)
        lines = look_up(job, self._client, budget=budget)
        if lines is None:
            return None
        self._send_all(lines)
        return packed_warnings(budget.warnings.values())

    def _carry_out(self, sessions: StatementSessions, job: EngineJob) -> bytes:
        """Run a job on Spark and send its results. Returns its encoded warnings."""
        from limnos.rooms.sqlpp.engine.statements import run_job  # noqa: PLC0415
        from limnos.rooms.sqlpp.language.evaluator import Budget  # noqa: PLC0415
        from limnos.rooms.sqlpp.language.offloaded_work import packed_warnings  # noqa: PLC0415

        self._stop()
        with sessions.of(job) as spark:
            budget = Budget(stop=self._stop)
            self._send_all(run_job(spark, job, parts=sessions.parts, stop=self._stop, budget=budget))
        return packed_warnings(budget.warnings.values())

    def _send_all(self, texts: Iterable[str]) -> None:
        """Send results to the server in batches of about BATCH_BYTES."""
        batch: list[bytes] = []
        size = 0
        for text in texts:
            line = text.encode()
            if len(line) > wire.LINE_BYTES_MAX:
                raise large_result_error()
            batch.append(line)
            size += len(line)
            if size >= BATCH_BYTES:
                self._send(batch)
                batch, size = [], 0
        if batch:
            self._send(batch)

    def _send(self, lines: list[bytes]) -> None:
        self._stop()
        self._socket.sendall(wire.encode_frame(wire.ROWS, b"\n".join((*lines, b""))))

    def _stop(self) -> None:
        """Raise SqlppError if the job has been cancelled or its deadline has passed."""
        if self._left.is_set():
            raise cancelled_error("" if self._job is None else self._job.id)
        if self._wait.is_over:
            raise no_executor_error(self._wait.seconds)
        if time.monotonic() > self._ends_at:
            raise timed_out_error()

    def _watch(self) -> None:
        """Wait until the server closes the socket or the deadline passes, then cancel the job in Spark."""
        try:
            self._socket.settimeout(None)
        except OSError:  # the job has ended already
            return
        event = threading.Event()
        _start_thread(partial(self._listen, event))
        self._wait_for_end(event)
        if event.is_set():
            self._left.set()
        while not self._ended.is_set():
            if self._job is not None and self._begun.done() and self._begun.exception() is None:
                self._begun.result().end(self._job.id)
            self._ended.wait(END_AGAIN_S)

    def _wait_for_end(self, event: threading.Event) -> None:
        """Wait until the event is set, the deadline passes, or the job has waited for an executor for too long."""
        while not event.is_set() and not self._ended.is_set() and (left_s := self._ends_at - time.monotonic()) > 0:
            event.wait(min(left_s, EXECUTOR_CHECK_S))
            if self._wait.look():
                return

    def _lacks_executor(self) -> bool:
        """Return whether the job's tasks wait for an executor of a cluster."""
        task = self._begun
        if self._job is None or not task.done() or task.exception() is not None:
            return False
        return task.result().lacks_executor(self._job.id)

    def _listen(self, event: threading.Event) -> None:
        """Wait until the server closes its end of the socket, then set the event. After the job the server sends no
        data.
        """
        with contextlib.suppress(OSError, ValueError):
            while self._socket.recv(1):
                pass
        event.set()

    def _end_tasks(self) -> bool:
        """Wait until the job's Spark tasks have ended, and return whether they have within `TASKS_END_S` seconds.

        Spark does not wait for the tasks that it cancels, and a task that runs on keeps its task slot.
        """
        task = self._begun
        if self._job is None or not task.done() or task.exception() is not None:
            return True
        until = time.monotonic() + TASKS_END_S
        while task.result().has_tasks(self._job.id):
            if time.monotonic() > until:
                logger.warning("Tasks of job %s do not end", self._job.id)
                return False
            time.sleep(TASKS_END_CHECK_S)
        return True

    def _send_error(self, reason: BaseException) -> None:
        error = reason
        job = "no job" if self._job is None else self._job.id
        if self._left.is_set():
            error = cancelled_error(job)
        elif self._wait.is_over or (self._wait.seconds and time.monotonic() > self._ends_at):
            error = no_executor_error(self._wait.seconds)
        elif time.monotonic() > self._ends_at:
            error = timed_out_error()
        replaces = is_permanent(reason) or not self._end_tasks()
        failure = msgspec.structs.replace(failure_of(error, job), replaces=replaces)
        self._socket.sendall(wire.encode_frame(wire.FAILED, msgspec.msgpack.encode(failure)))


if __name__ == "__main__":
    main()
