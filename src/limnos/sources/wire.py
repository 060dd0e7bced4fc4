# SPDX-License-Identifier: Apache-2.0
"""The worker's end of the connection between a server and its worker process: each request message gets one response
message.

Must not know the work. A message is a count of parts (4 bytes, big-endian), then each part with its length (8 bytes).
Standard input is a socket to the server; the process ends when the server closes it, even in the middle of work.

A body follows its request in `MORE` messages up to `COMPLETE`, or up to `CUT` if its sender has disconnected. The
chunks of a streamed response are `MORE` messages before the final message.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

COUNT = struct.Struct(">I")
LENGTH = struct.Struct(">Q")
MORE: Final = b"more"
COMPLETE: Final = b"complete"
"""The message that marks a body as complete. If the wire is closed without it, the body is incomplete."""
CUT: Final = b"cut"
CALL: Final = b"call"
"""The message for a callback: a request to the server during the processing of a request."""
DONE: Final = b"done"
_DIE_WITH_PARENT: Final = 1
"""Linux's PR_SET_PDEATHSIG."""


def pack(parts: list[bytes]) -> bytes:
    """Encode a message: the number of its parts, then each part with its length."""
    framed = [COUNT.pack(len(parts))]
    for part in parts:
        framed += (LENGTH.pack(len(part)), part)
    return b"".join(framed)


class Wire:
    """Sends and receives length-prefixed messages over the socket to the server, which is standard input."""

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=0)
        self._socket.setblocking(True)

    def send(self, parts: list[bytes]) -> None:
        """Send a message; blocks until the server receives it."""
        self._socket.sendall(pack(parts))

    def receive(self) -> list[bytes]:
        """Wait for a message. Ends the process if the server closes the socket."""
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
    """Answer each request message with the result of `work` until the server closes the socket, which ends the
    process.
    """
    serve_on(lambda wire: wire.send(work(wire.receive())))


def serve_on(answer: Callable[[Wire], None]) -> None:
    """Call `answer` with the wire repeatedly until the server closes the socket, which ends the process."""
    wire = Wire()
    threading.Thread(target=_leave_when_alone, daemon=True).start()
    while True:
        answer(wire)


def die_with_parent() -> None:
    """Set the parent-death signal, so that Linux kills this process when its parent ends."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def _leave_when_alone() -> None:
    poll = select.poll()
    poll.register(0, select.POLLHUP if not hasattr(select, "POLLRDHUP") else select.POLLHUP | select.POLLRDHUP)
    poll.poll()
    os._exit(0)
