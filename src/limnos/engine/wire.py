"""The wire between a server and its engine: frames on sockets, one socket for each job.

May import the standard library and msgspec. Must not know jobs' insides. The engine's standard input is the control socket: over it come the
sockets of jobs, as descriptors, and its end is the engine's end. On a job's socket the server sends one frame with the job; the engine answers
with frames of rows and one that closes. Whoever shuts the job's socket for writing cancels the job. A frame is its kind, its length, its bytes.
"""

from __future__ import annotations

import socket
import struct
from typing import Final, Literal

from msgspec import Struct

HEAD: Final = struct.Struct(">cI")
FRAME_BYTES_MAX: Final = 64 << 20
"""Nobody sends more in one frame; who is told so reads no further."""

Kind = Literal[b"J", b"R", b"D", b"E", b"P"]
JOB: Final = b"J"
ROWS: Final = b"R"
"""Lines of JSON, each with its end of line."""
DONE: Final = b"D"
FAILED: Final = b"E"
PING: Final = b"P"
"""Asks whether anybody is there; answered with DONE when Spark can be used."""


class JobFailure(Struct, frozen=True):
    """Why a job was refused: an error of SQL++ by its number and message, and the place in the statement."""

    number: int
    message: str
    line: int | None = None
    column: int | None = None
    told: bool = False
    again: bool = False
    """The same statement may well succeed when it is sent again."""
    duplicate: bool = False
    """It is `DuplicateKey`, whose message is the key."""
    unknown: bool = False
    """It is `OutcomeUnknown`: perhaps the statement was carried out."""
    failed: bool = False
    """It is `EngineFailed`: nothing that the statement says is the cause."""
    retry_after_s: int = 1


class EngineStart(Struct, frozen=True):
    """What an engine is told before its first job."""

    uri: str
    metalake: str
    master: str
    memory: str
    slots: int
    statements_max: int
    scratch: str
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    closed: tuple[str, ...]
    """Directories that it must not see, whatever lies around them."""
    jars: tuple[str, ...] = ()
    """The archives for Spark, fetched already; none: the engine looks for them and for a Java itself."""
    java_home: str = ""
    java_runtime: str = ""
    """Where the files of that Java lie, when `java_home` has a launcher alone."""


def encode_frame(kind: bytes, body: bytes = b"") -> bytes:
    """A frame."""
    return HEAD.pack(kind, len(body)) + body


def read_exactly(wire: socket.socket, size: int) -> bytes:
    """So many bytes. Raises ConnectionResetError when the other side ends before."""
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        count = wire.recv_into(view[got:])
        if count == 0:
            raise ConnectionResetError("The other side has gone")
        got += count
    return bytes(data)


def receive(wire: socket.socket) -> tuple[bytes, bytes]:
    """One frame. Raises ConnectionResetError; ValueError for one that is too long."""
    kind, size = HEAD.unpack(read_exactly(wire, HEAD.size))
    if size > FRAME_BYTES_MAX:
        raise ValueError(f"A frame of {size} bytes is more than anybody sends")
    return kind, read_exactly(wire, size)
