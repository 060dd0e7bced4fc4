# SPDX-License-Identifier: Apache-2.0
"""The load generator: keep-alive connections over plain sockets and epoll, in a separate process.

Imports the standard library only. Requests are prepared bytes; of a response only status and length are read. Each
connection has one request in flight. Loopback only.
"""

from __future__ import annotations

import gc
import ipaddress
import multiprocessing
import select
import socket
import time
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection as Pipe
    from types import TracebackType

RECEIVE_BYTES = 1 << 18
SILENCE_MAX_S = 60.0
"""Seconds without an answer after which a run fails."""
CHUNKED = -1
"""The length of a body that comes in chunks."""
LAST_CHUNK = b"\r\n0\r\n\r\n"
_CHECK_EVERY_S = 0.1


class LoadError(Exception):
    """A request was refused, or the server closed a connection or did not answer: the run is invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load. Connection k of n sends `requests[k::n]` in order, and repeats them unless `once`.

    Each connection first sends `warm` requests. Then it is measured for `seconds`, or until `count_max` requests are
    sent.
    """

    host: str
    port: int
    requests: tuple[bytes, ...]
    connections: int
    once: bool
    warm: int
    seconds: float
    count_max: int
    per_second: float | None = None
    """Maximum rate; with one connection only."""


def head_load(host: str, port: int, *, token: str, path: str) -> Load:
    """Return a load of two seconds that sends HEAD for a path over one connection."""
    head = f"HEAD {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    return Load(
        host=host,
        port=port,
        requests=(head.encode(),),
        connections=1,
        once=False,
        warm=20,
        seconds=2.0,
        count_max=10**9,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """The result: number of responses, wall seconds, latencies in milliseconds, mean bytes of a response."""

    count: int
    seconds: float
    p50_ms: float
    p99_ms: float
    bytes_mean: float


class Clock(Protocol):
    """A growing counter."""

    def look(self) -> int:
        """Read the counter."""
        ...


class _Connection:
    """A keep-alive connection and its position in its requests."""

    __slots__ = ("cursor", "end", "head", "left", "once", "requests", "sent_ns", "socket", "total_bytes")

    def __init__(self, load: Load, number: int) -> None:
        self.socket = socket.create_connection((load.host, load.port), timeout=SILENCE_MAX_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests = load.requests[number :: load.connections]
        self.once = load.once
        self.cursor = 0
        self.head = b""
        self.end = b""
        self.left = 0
        self.sent_ns = 0
        self.total_bytes = 0

    def send(self) -> bool:
        """Send the next request. Returns False if none is left."""
        if self.cursor == len(self.requests):
            if self.once or not self.requests:
                return False
            self.cursor = 0
        request = self.requests[self.cursor]
        self.cursor += 1
        self.sent_ns = time.perf_counter_ns()
        self.socket.sendall(request)
        return True

    def receive(self) -> bool:
        """Read available bytes. Returns whether the response is complete. Raises LoadError."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise LoadError(f"the server closed the connection after {self._request()}")
        self.total_bytes += len(data)
        if self.left == CHUNKED:
            return self._is_last_chunk(data)
        if self.left:
            self.left -= len(data)
            return self.left == 0
        self.head += data
        end = self.head.find(b"\r\n\r\n")
        if end < 0:
            return False
        size, body = self._body_bytes(end), self.head[end + 4 :]
        self.left = CHUNKED if size == CHUNKED else size - len(body)
        if self.head[9:10] != b"2":
            self._fail()
        self.head = b""
        return self._is_last_chunk(body) if size == CHUNKED else self.left == 0

    def _is_last_chunk(self, data: bytes) -> bool:
        """Return whether the body of an answer in chunks is complete; other bytes of it are not read."""
        self.end = (self.end + data)[-len(LAST_CHUNK) :]
        if self.end != LAST_CHUNK:
            return False
        self.left, self.end = 0, b""
        return True

    def _body_bytes(self, end: int) -> int:
        if self.requests[self.cursor - 1].startswith(b"HEAD ") or self.head[9:12] == b"204":
            return 0
        head = self.head[:end].lower() + b"\r\n"
        start = head.find(b"\r\ncontent-length:")
        if start < 0 and b"\r\ntransfer-encoding: chunked\r\n" in head:
            return CHUNKED
        if start < 0:
            raise LoadError(f"no content-length in the response to {self._request()}")
        return int(head[start + 17 : head.index(b"\r\n", start + 17)])

    def _fail(self) -> None:
        """Raise LoadError with the status and the beginning of the body."""
        while self.left > 0 and len(self.head) < 4096:
            more = self.socket.recv(RECEIVE_BYTES)
            if not more:
                break
            self.head += more
            self.left -= len(more)
        head, _, body = self.head.partition(b"\r\n\r\n")
        status = head.partition(b"\r\n")[0].decode("latin-1")
        raise LoadError(f"{status} for {self._request()}: {body[:600].decode(errors='replace')}")

    def _request(self) -> str:
        return self.requests[self.cursor - 1].partition(b"\r\n")[0].decode("latin-1")


class _Run:
    """All connections of a load."""

    def __init__(self, load: Load) -> None:
        if not ipaddress.ip_address(load.host).is_loopback:
            raise LoadError(f"{load.host} is not this machine: only loopback is loaded")
        self.load = load
        self.epoll = select.epoll()
        self.connections = {
            each.socket.fileno(): each for each in (_Connection(load, k) for k in range(load.connections))
        }
        for number in self.connections:
            self.epoll.register(number, select.EPOLLIN)

    def close(self) -> None:
        self.epoll.close()
        for connection in self.connections.values():
            connection.socket.close()

    def drive(self, goes_on: Callable[[_Connection], bool], latencies: array[int] | None) -> None:
        """Let all connections send while `goes_on` returns true, and receive all answers."""
        clock = time.perf_counter_ns
        flying = sum(goes_on(each) and each.send() for each in self.connections.values())
        while flying:
            ready = self.epoll.poll(SILENCE_MAX_S)
            if not ready:
                raise LoadError(f"no answer within {SILENCE_MAX_S:g} s")
            for number, _ in ready:
                connection = self.connections[number]
                if not connection.receive():
                    continue
                if latencies is not None:
                    latencies.append(clock() - connection.sent_ns)
                if not (goes_on(connection) and connection.send()):
                    flying -= 1

    def warm(self) -> None:
        left = dict.fromkeys(self.connections, self.load.warm)

        def goes_on(connection: _Connection) -> bool:
            number = connection.socket.fileno()
            left[number] -= 1
            return left[number] >= 0

        self.drive(goes_on, None)

    def measure(self) -> LoadResult:
        latencies = array("q")
        for connection in self.connections.values():
            connection.total_bytes = 0
        count_left = self.load.count_max
        started = time.perf_counter_ns()
        deadline = started + int(self.load.seconds * 1e9)

        pause_ns = 0 if self.load.per_second is None else int(1e9 / self.load.per_second)
        due = started

        def goes_on(_: _Connection) -> bool:
            nonlocal count_left, due
            if pause_ns:
                time.sleep(max(0, due - time.perf_counter_ns()) / 1e9)
                due += pause_ns
            count_left -= 1
            return count_left >= 0 and time.perf_counter_ns() < deadline

        self.drive(goes_on, latencies)
        seconds = (time.perf_counter_ns() - started) / 1e9
        if not latencies:
            raise LoadError("nothing was left to measure: the warm-up took all requests")
        ordered = sorted(latencies)
        total_bytes = sum(each.total_bytes for each in self.connections.values())
        return LoadResult(
            count=len(ordered),
            seconds=seconds,
            p50_ms=_at(ordered, 0.50) / 1e6,
            p99_ms=_at(ordered, 0.99) / 1e6,
            bytes_mean=total_bytes / len(ordered),
        )


def _at(ordered: list[int], share: float) -> int:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _serve(pipe: Pipe) -> None:
    """The generator's process: receive a load, warm up, measure on request, answer; None ends it."""
    while (load := cast("Load | None", pipe.recv())) is not None:
        gc.collect()
        gc.disable()
        run: _Run | None = None
        try:
            run = _Run(load)
            run.warm()
            pipe.send("ready")
            pipe.recv()
            pipe.send(run.measure())
        except (LoadError, OSError) as error:
            pipe.send(LoadError(str(error)))
        finally:
            if run is not None:
                run.close()
            gc.enable()


class Generator:
    """The benchmark's handle of the load generator's process."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.is_alive():
            self._pipe.send(None)
            self._process.join(5)
        if self._process.is_alive():
            self._process.terminate()

    def run(self, load: Load, clocks: Sequence[Clock]) -> tuple[LoadResult, tuple[int, ...]]:
        """Warm up and measure. Returns the result and the increase of each clock. Raises LoadError.

        Clocks are also read during the run, for threads that end in it.
        """
        self.warm(load)
        return self.run_warm(clocks)

    def run_warm(self, clocks: Sequence[Clock]) -> tuple[LoadResult, tuple[int, ...]]:
        """Measure a load that is already warm."""
        before = [clock.look() for clock in clocks]
        self.go()
        while not self._pipe.poll(_CHECK_EVERY_S):
            for clock in clocks:
                clock.look()
        answered = self.answered()
        return answered, tuple(clock.look() - was for clock, was in zip(clocks, before, strict=True))

    def warm(self, load: Load) -> None:
        """Connect and warm up. Raises LoadError."""
        self._pipe.send(load)
        self._take()

    def go(self) -> None:
        """Start to measure, without waiting for the end."""
        self._pipe.send("go")

    def answered(self) -> LoadResult:
        """Wait for the result. Raises LoadError."""
        answered = self._take()
        assert isinstance(answered, LoadResult)
        return answered

    def _take(self) -> object:
        try:
            message: object = self._pipe.recv()
        except EOFError:
            raise LoadError("the load generator's process ended") from None
        if isinstance(message, LoadError):
            raise message
        return message
