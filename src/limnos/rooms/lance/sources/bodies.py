# SPDX-License-Identifier: Apache-2.0
"""The rows of a request as an Arrow stream for Lance's library, checked before they are decoded.

Must not know tables. pyarrow treats a truncated stream as complete, and the library would commit its rows. Therefore
the end of the stream is passed on only after the sender has marked the body as complete.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from limnos.model.errors import BadRequest, LimnosError, TooLarge
from limnos.rooms.lance.sources import arrow_headers
from limnos.sources.wire import COMPLETE, MORE, Wire

_LENGTH: Final = struct.Struct("<I")
_GOES_ON: Final = b"\xff\xff\xff\xff"
_END: Final = bytes(4)
_HEADER_BYTES_MAX: Final = 1 << 26
_ALIGNED: Final = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
"""Whether decimals are aligned to 16 bytes: Lance's library panics on others. Arrow IPC guarantees 8, and so does
pyarrow's alignment by data type for decimals.
"""
NO_STREAM: Final = (
    "The body is not an Arrow IPC stream: send one (application/vnd.apache.arrow.stream), with its schema even for no"
    " rows"
)


class BodyCutShort(BadRequest):
    """Raised if the sender of a body disconnected before its end."""


class BodyPieces:
    """The body of a request to a Lance worker, received in chunks.

    Lance's library reads the body in its own threads, and may still do so after the operation has failed. The lock
    prevents such a thread and `drain` from reading the wire at the same time: one of them would take the next request.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._lock = threading.Lock()
        self._end: bytes | None = None
        """The message that ended the body; None while the body is incomplete."""
        self._is_discarded = False

    def piece(self) -> bytes | None:
        """Return the next chunk; None at the end. Raises BodyCutShort if the sender disconnected, or if `drain` has
        discarded chunks.
        """
        with self._lock:
            piece = None if self._is_discarded else self._next()
            if piece is None and (self._is_discarded or self._end != COMPLETE):
                raise BodyCutShort("The body ended early; nothing was changed")
            return piece

    def drain(self) -> None:
        """Discard the remaining chunks, so that the next request can be read."""
        self._is_discarded = True
        with self._lock:
            while self._next() is not None:
                pass

    def _next(self) -> bytes | None:
        """Return the next chunk; None at the end. The caller must hold the lock."""
        if self._end is None:
            kind, *pieces = self._wire.receive()
            if kind == MORE:
                return pieces[0]
            self._end = kind
        return None


class ArrowBody:
    """A body as a file-like object from which pyarrow reads a stream.

    `failure` is an error in the body, because the library wraps exceptions of a file in its own.
    """

    closed = False

    def __init__(self, body: BodyPieces, *, batch_bytes_max: int) -> None:
        self._body = body
        self._batch_bytes_max = batch_bytes_max
        self._pieces: memoryview = memoryview(b"")
        self._ready = bytearray()
        """The bytes of the current message that were read for its check and are not passed on yet."""
        self._given = 0
        self._passing = 0
        """The number of bytes of the current message's body that are passed on without a check."""
        self._is_over = False
        self.failure: LimnosError | None = None
        self.rows = 0

    def reader(self) -> pa.RecordBatchReader:
        """Open the stream. Raises BadRequest if it is not an Arrow stream, BodyCutShort if the sender disconnected."""
        try:
            reader = pa.ipc.open_stream(self, options=_ALIGNED)
            str(reader.schema).encode()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self.failure or BadRequest(f"{NO_STREAM} ({str(error)[:200]})") from None
        return pa.RecordBatchReader.from_batches(reader.schema, self._validate_batches(reader))

    def _validate_batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Yield batches after a full validation: the library trusts every offset in them."""
        try:
            for batch in reader:
                batch.validate(full=True)
                yield batch
        except (pa.ArrowException, ValueError) as error:
            self.failure = self.failure or BadRequest(f"The body's rows are not valid Arrow data: {str(error)[:200]}")
            raise

    def readable(self) -> bool:
        """Return True, as Python's file protocol requires for pyarrow."""
        return True

    def close(self) -> None:
        """Mark the file as closed; it holds no resources."""
        self.closed = True

    def read(self, size: int = -1) -> bytearray:
        """Return exactly `size` bytes, fewer only at the end."""
        try:
            return self._read(size)
        except (BadRequest, TooLarge) as error:
            self.failure = error
            raise

    def _read(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size and not self._is_over:
            requested = size - len(data)
            if self._given < len(self._ready):
                part = self._ready[self._given : self._given + requested]
                self._given += len(part)
                data = part if not data else data + part
            elif self._passing:
                part = self._from_body(min(requested, self._passing))
                self._passing -= len(part)
                data = part if not data else data + part
            else:
                self._next_message()
        return data

    def _next_message(self) -> None:
        """Read and check the header of the next IPC message, and prepare its bytes for `read`. Raises BadRequest."""
        self._ready, self._given = bytearray(), 0
        prefix = self._from_body(_LENGTH.size, may_end=True)
        if not prefix:
            self._is_over = True
            return
        if prefix == _GOES_ON:
            prefix += self._from_body(_LENGTH.size)
        (length,) = _LENGTH.unpack_from(prefix, len(prefix) - _LENGTH.size)
        if length == 0:
            self._end()
        elif length > _HEADER_BYTES_MAX:
            raise BadRequest(NO_STREAM)
        else:
            self._begin(prefix, self._from_body(length))

    def _begin(self, prefix: bytearray, metadata: bytearray) -> None:
        batch = arrow_headers.read_header(bytes(metadata))
        limit = self._batch_bytes_max
        if batch.body_bytes > limit or batch.rows > limit:
            raise self._too_large(max(batch.body_bytes, batch.rows))
        self._ready = prefix + metadata
        if batch.buffers is None:
            self._passing = batch.body_bytes
        else:
            body = self._from_body(batch.body_bytes)
            size = batch.decoded_bytes(memoryview(body))
            if size > limit:
                raise self._too_large(size)
            self._ready += body
        if batch.is_rows:
            self.rows += batch.rows

    def _end(self) -> None:
        """Append the end-of-stream marker for the reader. Raises BadRequest if the body has more bytes after it."""
        if self._pieces or self._body.piece() is not None:
            raise BadRequest("The body continues after the end of its Arrow stream: send one stream")
        self._ready = bytearray(_GOES_ON + _END)

    def _from_body(self, size: int, *, may_end: bool = False) -> bytearray:
        """Read exactly `size` bytes of the body. Raises BadRequest if it ends earlier."""
        data = bytearray(size)
        number = 0
        while number < size:
            if not self._pieces:
                piece = self._body.piece()
                if piece is None:
                    if may_end and not number:
                        return bytearray()
                    raise BadRequest(f"{NO_STREAM} (it ends in the middle of a message)")
                self._pieces = memoryview(piece)
            part = self._pieces[: size - number]
            data[number : number + len(part)] = part
            self._pieces = self._pieces[len(part) :]
            number += len(part)
        return data

    def _too_large(self, size: int) -> TooLarge:
        return TooLarge(
            f"A batch of {size} decoded bytes is over the limit of {self._batch_bytes_max} (setting"
            " lance.batch_bytes_max): send smaller batches; nothing was changed"
        )
