# SPDX-License-Identifier: Apache-2.0
"""The SQL++ engine: starts its process on demand, runs each statement over a socket, replaces a process that hangs.

Must not know statements: a job is bytes. The server fetches the engine's files (`limnos.app.engine_files`), because the
process confines itself (`limnos.confinement.landlock`). If an engine cannot start or has ended, statements get
`EngineUnavailable`, and the next one tries again.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import math
import os
import socket
import tempfile
import threading
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from limnos.app.engine_files import RETRY_S, EngineFiles, FilesNotReady, engine_files_of
from limnos.app.engine_scratch import remove_stale
from limnos.app.engine_settings import engine_settings, local_directories, local_url
from limnos.app.fair_queue import FairQueue, Turn
from limnos.app.node_builder import allowed_storage_of
from limnos.app.sending_deadline import SendingDeadline
from limnos.config.active_rooms import rooms_of
from limnos.config.settings import Settings
from limnos.config.values import spark_settings
from limnos.files import root_of
from limnos.rooms.sqlpp.app.engine_errors import engine_lost_error, error_of, timed_out_error
from limnos.rooms.sqlpp.app.engine_process import EngineProcess
from limnos.rooms.sqlpp.app.engine_replacement import EngineProcesses, RunningEngine
from limnos.rooms.sqlpp.engine import wire
from limnos.rooms.sqlpp.language.errors import NO_ENGINE, EngineUnavailable, SqlppError
from limnos.rooms.sqlpp.language.jobs import EngineJob, encode
from limnos.rooms.sqlpp.language.offloaded_work import warnings_of
from limnos.rooms.sqlpp.services.execution.engine import NoSqlppEngine, SqlppEngine
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.engine")
GRACE_S: Final = 10.0
"""Seconds that a timed-out or abandoned statement has to end before its engine is replaced."""
START_S: Final = 180.0
"""Seconds that a new engine has to answer its first statement. Statements that end earlier do not replace it."""
WAITING_PART: Final = 0.9
"""The fraction of a statement's time that it may wait for the engine's files.

The remaining time is for the error that they are not ready.
"""
SLOTS_LEAST: Final = 3
WAITING_MAX: Final = 1_000
"""The maximum number of waiting statements."""
USER_WAITING_MAX: Final = 500
"""The maximum number of waiting statements of one user."""
DONE = Counter(
    "limnos_sqlpp_jobs_total", "Statements given to the engine of SQL++, by kind and outcome.", ("kind", "outcome")
)
STARTS = Counter("limnos_sqlpp_engine_starts_total", "Starts of the SQL++ engine.")


def engine_of(settings: Settings, bound: socket.socket) -> SqlppEngine:
    """Return the SQL++ engine that the settings configure. It starts on demand, or with the server if `engine.warm` is
    set.

    Returns a null engine if SQL++ is disabled or PySpark is not installed.
    """
    if not has_engine(settings):
        return NoSqlppEngine()
    own = settings.engine
    slots = own.slots or max(SLOTS_LEAST, (os.cpu_count() or 1) + 1)
    start = wire.EngineStart(
        uri=local_url(bound),
        metalake=settings.server.metalake,
        master=f"local[{slots}]" if own.master == "local" else own.master,
        config=spark_settings(own.conf),
        executor_wait_s=own.executor_wait_s,
        memory=own.memory,
        slots=slots,
        statements_max=own.statements_max,
        scratch="",
        readable=tuple(local_directories(map(root_of, settings.sqlpp.file_roots))),
        writable=tuple(local_directories(allowed_storage_of(settings).roots)),
        closed=(str(Path(settings.server.data).absolute()),),
    )
    return SparkEngine(
        start, idle_s=own.idle_s, files=engine_files_of(settings), settings=engine_settings(settings), warm=own.warm
    )


def has_engine(settings: Settings) -> bool:
    """Return whether a server has an engine, by its settings and installed packages."""
    return rooms_of(settings).is_on("sqlpp") and importlib.util.find_spec("pyspark") is not None


class WatchedStatement(NamedTuple):
    """A statement that is being cancelled: its engine, the job's id, its turn in the queue, and its socket."""

    engine: RunningEngine
    job: str
    turn: Turn
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class SparkEngine:
    """Executes statements on Spark, in a process that is started on demand."""

    def __init__(
        self,
        start: wire.EngineStart,
        *,
        idle_s: float,
        files: EngineFiles | None = None,
        settings: Mapping[str, str] | None = None,
        warm: bool = False,
    ) -> None:
        self._start = start
        self._idle_s = idle_s
        self._warm = warm
        self._files = files
        self._settings = settings or {}
        self._refusal = ""
        self._refused_until = 0.0
        self._closed = False
        most = start.statements_max
        self._turns = FairQueue(
            most,
            limits={"user": max(1, most - 1)},
            waits={"user": USER_WAITING_MAX},
            waiting_max=WAITING_MAX,
            shares="user",
        )
        self._engines = EngineProcesses()
        self._jobs: dict[str, asyncio.StreamWriter | None] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, job: EngineJob, *, warnings: list[SqlppError] | None = None) -> AsyncGenerator[bytes]:
        """Wait in the fair queue, then run the job and yield its result lines. Appends warnings to `warnings`.

        Raises SqlppError, and ServiceUnavailable if the queue is full.
        """
        outcome = "failed"
        self._jobs[job.id] = None
        if self._timer is not None:
            self._timer.cancel()
        try:
            turn, engine_job = await self._turn(job)
            async with contextlib.aclosing(self._rows(engine_job, warnings, turn=turn)) as rows:
                async for line in rows:
                    yield line
            outcome = "done"
        except GeneratorExit:
            outcome = "left"
            raise
        finally:
            self._jobs.pop(job.id, None)
            DONE[job.kind, outcome] += 1
            self._start_idle_timer()

    async def cancel(self, job_id: str) -> None:
        """Cancel a job if it is running. The iterator that `run` returned for the job then raises the job's error."""
        writer = self._jobs.get(job_id)
        if writer is not None and writer.can_write_eof():
            writer.write_eof()

    def begin(self) -> None:
        """Remove scratch directories of killed servers, then start a `warm` engine or fetch missing files.

        Returns immediately; a thread does the work.
        """
        threading.Thread(
            target=self._look, args=(asyncio.get_running_loop(),), name="engine-begin", daemon=True
        ).start()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        removed_processes = remove_stale()
        if removed_processes:
            log.info(
                "scratch directories of engines whose server was killed have been removed", count=removed_processes
            )
        with contextlib.suppress(RuntimeError):  # the event loop has been closed
            if self._warm:
                loop.call_soon_threadsafe(self._begin_warm)
            elif self._files is not None and not self._files.are_fetched():
                loop.call_soon_threadsafe(self._files.begin)

    def _begin_warm(self) -> None:
        if not self._closed:
            _keep(asyncio.get_running_loop().create_task(self._start_engine()))

    async def _start_engine(self) -> None:
        """Start the engine and wait until it can run statements. Failures are logged; the next statement tries again.

        If a statement starts the engine first, this waits for that start.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            engine, own = await self._socket(within_s=START_S)
            reader, writer = await asyncio.open_connection(sock=own)
            try:
                writer.write(wire.encode_frame(wire.PING))
                await writer.drain()
                kind, _ = await _frame(reader)
            finally:
                writer.close()
        except (SqlppError, OSError, asyncio.IncompleteReadError) as error:
            log.warning("the engine of SQL++ could not be started with the server", reason=str(error))
            return
        if kind == wire.DONE:
            engine.has_answered = True
            log.info("the engine of SQL++ is warm", seconds=round(loop.time() - began, 1))

    def close(self) -> None:
        """Kill the engine."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._engines.end_all()

    async def _turn(self, job: EngineJob) -> tuple[Turn, EngineJob]:
        """Wait in the fair queue for a slot. Returns it, and the job with its remaining time. No user can occupy all
        slots.

        Raises SqlppError after the job's deadline, ServiceUnavailable if the queue is full.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(job.deadline_ms / 1000):
                turn = await self._turns.take((("user", job.user),) if job.user else ())
        except TimeoutError:
            raise timed_out_error() from None
        return turn, structs.replace(job, deadline_ms=job.deadline_ms - round((loop.time() - began) * 1000))

    async def _rows(self, job: EngineJob, warnings: list[SqlppError] | None, *, turn: Turn) -> AsyncGenerator[bytes]:
        """Run a job and yield its result lines. The turn is released when the engine has ended the job."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + job.deadline_ms / 1000
        try:
            engine, own = await self._socket(within_s=WAITING_PART * job.deadline_ms / 1000)
            reader, writer = await asyncio.open_connection(sock=own)
        except BaseException:
            turn.release()
            raise
        job = structs.replace(job, deadline_ms=round((ends_at - loop.time()) * 1000))
        self._jobs[job.id] = writer
        engine.statements.add(job.id)
        watched = WatchedStatement(engine=engine, job=job.id, turn=turn, reader=reader, writer=writer)
        ended, sending = False, SendingDeadline(ends_at + 1, partial(self._leave, watched))
        try:
            async with asyncio.timeout_at(ends_at + 1):
                writer.write(wire.encode_frame(wire.JOB, encode(job)))
                await writer.drain()
            while True:
                async with asyncio.timeout_at(ends_at + 1):
                    kind, body = await _frame(reader)
                engine.has_answered = True
                if kind == wire.DONE:
                    ended = True
                    if body and warnings is not None:
                        warnings += warnings_of(body)
                    return
                if kind == wire.FAILED:
                    ended = True
                    failure = msgspec.msgpack.decode(body, type=wire.JobFailure)
                    if failure.replaces:
                        self._engines.add_stuck(engine, job.id, turn=turn, reason="damaged")
                    raise self._job_error(error_of(failure))
                with sending:
                    for line in body.splitlines():
                        yield line
        except TimeoutError:
            raise timed_out_error() from None
        except (ConnectionError, asyncio.IncompleteReadError):
            ended = True
            log.warning("the engine of SQL++ ended in the middle of a statement", job=job.id, pid=engine.process.pid)
            self._engines.end(engine)
            raise engine_lost_error(job) from None
        finally:
            if ended:
                writer.close()
                self._engines.end_statement(engine, job.id, turn=turn)
            elif not sending.is_over:
                self._leave(watched)

    def _leave(self, statement: WatchedStatement) -> None:
        """Cancel a statement in the background, since nobody will read further results of it."""
        _keep(asyncio.get_running_loop().create_task(self._cancel_or_replace(statement)))

    async def _socket(self, *, within_s: float) -> tuple[RunningEngine, socket.socket]:
        """Return the socket of a new job, with the engine started if needed. Raises EngineUnavailable."""
        for _ in range(2):
            engine = self._engines.current or await self._running_engine(within_s)
            try:
                own = engine.process.job()
            except OSError:
                self._engines.end(engine)
                continue
            own.setblocking(False)
            return engine, own
        raise EngineUnavailable(
            "The engine ended as soon as it was started; the server's log has the reason: try again"
        )

    async def _running_engine(self, within_s: float) -> RunningEngine:
        """Return the engine that takes statements, started when its files are ready.

        Raises EngineUnavailable, also for `RETRY_S` seconds after a failed start.
        """
        loop = asyncio.get_running_loop()
        left_s = self._refused_until - loop.time()
        if left_s > 0:
            raise EngineUnavailable(self._refusal, retry_after_s=math.ceil(left_s))
        start = self._start
        if self._files is not None:
            try:
                files = await self._files.get(within_s=within_s)
            except FilesNotReady as error:
                raise EngineUnavailable(error.message, retry_after_s=error.retry_after_s) from None
            start = structs.replace(start, jars=files.jars, java_home=files.java_home, java_runtime=files.java_runtime)
        if self._closed:
            raise EngineUnavailable("The server was stopped: try again")
        if self._engines.current is not None:  # another statement has started it during the wait
            return self._engines.current
        STARTS[()] += 1
        try:
            process = EngineProcess(start, settings=self._settings)
        except OSError as error:
            reason = f"{error.filename or tempfile.gettempdir()}: {error.strerror or error}"
            message = f"The engine could not be started: {reason}. Nothing was changed: try again"
            log.warning("the engine of SQL++ could not be started", reason=reason)
            raise self._job_error(EngineUnavailable(message)) from None
        log.info("the engine of SQL++ has been started", pid=process.pid)
        return self._engines.add(process, started_at=loop.time())

    def _job_error(self, error: SqlppError) -> SqlppError:
        """Return the error to raise for a failed job or a failed start.

        After a failed start, later statements get the same error for `RETRY_S` seconds, and the prepared
        files are discarded.
        """
        if isinstance(error, EngineUnavailable) and error.number == NO_ENGINE:
            self._refusal, self._refused_until = error.message, asyncio.get_running_loop().time() + RETRY_S
            if self._files is not None:
                self._files.forget()
            return EngineUnavailable(error.message, retry_after_s=RETRY_S)
        return error

    async def _cancel_or_replace(self, statement: WatchedStatement) -> None:
        """Cancel a statement, and replace the engine behind the others if it does not end within `GRACE_S` seconds.

        An engine that is still starting is not replaced.
        """
        engine = statement.engine
        end = asyncio.create_task(_is_ended(statement))
        try:
            while not (await asyncio.wait({end}, timeout=GRACE_S))[0]:
                if not self._is_starting(engine):
                    break
            if not end.done() or end.exception() is not None or not end.result():
                log.warning("the engine of SQL++ does not cancel a statement", job=statement.job)
                self._engines.add_stuck(engine, statement.job, turn=statement.turn, reason="stuck")
            self._engines.end_statement(engine, statement.job, turn=statement.turn)
        finally:
            end.cancel()
            statement.writer.close()

    @property
    def is_starting(self) -> bool:
        """Whether the engine was started recently, and has not executed a job yet."""
        return self._engines.current is not None and self._is_starting(self._engines.current)

    def _is_starting(self, engine: RunningEngine) -> bool:
        """Return whether an engine was started recently, and has not executed a job yet."""
        return not engine.has_answered and asyncio.get_running_loop().time() < engine.started_at + START_S

    @property
    def _process(self) -> EngineProcess | None:
        """The process that takes statements."""
        return None if self._engines.current is None else self._engines.current.process

    def _start_idle_timer(self) -> None:
        """Start the timer that kills the engine if no job is running: an idle engine uses a gigabyte of memory."""
        if not self._jobs and self._process is not None:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if not self._jobs and self._engines.current is not None:
            self._engines.end(self._engines.current)


_KEPT: set[asyncio.Task[None]] = set()
"""Running tasks of engines. The event loop keeps only weak references to tasks."""


def _keep(task: asyncio.Task[None]) -> None:
    """Hold a reference to a task until it ends, so that the task is not garbage-collected."""
    _KEPT.add(task)
    task.add_done_callback(_KEPT.discard)


async def _is_ended(statement: WatchedStatement) -> bool:
    """Tell the engine that nobody waits for a statement, and wait until its thread has ended. Returns whether its tasks
    have ended too.
    """
    kind, body = wire.DONE, b""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        statement.writer.write_eof()
        while (answer := await _frame(statement.reader))[0] == wire.ROWS:
            pass
        kind, body = answer
    statement.engine.has_answered = True
    return kind != wire.FAILED or not msgspec.msgpack.decode(body, type=wire.JobFailure).replaces


async def _frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind, size = wire.HEAD.unpack(await reader.readexactly(wire.HEAD.size))
    if size > wire.FRAME_BYTES_MAX:
        raise ConnectionResetError(f"A frame of {size} bytes exceeds the limit")
    return kind, await reader.readexactly(size)
