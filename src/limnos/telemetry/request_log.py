# SPDX-License-Identifier: Apache-2.0
"""The request log: one line for each answered request, on standard error among the other log lines.

Must not know requests: an entry is a plain tuple. For speed a request only appends its tuple; the entries of 50 ms are
formatted and written together. Writing never waits for a reader of a full pipe: up to `LINES_MAX` lines are buffered;
further lines are dropped and counted.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import time
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, TextIO, cast

import msgspec

from limnos.telemetry import worker
from limnos.telemetry.metrics import Counter

LoggedRequests = Literal["all", "refusals", "none"]

FLUSH_S: Final = 0.05
RETRY_S: Final = 0.25
LINES_MAX: Final = 20_000
"""The maximum number of lines that wait to be written."""
PIECE_BYTES: Final = 4_096
"""The maximum number of bytes that a writable pipe takes at once without blocking."""
TEXT_MAX: Final = 300
"""The maximum number of characters of a path or reason that are logged."""
LINES_LOST = Counter("limnos_request_lines_lost_total", "Lines of the request log that could not be written.", ())


class RequestLogEntry(NamedTuple):
    """The log entry of one request. `ended` is a value of `time.perf_counter()`."""

    ended: float
    seconds: float
    request_id: str
    method: str
    path: bytes
    operation: str
    status: int
    user: str | None
    client: str
    bytes: int
    reason: str


class _RequestLogLine(msgspec.Struct, omit_defaults=True, gc=False, kw_only=True):
    request_id: str
    method: str
    operation: str
    path: str
    status: int
    user: str | None
    client: str
    duration_ms: float
    bytes: int
    event: str = msgspec.field()
    logger: str = msgspec.field()
    level: str = msgspec.field()
    timestamp: str = msgspec.field()
    reason: str = ""
    worker: int | None = None


_encode_lines = msgspec.json.Encoder().encode_lines


class RequestLog:
    """Buffers entries and writes them to a stream, as JSON lines or for a terminal."""

    def __init__(self, stream: TextIO, *, json: bool, mode: LoggedRequests = "all", sample: float = 1.0) -> None:
        self._stream = stream
        self._json = json
        self._wanted = mode
        self._sample = sample
        self._takes_all = mode == "all" and sample >= 1.0
        self._due = 0.0
        self._entries: list[tuple[object, ...]] = []
        self._encoded_lines: deque[bytes] = deque()
        self._lost = 0
        self._flushing = False

    def add(self, entry: tuple[object, ...]) -> None:
        """Add an entry if the settings include its request; the fields are those of `RequestLogEntry` in order.

        `sample` applies only to requests that succeeded. Must be called in an event loop, which writes the entry within
        50 ms.
        """
        if not self._takes_all and not self._takes(cast("int", entry[6])):
            return
        if len(self._entries) + len(self._encoded_lines) >= LINES_MAX:
            self._count_lost(1)
            return
        self._entries.append(entry)
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_later(FLUSH_S, self._flush_again)

    def _takes(self, status: int) -> bool:
        if status >= 400:
            return self._wanted != "none"
        if self._wanted != "all":
            return False
        self._due += self._sample
        if self._due < 1.0:
            return False
        self._due -= 1.0
        return True

    def flush(self) -> None:
        """Write the buffered lines, as far as the stream accepts them without blocking."""
        entries, self._entries = self._entries, []
        if entries:
            self._encoded_lines.extend(self._encode_entries(entries))
        if self._lost and len(self._encoded_lines) < LINES_MAX:
            self._encoded_lines.append(_lost_line(self._lost, json=self._json))
            self._lost = 0
        self._write()

    def _flush_again(self) -> None:
        self._flushing = False  # first: after an error, the next entry starts a timer again
        self.flush()
        self._flushing = bool(self._encoded_lines)
        if self._flushing:
            asyncio.get_running_loop().call_later(RETRY_S, self._flush_again)

    def _count_lost(self, lines: int) -> None:
        self._lost += lines
        LINES_LOST[()] += lines

    # -- spelling ----------------------------------------------------------------------------------------------

    def _encode_entries(self, entries: Sequence[tuple[object, ...]]) -> Iterable[bytes]:
        offset = time.time() - time.perf_counter()
        lines = [_line(entry, offset) for entry in cast("Sequence[RequestLogEntry]", entries)]
        if self._json:
            return [line for line in _encode_lines(lines).splitlines(keepends=True) if len(line) <= PIECE_BYTES]
        return [text[: PIECE_BYTES // 4].encode("utf-8", "replace") + b"\n" for text in map(_console_text, lines)]

    # -- writing -----------------------------------------------------------------------------------------------

    def _write(self) -> None:
        try:
            self._write_to(self._stream.fileno())
        except (ValueError, OSError):  # the stream has no file descriptor or is closed
            self._write_text()

    def _write_to(self, descriptor: int) -> None:
        patient = stat.S_ISREG(os.fstat(descriptor).st_mode)
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        while self._encoded_lines and (patient or _takes(poll)):
            piece = self._piece(PIECE_BYTES if not patient else 1 << 20)
            os.write(descriptor, piece)

    def _piece(self, size: int) -> bytes:
        """Remove and return as many whole lines from the buffer as fit into `size` bytes.

        A write of at most PIECE_BYTES is atomic: output of other processes cannot split it.
        """
        lines, unwritten = [self._encoded_lines.popleft()], self._encoded_lines
        total = len(lines[0])
        while unwritten and total + len(unwritten[0]) <= size:
            total += len(unwritten[0])
            lines.append(unwritten.popleft())
        return b"".join(lines)

    def _write_text(self) -> None:
        lines = list(self._encoded_lines)
        self._encoded_lines.clear()
        try:
            self._stream.write(b"".join(lines).decode())
        except (ValueError, OSError):
            LINES_LOST[()] += len(lines)


def _takes(poll: select.poll) -> bool:
    return any(state & select.POLLOUT and not state & select.POLLERR for _, state in poll.poll(0))


def _line(entry: RequestLogEntry, offset: float) -> _RequestLogLine:
    ended_at, seconds, request_id, method, path, operation, status, user, client, size, reason = entry
    return _RequestLogLine(
        request_id=request_id,
        method=method,
        operation=operation,
        path=path[:TEXT_MAX].decode("latin-1"),
        status=status,
        user=user,
        client=client,
        duration_ms=int(seconds * 1e6) / 1e3,
        bytes=size,
        event="request",
        logger="limnos.request",
        level="info",
        timestamp=_instant(ended_at + offset),
        reason=reason and reason.partition("\n")[0][:TEXT_MAX],
        worker=worker.number,
    )


def _instant(seconds: float) -> str:
    """Format a Unix time in the timestamp format of the other log lines."""
    whole_seconds = int(seconds)
    return "%s.%06dZ" % (_seconds.get(whole_seconds) or _format_second(whole_seconds), (seconds - whole_seconds) * 1e6)  # noqa: UP031 - cheaper by a quarter


_seconds: dict[int, str] = {}


def _format_second(whole: int) -> str:
    _seconds.clear()
    result = _seconds[whole] = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return result


def _console_text(line: _RequestLogLine) -> str:
    """Format an entry as one line for a terminal: the time, then `key=value` fields."""
    fields = {
        "method": line.method,
        "operation": line.operation,
        "path": line.path,
        "status": line.status,
        "user": line.user or "-",
        "client": line.client,
        "duration_ms": line.duration_ms,
        "bytes": line.bytes,
        "request_id": line.request_id,
    }
    reason = f" reason={line.reason!r}" if line.reason else ""
    return (
        f"{line.timestamp} [info     ] request "
        + " ".join(f"{key}={_plain(each)}" for key, each in fields.items())
        + reason
    )


def _plain(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text else repr(text)


def _lost_line(lines: int, *, json: bool) -> bytes:
    fields = {
        "lines": lines,
        "event": "lines of the request log were lost",
        "logger": "limnos.request",
        "level": "warning",
    }
    stamped = {**fields, "timestamp": _instant(time.time())}
    return (msgspec.json.encode(stamped) if json else str(stamped).encode()) + b"\n"
