# SPDX-License-Identifier: Apache-2.0
"""The wire protocol between a server and its engine: frames on sockets, one socket for each job.

Must not know the content of jobs.

The engine's standard input is the control socket. The server sends the sockets of jobs over it as descriptors, and the
engine ends when the control socket closes. On a job's socket the server sends one frame with the job. The engine
answers with frames of rows and one closing frame. The server cancels a job by shutting its socket for writing. A frame
has a kind (1 byte), a length (4 bytes, big-endian) and a body.
"""

from __future__ import annotations

import socket
import struct
from typing import Final, Literal

from msgspec import Struct

HEAD: Final = struct.Struct(">cI")
FRAME_BYTES_MAX: Final = 64 << 20
"""The maximum size of a frame's body in bytes. Longer frames are rejected."""

LINE_BYTES_MAX: Final = 32 << 20
"""The maximum size of one result in bytes: the server has a frame of each running statement in memory."""

Kind = Literal[b"J", b"R", b"D", b"E", b"P"]
JOB: Final = b"J"
ROWS: Final = b"R"
"""The body is lines of JSON, each with its line end."""
DONE: Final = b"D"
"""The body is the warnings of the job, or empty."""
FAILED: Final = b"E"
PING: Final = b"P"
"""Requests that the engine start and warm up Spark; answered with DONE when Spark has run a first job."""


class JobFailure(Struct, frozen=True, kw_only=True):
    """The failure of a job: a SQL++ error, its position in the statement, and flags for its class and for a retry."""

    number: int
    message: str
    line: int | None = None
    column: int | None = None
    has_position: bool = False
    again: bool = False
    """Whether the same statement may succeed on a retry."""
    duplicate: bool = False
    """The error is `DuplicateKey`; the message is the key."""
    unknown: bool = False
    """The error is `OutcomeUnknown`: the statement may have been executed."""
    failed: bool = False
    """The error is `EngineFailed`: the statement is not its cause."""
    retry_after_s: int = 1
    moved: bool = False
    """The error is `SnapshotMoved`: the server checks the tables again and repeats the job."""
    replaces: bool = False
    """Whether later jobs of this engine would fail too, so that the server replaces it behind its running jobs."""


class EngineStart(Struct, frozen=True, kw_only=True):
    """The configuration that an engine receives before its first job."""

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
    """Directories that are closed to the engine, even within `readable` directories."""
    config: dict[str, str] = {}
    """Further settings of Spark."""
    executor_wait_s: float = 60.0
    """The maximum time that a statement waits for an executor of a cluster."""
    jars: tuple[str, ...] = ()
    """Archives for Spark that are already on disk. If empty, the engine finds them and a Java itself."""
    java_home: str = ""
    java_runtime: str = ""
    """Directory of the Java runtime's files, if `java_home` has only a launcher."""


def encode_frame(kind: bytes, body: bytes = b"") -> bytes:
    """Encode a frame from its kind (such as `JOB` or `ROWS`) and a body."""
    return HEAD.pack(kind, len(body)) + body


def read_exactly(wire: socket.socket, size: int) -> bytes:
    """Read exactly `size` bytes. Raises ConnectionResetError if the peer closes the connection first."""
    data = bytearray(size)
    view, number = memoryview(data), 0
    while number < size:
        count = wire.recv_into(view[number:])
        if count == 0:
            raise ConnectionResetError("The peer has closed the connection")
        number += count
    return bytes(data)


def receive(wire: socket.socket) -> tuple[bytes, bytes]:
    """Read one frame and return its kind and body.

    Raises ConnectionResetError if the peer closes the connection, ValueError if the frame is too long.
    """
    kind, size = HEAD.unpack(read_exactly(wire, HEAD.size))
    if size > FRAME_BYTES_MAX:
        raise ValueError(f"A frame of {size} bytes exceeds the limit")
    return kind, read_exactly(wire, size)
