# SPDX-License-Identifier: Apache-2.0
"""Messages between a command and the helper process.

A message is a header of twelve bytes (`LMNH`, version, kind, two zero bytes, length) and a MessagePack document. A
command sends one `Request`, then only empty `INTERRUPT` and `TERMINATE` messages; the helper sends `ACCEPTED`,
`WAITING` and `ALIVE`, and at last one `DONE`, `STALE` or `FAILED`. Must not know commands.
"""

from __future__ import annotations

import array
import enum
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

T = TypeVar("T")

VERSION = 1
LENGTH_MAX = 64 * 1024 * 1024
"""The longest message in bytes; a longer answer is not sent, and the command does the work itself."""
_REQUEST_MAX = 4 * 1024 * 1024
_HEADER = struct.Struct("!4sBBHI")
_MAGIC = b"LMNH"
_DESCRIPTORS = 3


class ProtocolError(Exception):
    """Raised for a message of another version, form or length, or a connection that ended within a message."""


class Kind(enum.IntEnum):
    """The type of a message."""

    REQUEST = 1
    ACCEPTED = 2
    WAITING = 3
    ALIVE = 4
    DONE = 5
    STALE = 6
    FAILED = 7
    INTERRUPT = 8
    TERMINATE = 9


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A command line, and all that its answer depends on besides files and servers.

    Words are the system's bytes, which may be no text.
    """

    fingerprint: str
    """The code and the packages of the asking process."""
    tokens: tuple[bytes, ...]
    argv: tuple[bytes, ...]
    search_path: tuple[bytes, ...]
    environment: tuple[tuple[bytes, bytes], ...]
    umask: int
    is_terminal: tuple[bool, bool] = (False, False)
    """Whether standard output and standard error are terminals."""
    columns: int | None = None
    """The width of the terminal."""
    lines: int | None = None
    is_live: bool = False
    """Whether the message has the three standard streams, to which the command writes at once."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a command: its exit code and its output. The output of a live command is empty."""

    exit_code: int
    output: bytes = b""
    errors: bytes = b""


def encode_words(words: Iterable[str]) -> tuple[bytes, ...]:
    """Return words as the system's bytes."""
    return tuple(map(os.fsencode, words))


def decode_words(words: Iterable[bytes]) -> list[str]:
    """Return the system's bytes as words."""
    return list(map(os.fsdecode, words))


def send(peer: socket.socket, kind: Kind, *, document: object = None, descriptors: Sequence[int] = ()) -> None:
    """Send a message, with open files. Raises ProtocolError if it is too long, and OSError."""
    body = b"" if document is None else msgspec.msgpack.encode(document)
    if len(body) > (_REQUEST_MAX if kind is Kind.REQUEST else LENGTH_MAX):
        raise ProtocolError("the message is too long")
    header = _HEADER.pack(_MAGIC, VERSION, kind, 0, len(body))
    if descriptors:
        socket.send_fds(peer, [header], list(descriptors))
    else:
        peer.sendall(header)
    peer.sendall(body)


def receive(peer: socket.socket) -> tuple[Kind, bytes, list[int]]:
    """Receive a message: its kind, its document's bytes, and the open files that came with it.

    Raises ProtocolError, and OSError with TimeoutError by the socket's timeout.
    """
    header, descriptors = _receive_header(peer)
    try:
        magic, version, number, zero, length = _HEADER.unpack(header)
        if magic != _MAGIC or version != VERSION or zero:
            raise ProtocolError("a message of another version")
        if number not in set(Kind):
            raise ProtocolError("a message of an unknown kind")
        kind = Kind(number)
        if length > (_REQUEST_MAX if kind is Kind.REQUEST else LENGTH_MAX):
            raise ProtocolError("the message is too long")
        return kind, _receive_exactly(peer, length), descriptors
    except BaseException:
        close_all(descriptors)
        raise


def decode_request(body: bytes) -> Request:
    """Decode a request. Raises ProtocolError."""
    return _decode(body, Request)


def decode_answer(body: bytes) -> Answer:
    """Decode an answer. Raises ProtocolError."""
    return _decode(body, Answer)


def peer_user(peer: socket.socket) -> int:
    """Return the user id of the process at the other end."""
    form = struct.Struct("3i")
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, form.size)
    return int(form.unpack(credentials)[1])


def close_all(descriptors: Sequence[int]) -> None:
    """Close open files."""
    for each in descriptors:
        os.close(each)


def _decode(body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError("a message that cannot be decoded") from error


def _receive_header(peer: socket.socket) -> tuple[bytes, list[int]]:
    size = array.array("i").itemsize * _DESCRIPTORS
    data, control, flags, _ = peer.recvmsg(_HEADER.size, socket.CMSG_SPACE(size), socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, type_, value in control:
        if level == socket.SOL_SOCKET and type_ == socket.SCM_RIGHTS:
            descriptors.frombytes(value[: len(value) - len(value) % descriptors.itemsize])
    try:
        if flags & socket.MSG_CTRUNC:
            raise ProtocolError("a message with too many files")
        return data + _receive_exactly(peer, _HEADER.size - len(data), is_begun=bool(data)), list(descriptors)
    except BaseException:
        close_all(descriptors)
        raise


def _receive_exactly(peer: socket.socket, length: int, *, is_begun: bool = True) -> bytes:
    if not is_begun:
        raise ProtocolError("the connection has ended")
    pieces = []
    while length:
        piece = peer.recv(min(length, 1 << 20))
        if not piece:
            raise ProtocolError("the connection has ended within a message")
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)
