"""A process that does chores: `python -m limnos.app.chore`, standard input is a socket to who started it.

May import `formats`, `model` and the standard library, so that it starts in a blink and holds no secret. A message is a
count of parts, then each with its length. The process ends when the other side is gone, also in the middle of a chore.
"""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import struct
import threading
from contextlib import suppress

from limnos.formats.iceberg.chores import CHORES
from limnos.model.errors import LimnosError

MEMORY_BYTES_MAX = 4 << 30
COUNT = struct.Struct(">I")
LENGTH = struct.Struct(">Q")


def pack(parts: list[bytes]) -> bytes:
    """Put a message together."""
    framed = [COUNT.pack(len(parts))]
    for part in parts:
        framed += (LENGTH.pack(len(part)), part)
    return b"".join(framed)


def main() -> None:
    """Do one chore after another until the other side hangs up."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    with suppress(OSError):
        os.nice(5)  # requests that take microseconds go first
    wire = socket.socket(fileno=0)
    wire.setblocking(True)
    threading.Thread(target=_leave_when_alone, daemon=True).start()
    while True:
        name, *parts = _receive(wire)
        wire.sendall(pack(_done(name.decode(), parts)))


def _done(name: str, parts: list[bytes]) -> list[bytes]:
    try:
        return [b"done", *CHORES[name](*parts)]
    except LimnosError as error:
        return [b"refused", error.code.encode(), error.message.encode(errors="replace")]
    except RecursionError:
        return [b"refused", b"bad-request", b"The JSON is nested too deeply; make it flatter"]
    except MemoryError:
        return [b"refused", b"bad-request", b"This takes more memory than a request may have; make it smaller"]
    except Exception as error:  # noqa: BLE001 - told to whoever asked, who logs it
        return [b"failed", json.dumps(f"{type(error).__name__}: {error}").encode()]


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


if __name__ == "__main__":
    main()
