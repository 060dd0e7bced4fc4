# SPDX-License-Identifier: Apache-2.0
"""A worker process with the socket to it, and the list of idle processes of a pool.

Must not know the work. The process is spawned, not forked, with only listed environment variables and those that the
caller adds. It exits when this process has ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from limnos.sources.wire import COUNT, LENGTH, pack

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
PASSED_ON: Final = ("LANG", "LC_ALL", "PATH", "PYTHONPATH", "TMPDIR")
PIECE_BYTES: Final = 1 << 20
IDLE_S: Final = 60.0
CRASHES: Final = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL)
_LOOK_S: Final = 0.02


class WorkerProcess:
    """One worker process, and the socket to it.

    `environment` is added to the inherited variables. The constructor raises OSError if the process cannot start.
    """

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        arguments = {key: os.environ[key] for key in PASSED_ON if key in os.environ} | dict(environment or {})
        command = [sys.executable, "-P", "-m", module]
        with ExitStack() as unless_started, theirs:
            unless_started.callback(ours.close)
            actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
            self.pid = os.posix_spawn(sys.executable, command, arguments, file_actions=actions)
            unless_started.pop_all()
        self._wire = ours
        self._ended = False
        self.has_crashed = False
        """The process ended by a crash of its own (SIGSEGV and similar), not by a limit, a stop or a kill."""
        self.used_at = 0.0

    async def ask(self, parts: list[bytes]) -> list[bytes]:
        """Send a request and wait for the response. Raises ConnectionError if the process has ended."""
        await self.send(parts)
        return await self.receive()

    async def send(self, parts: list[bytes]) -> None:
        """Send a complete message. Raises ConnectionError if the process has ended."""
        try:
            await asyncio.get_running_loop().sock_sendall(self._wire, pack(parts))
        except (OSError, ValueError) as error:
            raise ConnectionResetError("The process has ended") from error

    async def receive(self) -> list[bytes]:
        """Wait for a complete message and return its parts. Raises ConnectionError if the process has ended."""
        (count,) = COUNT.unpack(await self._exactly(COUNT.size))
        return [await self._exactly(LENGTH.unpack(await self._exactly(LENGTH.size))[0]) for _ in range(count)]

    async def _exactly(self, size: int) -> bytes:
        loop, chunks, left = asyncio.get_running_loop(), [], size
        while left:
            try:
                chunk = await loop.sock_recv(self._wire, min(left, PIECE_BYTES))
            except (OSError, ValueError) as error:
                raise ConnectionResetError("The process has ended") from error
            if not chunk:
                raise ConnectionResetError("The process has ended")
            chunks.append(chunk)
            left -= len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def is_alive(self) -> bool:
        """Return whether an idle process is still alive: an ended process has closed its socket."""
        try:
            return self._wire.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def resident_bytes(self) -> int:
        """Return the process's resident memory in bytes; 0 if it is unknown."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_BYTES
        except (OSError, ValueError, IndexError):
            return 0

    def kill(self) -> None:
        """Kill the process with SIGKILL. Callers that wait for its response get ConnectionError."""
        if not self._ended:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def close(self, within_s: float) -> None:
        """Close the socket, and let the process finish; kill it after `within_s` seconds."""
        self._wire.close()
        for _ in range(round(within_s / _LOOK_S)):
            if self._has_ended():
                return
            await asyncio.sleep(_LOOK_S)
        self.end()

    def _has_ended(self) -> bool:
        """Return whether the process has ended, and reap it."""
        try:
            self._ended = self._ended or os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            self._ended = True
        return self._ended

    def end(self) -> None:
        """Kill the process and reap it."""
        self.kill()
        self._wire.close()
        if not self._ended:
            self._ended = True
            with suppress(ChildProcessError):
                _, status = os.waitpid(self.pid, 0)  # the process was killed, so this returns quickly
                self.has_crashed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in CRASHES


class IdleWorkers(list[WorkerProcess]):
    """The idle processes of a pool. Each one ends after `IDLE_S` seconds without work."""

    def __init__(self) -> None:
        super().__init__()
        self._timer: asyncio.TimerHandle | None = None

    def add_idle(self, worker: WorkerProcess) -> None:
        """Add a process to the idle ones, for reuse by a later request."""
        loop = asyncio.get_running_loop()
        worker.used_at = loop.time()
        self.append(worker)
        if self._timer is None:
            self._timer = loop.call_later(IDLE_S, self._end_expired)

    def _end_expired(self) -> None:
        loop = asyncio.get_running_loop()
        expired = [each for each in self if loop.time() - each.used_at >= IDLE_S]
        self[:] = [each for each in self if each not in expired]
        self._timer = loop.call_later(IDLE_S, self._end_expired) if self else None
        for worker in expired:
            worker.end()

    def end_all(self) -> None:
        """Kill all processes of the list, and empty it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for worker in self:
            worker.end()
        self.clear()
