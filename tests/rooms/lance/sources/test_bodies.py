# SPDX-License-Identifier: Apache-2.0
"""Rows in a worker process: checked before they are decoded, and incomplete until the end is confirmed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from queue import Empty, SimpleQueue

import pyarrow as pa
import pytest

from limnos.model.errors import BadRequest, TooLarge
from limnos.rooms.lance.sources import writing
from limnos.rooms.lance.sources.bodies import BodyCutShort, BodyPieces
from limnos.rooms.lance.sources.questions import Count, LanceWriteResult, Write
from limnos.rooms.lance.sources.reading import count
from limnos.sources.wire import COMPLETE, CUT, MORE

END = 8
"""Length of the end marker of an Arrow stream."""
ROWS = pa.table({"id": pa.array(range(1000), pa.int64()), "text": ["some words"] * 1000})


def stream(table: pa.Table = ROWS, *, batches: int = 4, compression: str | None = None) -> bytes:
    """Return rows as a stream of several batches."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        for batch in table.to_batches(max_chunksize=max(1, table.num_rows // batches)):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


class CompleteWire:
    """A wire on which all messages have arrived."""

    def __init__(self, data: bytes, *, end: bytes, size: int) -> None:
        self.messages = [[MORE, data[start : start + size]] for start in range(0, len(data), size)] + [[end]]

    def receive(self) -> list[bytes]:
        """Return the next message."""
        return self.messages.pop(0)


@pytest.fixture
def location(tmp_path: Path) -> str:
    """The location of the table."""
    return f"file://{tmp_path}/t"


def write(
    location: str, data: bytes, *, end: bytes = COMPLETE, size: int = 1000, limit: int = 1 << 20
) -> LanceWriteResult:
    """Append a body that arrives in pieces of the given size."""
    body = BodyPieces(CompleteWire(data, end=end, size=size))  # type: ignore[arg-type]
    return writing.write(Write(location=location, options={}, mode="append", batch_bytes_max=limit), body)


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 30])
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_rows_do_not_depend_on_the_message_boundaries(location: str, size: int, compression: str | None) -> None:
    """The rows do not depend on how a body is divided into messages; they are counted while they arrive."""
    done = write(location, stream(compression=compression), size=size)

    assert (done.inserted, count(Count(location=location, options={}))) == (1000, 1000)


@pytest.mark.parametrize(
    "wide",
    [
        pa.decimal128(38, 2),
        pa.decimal256(60, 2),
        pa.list_(pa.decimal128(10, 1)),
        pa.struct([("a", pa.decimal256(50, 1))]),
    ],
    ids=str,
)
def test_decimals_are_written_whatever_their_alignment(location: str, wide: pa.DataType) -> None:
    """Batches of 1 to 100 rows are written, with decimals after a column that shifts their offset in the body by 8
    bytes.
    """
    value: object = Decimal("1.5")
    value = [value] if pa.types.is_list(wide) else {"a": value} if pa.types.is_struct(wide) else value
    schema = pa.schema({"id": pa.int32(), "wide": wide})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for rows in range(1, 101):
            arrays = [pa.array(range(rows), pa.int32()), pa.array([value] * rows, wide)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))

    done = write(location, sink.getvalue().to_pybytes(), size=1 << 30)

    assert done.inserted == sum(range(1, 101))


def boundaries(data: bytes) -> list[int]:
    """Return the ends of a stream's batches, and the end of the stream."""
    reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(data))
    batch_ends, at = [], 0
    for message in reader:
        sink = pa.BufferOutputStream()
        message.serialize_to(sink)
        at += sink.getvalue().size
        batch_ends.append(at)
    return [*batch_ends, len(data)]


def test_truncated_body_is_never_written(location: str) -> None:
    """A body that is truncated after a batch, after the stream, or in the middle adds no version and no row."""
    data = stream()
    places = boundaries(data)
    assert places[-2] == len(data) - END, "the last batch ends where the end marker of the stream begins"

    for place in (*places, places[1] + 100):
        with pytest.raises(BodyCutShort):
            write(location, data[:place], end=CUT)

    assert not Path(location.removeprefix("file://"), "_versions").exists()


def test_stream_without_end_marker_is_accepted(location: str) -> None:
    """Arrow allows a stream without an end marker; the sender confirms that the body is complete."""
    assert write(location, stream()[:-END]).inserted == 1000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"ARROW1\0\0" + bytes(100),
        stream()[:-END] + b"xyz",
        stream() + b"x",
        stream()[:-20],
        b"\xff\xff\xff\xff\xff\xff\xff\x7f",
        bytes(range(256)) * 9,
    ],
)
def test_body_that_is_not_an_arrow_stream_is_refused(location: str, data: bytes) -> None:
    """A body that is not an Arrow stream is refused with advice, and nothing is written."""
    with pytest.raises(BadRequest, match="Arrow"):
        write(location, data)

    assert not Path(location.removeprefix("file://"), "_versions").exists()


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_too_large_batch_is_refused_before_decoding(location: str, compression: str | None) -> None:
    """A batch is refused by its decoded size, before it is decoded."""
    data = stream(pa.table({"id": pa.array([0] * 200_000, pa.int64())}), batches=1, compression=compression)
    assert (len(data) < 20_000) == (compression is not None)

    with pytest.raises(TooLarge, match="smaller batches"):
        write(location, data, limit=1_000_000)
    assert write(location, data, limit=2_000_000).inserted == 200_000


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_stream_with_any_changed_byte_raises_no_other_error(location: str, compression: str | None) -> None:
    """A stream with any byte changed is refused or written; it raises no other error."""
    data = stream(ROWS.slice(0, 8), batches=2, compression=compression)

    refused = 0
    for place in range(0, len(data), 3):
        changed = bytearray(data)
        changed[place] ^= 0xFF
        with suppress(BadRequest, TooLarge):
            refused += 1
            write(location, bytes(changed))
            refused -= 1

    assert refused > len(data) // 30


class SlowWire:
    """A wire whose messages the test sends; it counts the threads that wait for one."""

    def __init__(self) -> None:
        self.messages: SimpleQueue[list[bytes]] = SimpleQueue()
        self.waits: SimpleQueue[None] = SimpleQueue()

    def receive(self) -> list[bytes]:
        """Wait for the next message."""
        self.waits.put(None)
        return self.messages.get(timeout=300)


def test_next_request_is_not_read_as_a_piece_of_a_failed_body() -> None:
    """If the library still waits for a piece after the operation has failed, the next request on the wire is not taken
    for that piece.
    """
    wire = SlowWire()
    body = BodyPieces(wire)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as threads:
        reading = threads.submit(body.piece)
        wire.waits.get(timeout=300)
        discarding = threads.submit(body.drain)
        with suppress(Empty):
            wire.waits.get(timeout=0.2)  # no second thread may wait for the wire
        wire.messages.put([CUT])
        wire.messages.put([b"Describe", b"{}"])
        discarding.result(timeout=300)
        with pytest.raises(BodyCutShort):
            reading.result(timeout=300)

    assert wire.messages.get_nowait() == [b"Describe", b"{}"]


def test_reading_a_discarded_body_raises() -> None:
    """A thread that reads on after the operation has failed gets an error, not the end of a complete body."""
    body = BodyPieces(CompleteWire(b"abc", end=COMPLETE, size=1))  # type: ignore[arg-type]

    assert body.piece() == b"a"
    body.drain()

    with pytest.raises(BodyCutShort):
        body.piece()
