# SPDX-License-Identifier: Apache-2.0
"""Latency of HEAD requests beside other work: a process of its own sends one every 10 ms over one connection.

Linux only. Imports the standard library only. A process that has the CPU measures without waiting for the interpreter's
lock of a busy client. `waited_s` is the time for which the server's first thread could have run and had no CPU: what
other processes take from it, and no request of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import statistics
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

EVERY_S: Final = 0.01
PROBE_NICE: Final = -11
SILENCE_S: Final = 60.0
_END: Final = b"\r\n\r\n"


class ProbedTable(NamedTuple):
    """The table whose existence is asked for, and the process of the server."""

    host: str
    port: int
    path: str
    token: str
    pid: int


def _measure(pipe: Connection, probed: ProbedTable) -> None:
    """Send requests until the pipe has a message, then send the latencies in milliseconds."""
    os.setsid()
    with suppress(PermissionError):  # without the privilege the probe may wait for a CPU itself
        prefer([os.getpid()], nice=PROBE_NICE)
    request = f"HEAD {probed.path} HTTP/1.1\r\nHost: {probed.host}\r\nAuthorization: Bearer {probed.token}\r\n\r\n"
    times_ms: list[float] = []
    with socket.create_connection((probed.host, probed.port), SILENCE_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pipe.send("ready")
        due = time.perf_counter()
        while not pipe.poll(max(0.0, due - time.perf_counter())):
            began = time.perf_counter()
            connection.sendall(request.encode())
            head = b""
            while _END not in head:
                piece = connection.recv(1 << 16)
                if not piece:
                    raise ConnectionError("the server closed the connection")
                head += piece
            if not head.startswith(b"HTTP/1.1 2"):
                raise ConnectionError(head.partition(b"\r\n")[0].decode("latin-1"))
            times_ms.append((time.perf_counter() - began) * 1000)
            due = max(due + EVERY_S, time.perf_counter())
    pipe.send(times_ms)


def _run_delay_s(pid: int) -> float:
    """Return the time for which a process's first thread waited for a CPU, in seconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


class HeadProbe:
    """Sends HEAD requests of a table during the body of a `with`, and keeps their latencies."""

    def __init__(self, probed: ProbedTable) -> None:
        self.times_ms: list[float] = []
        self.waited_s = 0.0
        self.seconds = 0.0
        self._pid = probed.pid
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_measure, args=(theirs, probed), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def __enter__(self) -> Self:
        self._began, self._delay_s = time.perf_counter(), _run_delay_s(self._pid)
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began
        self.waited_s = _run_delay_s(self._pid) - self._delay_s
        self._pipe.send("end")
        self.times_ms = self._pipe.recv()
        self._process.join()

    @property
    def p99_ms(self) -> float:
        """The latency that one request in a hundred exceeds; 0 for too few requests."""
        return statistics.quantiles(self.times_ms, n=100)[98] if len(self.times_ms) > 1 else 0.0

    def text(self) -> str:
        """Return the figures: median, p99 and maximum, and the server's wait for a CPU."""
        if len(self.times_ms) < 2:
            return "too few requests"
        share = self.waited_s / max(self.seconds, 1e-9)
        return (
            f"p50 {statistics.median(self.times_ms):.1f} ms, p99 {self.p99_ms:.1f} ms, maximum"
            f" {max(self.times_ms):.1f} ms; the server waited {share:.0%} of the time for a CPU"
        )


def prefer(pids: Sequence[int], *, nice: int) -> None:
    """Set the priority of processes that lead a session of their own; a lower number is served first, and needs a
    privilege. Kernels that group processes by session compare the sessions first.
    """
    for pid in pids:
        group = Path(f"/proc/{pid}/autogroup")
        if group.exists():
            group.write_text(str(nice))
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), nice)
