"""The engine of SQL++: its process is started when there is a statement for it, asked over a socket for each, and replaced when it does not obey.

May import this room, `config`, the wire of `engine`, `files`, `services`, `sqlpp` and `telemetry`. Knows no statement: a job is bytes. The process is spawned in a session of its own with an
environment that holds no secret, its scratch directory is its working directory, and what it may touch it takes away from itself by itself (`limnos.engine.confinement`).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import structs

from limnos.app.building import allowed_of
from limnos.app.listening import url_of
from limnos.app.turns import Turns
from limnos.engine import wire
from limnos.files import root_of
from limnos.services.sqlpp_engine import NO_ENGINE, NoEngine
from limnos.sqlpp.errors import DuplicateKey, OutcomeUnknown, Place, SqlppError
from limnos.sqlpp.jobs import encode
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator

    from limnos.config.settings import Settings
    from limnos.services.sqlpp_engine import Engine
    from limnos.sqlpp.jobs import EngineJob

log = get_logger("limnos.engine")
MODULE: Final = "limnos.engine.process"
PASSED_ON: Final = ("LANG", "LC_ALL", "PATH", "PYTHONPATH", "HOME", "XDG_CACHE_HOME", "JAVA_HOME", "LIMNOS_CACHE")
GRACE_S: Final = 10.0
"""How long a statement whose time is over, or whose caller has gone, may take to end before its engine is replaced."""
BROKEN, TIMED_OUT = 3102, 30
SLOTS_LEAST: Final = 3
WAITING_MAX: Final = 1_000
"""So many statements wait for a place."""
ASKER_WAITING_MAX: Final = 500
"""And so many of one user: more would leave the others none to wait in."""
DONE = Counter(
    "limnos_sqlpp_jobs_total", "Statements given to the engine of SQL++, by kind and outcome.", ("kind", "outcome")
)
STARTS = Counter("limnos_sqlpp_engine_starts_total", "Times that the engine of SQL++ was started.")


def engine_of(settings: Settings, bound: socket.socket) -> Engine:
    """The engine that a server's settings ask for, which is started when it is needed; none where PySpark is not installed.

    It reaches the server at the address that the server listens on.
    """
    if not has_engine(settings):
        return NoEngine()
    own = settings.engine
    slots = own.slots or max(SLOTS_LEAST, (os.cpu_count() or 1) + 1)
    start = wire.Start(
        uri=_reached_at(bound),
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
    return SparkEngine(start, idle_s=own.idle_s)


def has_engine(settings: Settings) -> bool:
    """Say whether a server has an engine, by its settings and by what is installed."""
    return settings.sqlpp.enabled and importlib.util.find_spec("pyspark") is not None


def _reached_at(bound: socket.socket) -> str:
    """The URL of the server from this machine: who listens everywhere is at loopback, too."""
    return url_of(bound).replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _directories(roots: Iterable[str]) -> Iterator[str]:
    """Those of some roots that are directories on this machine."""
    for root in roots:
        if root.startswith("file:"):
            yield unquote(urlsplit(root).path)


class _Process:
    """One engine: its process, its control socket, its scratch directory."""

    def __init__(self, start: wire.Start) -> None:
        for directory in start.writable:
            if any(Path(directory).is_relative_to(own) for own in start.closed):  # what is not there cannot be allowed
                Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.scratch = tempfile.mkdtemp(prefix="limnos-engine-")
        ours, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        environment |= {"TMPDIR": self.scratch, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-P", "-m", MODULE]
        with theirs:
            actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
            self.pid = os.posix_spawn(sys.executable, command, environment, file_actions=actions, setsid=True)
        self.control = ours
        told = structs.replace(start, scratch=self.scratch)
        ours.sendall(wire.framed(wire.JOB, msgspec.msgpack.encode(told)))

    def job(self) -> socket.socket:
        """A socket for one job. Raises OSError when the process has gone."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self.control, [b"j"], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        return ours

    def end(self) -> None:
        """End the process and all that it started, whatever they are at."""
        self.control.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        shutil.rmtree(self.scratch, ignore_errors=True)


class SparkEngine:
    """Works statements out on Spark, in a process that is there while it is needed."""

    def __init__(self, start: wire.Start, *, idle_s: float) -> None:
        self._start = start
        self._idle_s = idle_s
        most = start.statements_max
        self._turns = Turns(
            most, limits={"asker": max(1, most - 1)}, waits={"asker": ASKER_WAITING_MAX}, waiting_max=WAITING_MAX
        )
        self._process: _Process | None = None
        self._jobs: dict[str, asyncio.StreamWriter | None] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, job: EngineJob) -> AsyncGenerator[bytes]:
        """Give the results of a job, line by line, when its turn has come. Raises SqlppError, Unavailable (too many wait)."""
        outcome = "failed"
        self._jobs[job.id] = None
        if self._timer is not None:
            self._timer.cancel()
        try:
            async with self._turn(job) as begun, contextlib.aclosing(self._rows(begun)) as rows:
                async for line in rows:
                    yield line
            outcome = "done"
        except GeneratorExit:
            outcome = "left"
            raise
        finally:
            self._jobs.pop(job.id, None)
            DONE[job.kind, outcome] += 1
            self._rest()

    async def cancel(self, job_id: str) -> None:
        """End a job, if it is still under way: whoever takes its results is told so by the engine."""
        writer = self._jobs.get(job_id)
        if writer is not None and writer.can_write_eof():
            writer.write_eof()

    def close(self) -> None:
        """End the engine."""
        if self._timer is not None:
            self._timer.cancel()
        if self._process is not None:
            self._process.end()
            self._process = None

    # One job.

    @contextlib.asynccontextmanager
    async def _turn(self, job: EngineJob) -> AsyncIterator[EngineJob]:
        """Wait for the job's turn, and give it with the time that is left: no user's statements take the last place. Raises SqlppError, Unavailable."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(job.deadline_ms / 1000):
                    await stack.enter_async_context(self._turns.turn((("asker", job.asker),) if job.asker else ()))
            except TimeoutError:
                raise timed_out() from None
            yield structs.replace(job, deadline_ms=job.deadline_ms - round((loop.time() - began) * 1000))

    async def _rows(self, job: EngineJob) -> AsyncGenerator[bytes]:
        process, own = self._socket()
        reader, writer = await asyncio.open_connection(sock=own)
        self._jobs[job.id] = writer
        ended = False
        try:
            async with asyncio.timeout(job.deadline_ms / 1000 + 1):
                writer.write(wire.framed(wire.JOB, encode(job)))
                await writer.drain()
            loop = asyncio.get_running_loop()
            ends_at = loop.time() + job.deadline_ms / 1000 + 1
            while True:
                async with asyncio.timeout_at(ends_at):
                    kind, body = await _frame(reader)
                if kind == wire.DONE:
                    ended = True
                    return
                if kind == wire.FAILED:
                    ended = True
                    raise _error(msgspec.msgpack.decode(body, type=wire.Failure))
                for line in body.splitlines():
                    yield line
        except TimeoutError:
            raise timed_out() from None
        except (ConnectionError, asyncio.IncompleteReadError):
            ended = True
            self._forget(process)
            raise _lost(job) from None
        finally:
            if not ended:
                self._see_off(process, job, reader=reader, writer=writer)
            else:
                writer.close()

    def _socket(self) -> tuple[_Process, socket.socket]:
        """A socket to the engine, which is started if need be. Raises SqlppError when that fails."""
        for _ in range(2):
            if self._process is None:
                STARTS[()] += 1
                self._process = _Process(self._start)
                log.info("the engine of SQL++ has been started", pid=self._process.pid)
            process = self._process
            try:
                own = process.job()
            except OSError:
                self._forget(process)
                continue
            own.setblocking(False)
            return process, own
        raise SqlppError(NO_ENGINE, "The engine cannot be started; the server's log has the reason")

    def _see_off(
        self, process: _Process, job: EngineJob, *, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Cancel a job, and see to it that it ends."""

        async def watch() -> None:
            try:
                with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                    writer.write_eof()
                    async with asyncio.timeout(GRACE_S):
                        while (await _frame(reader))[0] == wire.ROWS:
                            pass
            except TimeoutError:
                log.warning("the engine of SQL++ does not obey and is replaced", job=job.id)
                self._forget(process)
            finally:
                writer.close()

        task = asyncio.get_running_loop().create_task(watch())
        _SEEN_OFF.add(task)
        task.add_done_callback(_SEEN_OFF.discard)

    def _forget(self, process: _Process) -> None:
        process.end()
        if self._process is process:
            self._process = None

    def _rest(self) -> None:
        """End the engine when nothing has been asked of it for a while: it holds a gigabyte."""
        if not self._jobs and self._process is not None:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._tire)

    def _tire(self) -> None:
        if not self._jobs and self._process is not None:
            self._forget(self._process)


_SEEN_OFF: set[asyncio.Task[None]] = set()
"""Jobs that are being seen off: a task that nobody holds may be taken away."""


async def _frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind, size = wire.HEAD.unpack(await reader.readexactly(wire.HEAD.size))
    return kind, await reader.readexactly(size)


def timed_out() -> SqlppError:
    """A statement's time is over."""
    return SqlppError(TIMED_OUT, "Request timed out and will be cancelled")


def _error(failure: wire.Failure) -> SqlppError:
    if failure.unknown:
        return OutcomeUnknown()
    if failure.duplicate:
        return DuplicateKey(failure.message.partition(": ")[2])
    place = None if failure.line is None or failure.column is None else Place(failure.line, failure.column)
    return SqlppError(failure.number, failure.message, place, failure.told)


def _lost(job: EngineJob) -> SqlppError:
    """The engine has ended in the middle of a job."""
    if job.kind == "query":
        return SqlppError(BROKEN, "The engine ended in the middle of the statement: try again")
    return OutcomeUnknown()
