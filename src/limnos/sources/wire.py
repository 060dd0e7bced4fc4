"""The other end of a process that does work for a server: one message in, one message out, until nobody is there.

May import the standard library alone, so that a process starts in a blink. Knows no work. A message is a count of parts, then each
with its length; standard input is a socket to who started the process, and it ends when that is gone, also in the middle of work.
Between the two messages there may be more: what a question is fed with (`MORE`, to its end, `COMPLETE`, or to where it was `CUT`), and
pieces of an answer (`MORE`) before the last message.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = struct.Struct(">I")
LENGTH = struct.Struct(">Q")
MORE: Final = b"more"
COMPLETE: Final = b"complete"
"""All that belongs to a question has come. Nothing else says so: a wire that just ends was cut."""
CUT: Final = b"cut"
CALL: Final = b"call"
"""Not an answer yet: something is asked back first."""
DONE: Final = b"done"
_DIE_WITH_PARENT: Final = 1
"""PR_SET_PDEATHSIG of Linux."""


def pack(parts: list[bytes]) -> bytes:
    """Put a message together."""
    framed = [COUNT.pack(len(parts))]
    for part in parts:
        framed += (LENGTH.pack(len(part)), part)
    return b"".join(framed)


class Wire:
    """The socket to who started this process."""

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=0)
        self._socket.setblocking(True)

    def send(self, parts: list[bytes]) -> None:
        """Send a message; waits while the other side does not take it."""
        self._socket.sendall(pack(parts))

    def receive(self) -> list[bytes]:
        """Wait for a message. Ends the process when nobody is there any more."""
        (count,) = COUNT.unpack(self._exactly(COUNT.size))
        return [self._exactly(LENGTH.unpack(self._exactly(LENGTH.size))[0]) for _ in range(count)]

    def _exactly(self, size: int) -> bytes:
        chunks, left = [], size
        while left:
            chunk = self._socket.recv(left, socket.MSG_WAITALL)
            if not chunk:
                os._exit(0)
            chunks.append(chunk)
            left -= len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def serve(work: Callable[[list[bytes]], list[bytes]]) -> None:
    """Answer one message after another until the other side hangs up, which ends the process."""
    serve_on(lambda wire: wire.send(work(wire.receive())))


def serve_on(answer: Callable[[Wire], None]) -> None:
    """Have one question after another answered by who reads it from the wire, until the other side hangs up."""
    wire = Wire()
    threading.Thread(target=_leave_when_alone, daemon=True).start()
    while True:
        answer(wire)


def die_with_parent() -> None:
    """Have the system end this process with the one that started it, whatever it is at."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def _leave_when_alone() -> None:
    poll = select.poll()
    poll.register(0, select.POLLHUP if not hasattr(select, "POLLRDHUP") else select.POLLHUP | select.POLLRDHUP)
    poll.poll()
    os._exit(0)
