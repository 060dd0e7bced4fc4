"""The SQL++ engine: starts its process on demand, runs each statement over a socket, replaces a process that hangs.

May import this package, `config`, `engine.wire`, `files`, `services`, `sqlpp`, `telemetry` and msgspec. Must not know
statements: a job is bytes. The server fetches the engine's files (`limnos.app.engine_files`), because the process
confines itself (`limnos.confinement.landlock`). If an engine cannot start or has ended, statements get
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
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import structs

from limnos.app.engine_files import RETRY_S, EngineFiles, cache_of, engine_files_of
from limnos.app.engine_process import EngineProcess
from limnos.app.engine_scratch import remove_stale
from limnos.app.fair_queue import FairQueue
from limnos.app.listening import url_of
from limnos.app.node_builder import allowed_of
from limnos.config.loading import PREFIX
from limnos.config.settings import Settings
from limnos.engine import wire
from limnos.files import root_of
from limnos.services.sqlpp.execution.engine import NoSqlppEngine, SqlppEngine
from limnos.sqlpp.errors import (
    NO_ENGINE,
    DuplicateKey,
    EngineFailed,
    EngineUnavailable,
    OutcomeUnknown,
    SnapshotMoved,
    SqlppError,
    TextPosition,
)
from limnos.sqlpp.jobs import EngineJob, encode
from limnos.sqlpp.offloaded_work import warnings_of
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.engine")
GRACE_S: Final = 10.0
"""Seconds that a timed-out or abandoned statement has to end before its engine is replaced."""
START_S: Final = 180.0
"""Seconds that a new engine has to answer its first statement. Statements that end earlier do not replace it."""
BROKEN, TIMED_OUT = 3102, 30
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
        memory=own.memory,
        slots=slots,
        statements_max=own.statements_max,
        scratch="",
        readable=tuple(_directories(map(root_of, settings.sqlpp.file_roots))),
        writable=tuple(_directories(allowed_of(settings).roots)),
        closed=(str(Path(settings.server.data).absolute()),),
    )
    return SparkEngine(
        start, idle_s=own.idle_s, files=engine_files_of(settings), settings=engine_settings(settings), warm=own.warm
    )


def engine_settings(settings: Settings) -> dict[str, str]:
    """Return the settings of the section `spark` that are set, as environment variables of an engine."""
    named = settings.spark.model_dump() | {"cache": cache_of(settings)}
    return {f"{PREFIX}SPARK__{name.upper()}": str(value) for name, value in named.items() if value is not None}


def has_engine(settings: Settings) -> bool:
    """Return whether a server has an engine, by its settings and installed packages."""
    return settings.sqlpp.enabled and importlib.util.find_spec("pyspark") is not None


def local_url(bound: socket.socket) -> str:
    """Return the URL at which this machine reaches the server: a loopback URL if the server listens on all
    addresses.
    """
    return url_of(bound).replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _directories(roots: Iterable[str]) -> Iterator[str]:
    """Yield the paths of the roots that are local directories."""
    for root in roots:
        if root.startswith("file:"):
            yield unquote(urlsplit(root).path)


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
            most, limits={"user": max(1, most - 1)}, waits={"user": USER_WAITING_MAX}, waiting_max=WAITING_MAX
        )
        self._started_at, self._has_answered = 0.0, False
        self._process: EngineProcess | None = None
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
            async with self._slot(job) as engine_job, contextlib.aclosing(self._rows(engine_job, warnings)) as rows:
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
        removed = remove_stale()
        if removed:
            log.info("scratch directories of engines whose server was killed have been removed", count=removed)
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
            process, own = await self._socket(within_s=START_S)
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
            self._has_answered = self._has_answered or process is self._process
            log.info("the engine of SQL++ is warm", seconds=round(loop.time() - began, 1))

    def close(self) -> None:
        """Kill the engine."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._process is not None:
            self._process.end()
            self._process = None

    @contextlib.asynccontextmanager
    async def _slot(self, job: EngineJob) -> AsyncIterator[EngineJob]:
        """Wait in the fair queue for a slot, and yield the job with its remaining time. No user can occupy all slots.

        Raises SqlppError after the job's deadline, ServiceUnavailable if the queue is full.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(job.deadline_ms / 1000):
                    await stack.enter_async_context(self._turns.turn((("user", job.user),) if job.user else ()))
            except TimeoutError:
                raise timed_out_error() from None
            yield structs.replace(job, deadline_ms=job.deadline_ms - round((loop.time() - began) * 1000))

    async def _rows(self, job: EngineJob, warnings: list[SqlppError] | None) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + job.deadline_ms / 1000
        process, own = await self._socket(within_s=WAITING_PART * job.deadline_ms / 1000)
        job = structs.replace(job, deadline_ms=round((ends_at - loop.time()) * 1000))
        reader, writer = await asyncio.open_connection(sock=own)
        self._jobs[job.id] = writer
        ended = False
        try:
            async with asyncio.timeout_at(ends_at + 1):
                writer.write(wire.encode_frame(wire.JOB, encode(job)))
                await writer.drain()
            while True:
                async with asyncio.timeout_at(ends_at + 1):
                    kind, body = await _frame(reader)
                self._has_answered = self._has_answered or process is self._process
                if kind == wire.DONE:
                    ended = True
                    if body and warnings is not None:
                        warnings += warnings_of(body)
                    return
                if kind == wire.FAILED:
                    ended = True
                    raise self._job_error(_error(msgspec.msgpack.decode(body, type=wire.JobFailure)))
                for line in body.splitlines():
                    yield line
        except TimeoutError:
            raise timed_out_error() from None
        except (ConnectionError, asyncio.IncompleteReadError):
            ended = True
            self._forget(process)
            raise _engine_lost_error(job) from None
        finally:
            if not ended:
                self._cancel_or_replace(process, job, reader=reader, writer=writer)
            else:
                writer.close()

    async def _socket(self, *, within_s: float) -> tuple[EngineProcess, socket.socket]:
        """Return the socket of a new job, with the engine started if needed. Raises EngineUnavailable."""
        for _ in range(2):
            process = self._process or await self._running_process(within_s)
            try:
                own = process.job()
            except OSError:
                self._forget(process)
                continue
            own.setblocking(False)
            return process, own
        raise EngineUnavailable(
            "The engine ended as soon as it was started; the server's log has the reason: try again"
        )

    async def _running_process(self, within_s: float) -> EngineProcess:
        """Return the engine's process, started when its files are ready.

        Raises EngineUnavailable, also for `RETRY_S` seconds after a failed start.
        """
        loop = asyncio.get_running_loop()
        left_s = self._refused_until - loop.time()
        if left_s > 0:
            raise EngineUnavailable(self._refusal, retry_after_s=math.ceil(left_s))
        start = self._start
        if self._files is not None:
            files = await self._files.get(within_s=within_s)
            start = structs.replace(start, jars=files.jars, java_home=files.java_home, java_runtime=files.java_runtime)
        if self._closed:
            raise EngineUnavailable("The server was stopped: try again")
        if self._process is None:  # another statement may have started it during the wait
            STARTS[()] += 1
            try:
                self._process = EngineProcess(start, settings=self._settings)
            except OSError as error:
                reason = f"{error.filename or tempfile.gettempdir()}: {error.strerror or error}"
                message = f"The engine could not be started: {reason}. Nothing was changed: try again"
                log.warning("the engine of SQL++ could not be started", reason=reason)
                raise self._job_error(EngineUnavailable(message)) from None
            self._started_at, self._has_answered = loop.time(), False
            log.info("the engine of SQL++ has been started", pid=self._process.pid)
        return self._process

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

    def _cancel_or_replace(
        self, process: EngineProcess, job: EngineJob, *, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Cancel a job in the background, and replace the engine if the job does not end within `GRACE_S` seconds."""

        async def watch() -> None:
            try:
                with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                    writer.write_eof()
                    async with asyncio.timeout(GRACE_S):
                        while (await _frame(reader))[0] == wire.ROWS:
                            pass
            except TimeoutError:
                if process is self._process and self.is_starting:
                    log.info("the engine of SQL++ is still starting", job=job.id)
                else:
                    log.warning("the engine of SQL++ does not cancel a statement and is replaced", job=job.id)
                    self._forget(process)
            finally:
                writer.close()

        _keep(asyncio.get_running_loop().create_task(watch()))

    @property
    def is_starting(self) -> bool:
        """Whether the engine was started recently, and has not executed a job yet."""
        return not self._has_answered and asyncio.get_running_loop().time() < self._started_at + START_S

    def _forget(self, process: EngineProcess) -> None:
        process.end()
        if self._process is process:
            self._process = None

    def _start_idle_timer(self) -> None:
        """Start the timer that kills the engine if no job is running: an idle engine uses a gigabyte of memory."""
        if not self._jobs and self._process is not None:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._tire)

    def _tire(self) -> None:
        if not self._jobs and self._process is not None:
            self._forget(self._process)


_KEPT: set[asyncio.Task[None]] = set()
"""Running tasks of engines. The event loop keeps only weak references to tasks."""


def _keep(task: asyncio.Task[None]) -> None:
    """Hold a reference to a task until it ends, so that the task is not garbage-collected."""
    _KEPT.add(task)
    task.add_done_callback(_KEPT.discard)


async def _frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind, size = wire.HEAD.unpack(await reader.readexactly(wire.HEAD.size))
    return kind, await reader.readexactly(size)


def timed_out_error() -> SqlppError:
    """Return the error of a statement that exceeded its time limit."""
    return SqlppError(TIMED_OUT, "Request timed out and will be cancelled")


def _error(failure: wire.JobFailure) -> SqlppError:
    if failure.unknown:
        return OutcomeUnknown()
    if failure.duplicate:
        return DuplicateKey(failure.message.partition(": ")[2])
    if failure.moved:
        return SnapshotMoved()
    if failure.again:
        return EngineUnavailable(failure.message, number=failure.number, retry_after_s=failure.retry_after_s)
    if failure.failed:
        return EngineFailed(failure.message)
    place = None if failure.line is None or failure.column is None else TextPosition(failure.line, failure.column)
    return SqlppError(failure.number, failure.message, place, failure.has_position)


def _engine_lost_error(job: EngineJob) -> SqlppError:
    """Return the error of a job whose engine ended while it ran."""
    if job.kind in ("query", "export"):
        return EngineUnavailable("The engine ended in the middle of the statement: try again", number=BROKEN)
    return OutcomeUnknown()
