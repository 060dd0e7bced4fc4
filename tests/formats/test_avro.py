# SPDX-License-Identifier: Apache-2.0
"""Avro files of other writers: their records are read, and no file can take more memory or time than the limits
allow.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import tracemalloc
import zlib
from collections.abc import Callable

import fastavro
import pytest

from limnos.formats import avro
from limnos.formats.avro import BadAvro, texts_of, values_of, values_of_files

pytestmark = pytest.mark.slow

ENTRY = {
    "type": "record",
    "name": "entry",
    "fields": [
        {"name": "status", "type": "int"},
        {
            "name": "data_file",
            "type": {
                "type": "record",
                "name": "r2",
                "fields": [
                    {"name": "content", "type": "int"},
                    {"name": "file_path", "type": "string"},
                    {"name": "partition", "type": {"type": "record", "name": "r102", "fields": []}},
                    {
                        "name": "sizes",
                        "type": [
                            "null",
                            {
                                "type": "array",
                                "items": {
                                    "type": "record",
                                    "name": "k",
                                    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "long"}],
                                },
                            },
                        ],
                    },
                ],
            },
        },
    ],
}
ROWS = [
    {
        "status": 1,
        "data_file": {"content": 0, "file_path": f"s3://b/{i}é", "partition": {}, "sizes": [{"key": i, "value": 1}]},
    }
    for i in range(3_000)
]
PATH = ("data_file", "file_path")
SYNC = b"s" * 16


def written(schema: object, rows: list[dict[str, object]], **more: object) -> bytes:
    """Write a file with fastavro."""
    data = io.BytesIO()
    fastavro.writer(data, schema, rows, **more)  # type: ignore[arg-type]
    return data.getvalue()


def number(value: int) -> bytes:
    """Encode a number as Avro does."""
    data = io.BytesIO()
    fastavro.schemaless_writer(data, {"type": "long"}, value)
    return data.getvalue()


def encode_file(schema: object, *blocks: tuple[int, bytes], codec: bytes = b"null") -> bytes:
    """Write a file byte by byte, of blocks with the given counts."""
    head = [b"avro.schema", json.dumps(schema).encode(), b"avro.codec", codec]
    words = b"".join(number(len(word)) + word for word in head)
    body = b"".join(number(count) + number(len(block)) + block + SYNC for count, block in blocks)
    return b"Obj\x01" + number(2) + words + number(0) + SYNC + body


def record(*fields: object) -> dict[str, object]:
    """Encode a record of a text and further fields."""
    named = [{"name": f"f{i}", "type": each} for i, each in enumerate(fields)]
    return {"type": "record", "name": "r", "fields": [{"name": "p", "type": "string"}, *named]}


def deflated(block: bytes) -> bytes:
    """Compress as Avro's deflate codec does."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(block) + packer.flush()


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
@pytest.mark.parametrize("interval", [100, 16_000, 10**7])
def test_texts_are_read_with_each_codec(codec: str, interval: int) -> None:
    """Texts are read with each codec and any number of blocks. Fields of all other kinds are skipped."""
    data = written(ENTRY, ROWS, codec=codec, sync_interval=interval)  # type: ignore[arg-type]

    assert list(texts_of(data, *PATH)) == [f"s3://b/{i}é" for i in range(3_000)]


def test_missing_field_has_no_text() -> None:
    """A missing field, one of another type, and an empty branch of a union have no text."""
    assert list(texts_of(written(ENTRY, ROWS), "file_path")) == []
    assert list(texts_of(written(ENTRY, ROWS), "data_file", "content")) == []
    maybe = {"type": "record", "name": "m", "fields": [{"name": "p", "type": ["null", "string"]}]}
    assert list(texts_of(written(maybe, [{"p": "x"}, {"p": None}]), "p")) == ["x"]


BOMB = bytes(avro.BLOCK_BYTES_MAX + 1)
PACKED: dict[bytes, Callable[[bytes], bytes]] = {
    b"deflate": deflated,
    b"bzip2": bz2.compress,
    b"xz": lzma.compress,
    b"null": bytes,
}


@pytest.mark.parametrize("codec", PACKED)
def test_decompression_bomb_is_refused(codec: bytes) -> None:
    """A block that decompresses to more than the limit is refused without using more memory."""
    bomb = encode_file(record(), (1, PACKED[codec](BOMB + (BOMB * 4 if codec != b"null" else b""))), codec=codec)
    tracemalloc.start()

    with pytest.raises(BadAvro, match="unpacks to more"):
        list(texts_of(bomb, "p"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 5 * avro.BLOCK_BYTES_MAX


def test_total_of_blocks_and_entries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files with too many large blocks, or with too many entries, are refused, although each block is within its
    limit.
    """
    row = number(3) + b"abc"
    many = encode_file(record(), *[(100, row * 100)] * 10)
    assert len(list(texts_of(many, "p"))) == 1_000

    with monkeypatch.context() as patched:
        patched.setattr(avro, "ENTRIES_MAX", 999)
        with pytest.raises(BadAvro, match="more entries"):
            list(texts_of(many, "p"))
    monkeypatch.setattr(avro, "FILE_BYTES_MAX", 3_999)
    with pytest.raises(BadAvro, match="unpacks to more than 3999"):
        list(texts_of(many, "p"))


NOTHING = {"type": "record", "name": "n", "fields": []}
NESTED: object = "int"
for _ in range(avro.DEPTH_MAX + 1):
    NESTED = {"type": "array", "items": NESTED}
SCHEMAS = {
    "entries of nothing": (record(), (1 << 40, b""), "more entries"),
    "less than no entry": (record(), (-5, b"x" * 9), "more entries"),
    "an array of nothing": (record({"type": "array", "items": "null"}), (1, number(0) + number(1 << 40)), "repeats"),
    "an array of empty records": (record({"type": "array", "items": NOTHING}), (1, b"\0"), "repeats"),
    "an array of empty values": (
        record({"type": "array", "items": {"type": "fixed", "name": "x", "size": 0}}),
        (1, b"\0"),
        "repeats",
    ),
    "a record within itself": (record(["null", "r"]), (1, b"\0" + b"\2" * 1000), "recursive"),
    "empty records by name": (record(NOTHING, *["n"] * 5), (1, b"\0"), "empty"),
    "many empty parts": (record(*["null"] * 9), (1, b"\0"), "without bytes"),
    "too deep": (record(NESTED), (1, b"\0"), "levels"),
    "too long": (record(*["int"] * 5_000), (1, b"\0"), "longer"),
}


@pytest.mark.parametrize("what", SCHEMAS)
def test_short_but_expensive_input_is_refused(what: str) -> None:
    """Short input that would take excessive time or memory is refused before it is decoded."""
    schema, block, words = SCHEMAS[what]

    with pytest.raises(BadAvro, match=words):
        list(texts_of(encode_file(schema, block), "p"))


def test_unknown_codec_is_named() -> None:
    """The error for an unknown codec has the codec's name."""
    with pytest.raises(BadAvro, match="'rot13'"):
        list(texts_of(encode_file(record(), (1, b"\0"), codec=b"rot13"), "p"))


@pytest.mark.parametrize("cut", [0, 3, 4, 20, 100, -1, -17, -40])
def test_truncated_file_raises_bad_avro(cut: int) -> None:
    """A file that is truncated at any byte raises BadAvro and no other error."""
    with pytest.raises(BadAvro):
        list(texts_of(encode_file(record(), (2, (number(3) + b"abc") * 2))[:cut], "p"))


def test_several_values_are_returned_per_row() -> None:
    """Texts, numbers and maps are returned in the order of the paths. A missing field is None."""
    data = written(ENTRY, ROWS[:2])

    assert list(values_of(data, PATH, ("status",), ("gone",), ("data_file", "sizes"))) == [
        ("s3://b/0é", 1, None, [{"key": 0, "value": 1}]),
        ("s3://b/1é", 1, None, [{"key": 1, "value": 1}]),
    ]
    assert list(values_of(data, ("gone",))) == []


def test_several_files_are_read_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several files with different codecs, sync markers and schemas are read in order. A decoder is prepared once for
    all files of one schema.
    """
    other = {**ENTRY, "fields": list(reversed(ENTRY["fields"]))}
    codecs = (("null", ENTRY), ("deflate", ENTRY), ("xz", ENTRY), ("null", other), ("deflate", ENTRY))
    files = [
        written(schema, ROWS[first : first + 700], codec=codec, sync_interval=500)
        for first, (codec, schema) in enumerate(codecs)
    ]
    files[1:1] = [written(ENTRY, []), encode_file(record())]
    readers, real = [], fastavro.reader

    def reader(*args: object, **named: object) -> object:
        readers.append(args)
        return real(*args, **named)  # type: ignore[arg-type]

    expected = [row for data in files for row in values_of(data, PATH, ("status",))]
    assert len(expected) == 5 * 700
    monkeypatch.setattr(fastavro, "reader", reader)
    assert list(values_of_files(files, PATH, ("status",))) == expected
    assert len(readers) == 4
    with pytest.raises(BadAvro, match=r"no field data_file.file_path"):
        list(values_of_files(files, PATH, is_needed=True))
    assert list(values_of_files([], PATH)) == []


def test_limits_apply_per_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several files together may have more entries than the limit of one. If one file exceeds its limit or is
    truncated, reading fails.
    """
    monkeypatch.setattr(avro, "ENTRIES_MAX", 700)
    files = [written(ENTRY, ROWS[:700]) for _ in range(3)]

    assert len(list(values_of_files(files, PATH))) == 2100
    for bad in (written(ENTRY, ROWS[:701]), files[0][:-1], b"text"):
        with pytest.raises(BadAvro):
            list(values_of_files([*files, bad], PATH))
