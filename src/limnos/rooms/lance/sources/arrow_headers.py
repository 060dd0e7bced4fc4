# SPDX-License-Identifier: Apache-2.0
"""Computes the decoded size of a batch of an Arrow IPC stream from its header, before the batch is decoded.

Must not know requests. Parses only the three Flatbuffers tables that it needs (Arrow's format/Message.fbs: Message,
RecordBatch, DictionaryBatch).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from limnos.model.errors import BadRequest

_U16, _I32, _U32, _I64 = struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<I"), struct.Struct("<q")
_DICTIONARY: Final = 2
_BATCH: Final = 3
_BUFFER_BYTES: Final = 16
PLAIN: Final = -1
"""The length prefix of an uncompressed buffer in a compressed batch."""


class ArrowHeader(NamedTuple):
    """The header of an IPC message: the length of its body in bytes and, for a batch, its row count.

    `buffers` has the (offset, length) of each buffer in a compressed batch; None if the batch is not compressed.
    """

    body_bytes: int
    rows: int
    is_rows: bool
    buffers: tuple[tuple[int, int], ...] | None

    def decoded_bytes(self, body: memoryview) -> int:
        """Return the decoded size of a compressed body; each buffer states its size in its first eight bytes."""
        return sum(self._sizes(body))

    def _sizes(self, body: memoryview) -> Iterator[int]:
        for offset, length in self.buffers or ():
            if length < _I64.size:
                continue
            if offset < 0 or offset + length > len(body):
                raise _malformed_error()
            (size,) = _I64.unpack_from(body, offset)
            yield length if size == PLAIN else max(size, 0)


def read_header(metadata: bytes) -> ArrowHeader:
    """Parse the Flatbuffers header of an Arrow IPC message. Raises BadRequest for a malformed header."""
    try:
        message = _FlatbufferTable(metadata, _U32.unpack_from(metadata)[0])
        body_bytes, kind = message.number(3), message.byte(1)
        if body_bytes < 0:
            raise _malformed_error()
        if kind not in (_DICTIONARY, _BATCH):
            return ArrowHeader(body_bytes, 0, is_rows=False, buffers=None)
        batch = message.table(2)
        if kind == _DICTIONARY and batch is not None:
            batch = batch.table(1)
        if batch is None:
            raise _malformed_error()
        return ArrowHeader(body_bytes, batch.number(0), kind == _BATCH, batch.buffers() if batch.has(3) else None)
    except struct.error:
        raise _malformed_error() from None


def _malformed_error() -> BadRequest:
    return BadRequest("The body is not an Arrow IPC stream: a message in it cannot be read")


class _FlatbufferTable:
    """A Flatbuffers table, whose fields are addressed by their index in the schema."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position
        self._fields = position - _I32.unpack_from(data, position)[0]
        (self._size,) = _U16.unpack_from(data, self._fields)

    def has(self, field: int) -> bool:
        return self._place(field) is not None

    def number(self, field: int) -> int:
        place = self._place(field)
        return 0 if place is None else int(_I64.unpack_from(self._data, place)[0])

    def byte(self, field: int) -> int:
        place = self._place(field)
        return 0 if place is None else self._data[place]

    def table(self, field: int) -> _FlatbufferTable | None:
        place = self._place(field)
        return None if place is None else _FlatbufferTable(self._data, place + _U32.unpack_from(self._data, place)[0])

    def buffers(self) -> tuple[tuple[int, int], ...]:
        """Return the (offset, length) pairs of a batch's buffers, the third field of RecordBatch. Raises BadRequest."""
        place = self._place(2)
        if place is None:
            return ()
        start = place + _U32.unpack_from(self._data, place)[0]
        (count,) = _U32.unpack_from(self._data, start)
        first = start + _U32.size
        if first + count * _BUFFER_BYTES > len(self._data):
            raise _malformed_error()
        return tuple(struct.unpack_from("<qq", self._data, first + each * _BUFFER_BYTES) for each in range(count))

    def _place(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry >= self._size or self._fields < 0:
            return None
        (offset,) = _U16.unpack_from(self._data, self._fields + entry)
        place = self._position + offset
        if place >= len(self._data):
            raise _malformed_error()
        return place if offset else None
