"""The other end of a process that does work for a server: one message in, one message out, until nobody is there.

May import the standard library alone, so that a process starts in a blink. Knows no work. A message is a count of parts, then each
with its length; standard input is a socket to who started the process, and it ends when that is gone, also in the middle of work.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = struct.Struct(">I")
LENGTH = struct.Struct(">Q")


def pack(parts: list[bytes]) -> bytes:
    """Put a message together."""
    framed = [COUNT.pack(len(parts))]
    for part in parts:
        framed += (LENGTH.pack(len(part)), part)
    return b"".join(framed)


def serve(work: Callable[[list[bytes]], list[bytes]]) -> None:
    """Answer one message after another until the other side hangs up, which ends the process."""
    wire = socket.socket(fileno=0)
    wire.setblocking(True)
    threading.Thread(target=_leave_when_alone, daemon=True).start()
    while True:
        wire.sendall(pack(work(_receive(wire))))


def _receive(wire: socket.socket) -> list[bytes]:
    (count,) = COUNT.unpack(_exactly(wire, COUNT.size))
    return [_exactly(wire, LENGTH.unpack(_exactly(wire, LENGTH.size))[0]) for _ in range(count)]


def _exactly(wire: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        received = wire.recv_into(view[got:])
        if received == 0:
            os._exit(0)
        got += received
    return bytes(data)


def _leave_when_alone() -> None:
    poll = select.poll()
    poll.register(0, select.POLLHUP if not hasattr(select, "POLLRDHUP") else select.POLLHUP | select.POLLRDHUP)
    poll.poll()
    os._exit(0)
