# SPDX-License-Identifier: Apache-2.0
"""Supervisor of several serving processes at one address: starts, watches, restarts and stops them.

The supervisor serves nothing, opens no database and has one thread, so it may fork; workers share its imported modules.
Each worker has its own listening socket, and the supervisor holds all of them. While a worker restarts, new connections
to its socket wait in the kernel's backlog.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from limnos.app.certificates import CertificateReloader
from limnos.app.serving import BEAT_S, leaves_within_s, serve
from limnos.config.loading import LoadedSettings
from limnos.telemetry import worker as identity
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Gauge

log = get_logger("limnos.workers")
SHORT_LIFE_S = 10.0
DELAY_S = 0.1
DELAY_S_MAX = 30.0
BEATS_MISSED_MAX = 10
"""Missed heartbeats after which a serving worker counts as hung.

They are counted while the supervisor is running, one a second, so a pause of the whole machine does not count.
"""
STARTS = Gauge(
    "limnos_worker_starts",
    "Starts of this worker's process, by the reason why the previous one ended.",
    ("reason",),
)
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


@dataclass(slots=True, kw_only=True)
class ServingProcess:
    """One serving process, with its heartbeats and the time of its next start."""

    number: int
    sockets: list[socket.socket]
    pid: int = 0
    started_at: float = 0.0
    due_at: float | None = 0.0
    early_ends: int = 0
    is_serving: bool = False
    missed: int = 0
    """Heartbeats missed since the last one."""
    starts: dict[str, int] = field(default_factory=lambda: {"first": 0, "died": 0, "hung": 0})
    ended: str = "first"
    """The reason under which the next start is counted: `first`, `died` or `hung`."""


@dataclass(slots=True, kw_only=True)
class Supervisor:
    """Supervises the workers. `run` returns the exit code when all workers have ended."""

    loaded: LoadedSettings
    sockets: Sequence[list[socket.socket]]
    announce: Callable[[], None]
    certificates: CertificateReloader | None = None
    workers: list[ServingProcess] = field(default_factory=list)
    stopping_until: float | None = None
    announced: bool = False
    code: int = 0
    _counted_at: float = 0.0
    _ready: tuple[int, int] = (-1, -1)
    _lifeline_pipe: tuple[int, int] = (-1, -1)
    _wake: tuple[int, int] = (-1, -1)

    def run(self) -> int:
        """Start the first worker, which fills an empty store, then the others; supervise them until a signal."""
        self._ready, self._lifeline_pipe, self._wake = os.pipe(), os.pipe(), os.pipe()
        for end in (*self._ready, *self._wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self.stop())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.workers = [
            ServingProcess(number=number, sockets=each) for number, each in enumerate(self.sockets, start=1)
        ]
        while self._goes_on():
            self._start_due()
            self._wait()
            self._take_beats()
            self._reap_dead()
            self._end_hung()
        return self.code

    def stop(self) -> None:
        """Close the listening sockets, and signal all workers to stop. Each ends within its drain time."""
        now = time.monotonic()
        if self.stopping_until is None:
            self.stopping_until = now + leaves_within_s(self.loaded.settings.server.drain_timeout_s)
            for each in self.workers:
                for one in each.sockets:
                    one.close()
        self._signal(signal.SIGTERM)

    def _goes_on(self) -> bool:
        if self.stopping_until is None:
            return True
        if time.monotonic() > self.stopping_until:
            self._signal(signal.SIGKILL)
        return any(each.pid for each in self.workers)

    def _signal(self, which: signal.Signals) -> None:
        for each in self.workers:
            if each.pid:
                with suppress(ProcessLookupError):
                    os.kill(each.pid, which)

    def _due(self) -> list[ServingProcess]:
        """Return the workers that have a time to start; until the first worker serves, only that worker."""
        if self.stopping_until is not None:
            return []
        startable = self.workers if self.workers[0].is_serving or self.announced else self.workers[:1]
        return [each for each in startable if each.due_at is not None]

    def _start_due(self) -> None:
        now = time.monotonic()
        for each in self._due():
            if (each.due_at or 0.0) <= now:
                self._start(each)

    def _start(self, worker: ServingProcess) -> None:
        worker.starts[worker.ended] += 1
        worker.ended = "died"
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            self._serve_in_child(worker)
        worker.pid, worker.started_at, worker.due_at = pid, time.monotonic(), None
        log.info("worker started", worker=worker.number, pid=pid)

    def _serve_in_child(self, worker: ServingProcess) -> NoReturn:
        """Serve as a worker, in the forked child process. Never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for name in _SIGNALS:
                signal.signal(name, signal.SIG_DFL)
            for end in (self._lifeline_pipe[1], self._ready[0], *self._wake):
                os.close(end)
            for each in self.workers:
                if each is not worker:
                    for one in each.sockets:
                        one.close()
            identity.set_worker_number(worker.number)
            for reason, count in worker.starts.items():
                STARTS[(reason,)] = count
            serve(
                self.loaded,
                worker.sockets,
                lambda: self._beat(worker),
                lifeline=self._lifeline_pipe[0],
                beats=True,
                certificates=self.certificates,
            )
            code = 0
        except BaseException:
            log.exception("worker failed", worker=worker.number)
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _beat(self, worker: ServingProcess) -> None:
        """Send a heartbeat to the supervisor; called in a worker's process."""
        with suppress(BlockingIOError):  # the pipe is full, so another heartbeat adds nothing
            os.write(self._ready[1], bytes([worker.number]))

    def _wait(self) -> None:
        """Wait for a signal, a heartbeat, or the time of the next restart."""
        times = [each.due_at or 0.0 for each in self._due()]
        if self.stopping_until is not None:
            times = [self.stopping_until]
        timeout = min(BEAT_S, max(0.0, min(times) - time.monotonic()) + 0.01) if times else BEAT_S
        readable, _, _ = select.select([self._ready[0], self._wake[0]], [], [], timeout)
        if self._wake[0] in readable:
            with suppress(BlockingIOError):
                os.read(self._wake[0], 4096)

    def _take_beats(self) -> None:
        """Read heartbeats from the pipe. Each second adds a missed heartbeat to every worker, and a heartbeat resets
        the count.
        """
        now = time.monotonic()
        if now - self._counted_at >= BEAT_S:
            self._counted_at = now
            for each in self.workers:
                each.missed += 1
        try:
            numbers = os.read(self._ready[0], 4096)
        except BlockingIOError:
            return
        for number in numbers:
            self.workers[number - 1].is_serving = True
            self.workers[number - 1].missed = 0
        if not self.announced and all(each.is_serving for each in self.workers):
            self.announced = True
            self.announce()

    def _reap_dead(self) -> None:
        for each in self.workers:
            if each.pid:
                with suppress(ChildProcessError):
                    pid, status = os.waitpid(each.pid, os.WNOHANG)
                    if pid:
                        self._schedule_restart(each, os.waitstatus_to_exitcode(status))

    def _end_hung(self) -> None:
        """Kill workers that have stopped sending heartbeats. They are then restarted like dead workers."""
        for each in self.workers:
            if self.stopping_until is None and each.pid and each.is_serving and each.missed > BEATS_MISSED_MAX:
                each.ended = "hung"
                log.error("worker hangs and is killed", worker=each.number, pid=each.pid, silent_s=each.missed * BEAT_S)
                with suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)
                each.missed = 0

    def _schedule_restart(self, worker: ServingProcess, code: int) -> None:
        """Schedule the restart of a dead worker, with exponential backoff if it dies soon after each start.

        If the worker never served and the server is not ready yet, stop all workers.
        """
        now = time.monotonic()
        began, worker.pid, worker.is_serving, worker.missed = worker.is_serving, 0, False, 0
        if self.stopping_until is not None:
            return
        if not self.announced and not began:
            log.error("worker could not start: stopping", worker=worker.number, code=code)
            self.code = code if code > 0 else 1
            self.stop()
            return
        worker.early_ends = worker.early_ends + 1 if now - worker.started_at < SHORT_LIFE_S else 0
        delay = min(DELAY_S * 2**worker.early_ends, DELAY_S_MAX) if worker.early_ends else 0.0
        worker.due_at = now + delay
        log.warning("worker died and is restarted", worker=worker.number, code=code, in_s=delay)
