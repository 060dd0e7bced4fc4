# SPDX-License-Identifier: Apache-2.0
"""Reads single fields of untrusted Avro files, with limits on size and time.

Must not know the meaning of rows. fastavro decompresses a block completely and trusts the lengths and counts in it.
Therefore this module decompresses blocks within limits, and fastavro reads them uncompressed with a reader schema that
has only the requested fields. Skipped fields then need no memory, and time in proportion to their bytes.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple, cast

import fastavro
from fastavro.types import Schema

BLOCK_BYTES_MAX: Final = 16 << 20
"""The maximum size of a decompressed block, in bytes. Writers begin a new block after 16 to 64 KB, or for each
entry.
"""
FILE_BYTES_MAX: Final = 1 << 30
ENTRIES_MAX: Final = 2_000_000
SCHEMA_BYTES_MAX: Final = 64 << 10
DEPTH_MAX: Final = 32
EMPTY_MAX: Final = 8
"""The maximum number of parts of a schema that take no bytes, such as the partition of an unpartitioned table."""
_SCHEMAS_KEPT: Final = 64
_LZMA_BYTES_MAX: Final = 64 << 20
_MAGIC: Final = b"Obj\x01"
_SYNC_SIZE: Final = 16


class BadAvro(ValueError):
    """The data is not an Avro file, is malformed, or exceeds a limit; the message has the reason."""


def texts_of(data: bytes, *path: str) -> Iterator[str]:
    """Yield the string at a path of nested fields in each row; nothing if the rows have no such field.

    Raises BadAvro if the file is malformed or exceeds a limit.
    """
    for (result,) in values_of(data, path):
        if isinstance(result, str):
            yield result


def values_of(data: bytes, *paths: tuple[str, ...], is_needed: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield a tuple for each row: the values at some paths of nested fields, None for an absent field.

    Only strings, integers, booleans, and maps with integer keys are read. A map is a list of dictionaries with `key`
    and `value`, as Iceberg writes it.

    Args:
        data: The file.
        *paths: Paths of fields.
        is_needed: Whether the first path must exist. Otherwise, if rows have none of the fields, nothing is yielded.

    Raises:
        BadAvro: The file is malformed, exceeds a limit, or lacks the first field.
    """
    return values_of_files((data,), *paths, is_needed=is_needed)


def values_of_files(
    files: Iterable[bytes], *paths: tuple[str, ...], is_needed: bool = False
) -> Iterator[tuple[object, ...]]:
    """Yield the values of several files as `values_of` does, file by file. Raises BadAvro as `values_of` does."""
    try:
        for text, same in groupby(map(_open_file, files), key=lambda file: _schema_text(file.entries)):
            has_first, target = _reader_schema(text, paths)
            if is_needed and not has_first:
                raise BadAvro(f"its rows have no field {'.'.join(paths[0])}")
            if target is None:
                continue
            uncompressed_files = _UncompressedFiles(same)
            for row in fastavro.reader(cast("io.BytesIO", uncompressed_files), reader_schema=target):
                yield tuple([_value_at(row, path) for path in paths])
    except BadAvro:
        raise
    except Exception as error:
        raise BadAvro(str(error) or type(error).__name__) from error


def field_names(data: bytes, *path: str) -> list[str]:
    """Return the field names of the record at a path of nested fields; empty if there is no record.

    Raises BadAvro if the file's schema is malformed or exceeds a limit.
    """
    try:
        schema = _schema(_head(io.BytesIO(data))[0])
        for name in path:
            fields = schema.get("fields", []) if isinstance(schema, dict) else []
            schema = next((each["type"] for each in fields if each["name"] == name), None)
        return [str(each["name"]) for each in schema.get("fields", [])] if isinstance(schema, dict) else []
    except BadAvro:
        raise
    except Exception as error:
        raise BadAvro(str(error) or type(error).__name__) from error


def _value_at(row: object, path: tuple[str, ...]) -> object:
    result = row
    for name in path:
        result = result.get(name) if isinstance(result, dict) else None
    return result


def decompress(data: bytes) -> bytes:
    """Return the file with uncompressed blocks, for a library that does not limit decompression.

    Raises BadAvro if the file is malformed or exceeds a limit.
    """
    try:
        file = _open_file(data)
        _schema(file.entries)
        return _UncompressedFiles([file]).read_all()
    except BadAvro:
        raise
    except Exception as error:
        raise BadAvro(str(error) or type(error).__name__) from error


class _OpenedFile(NamedTuple):
    """An Avro file after its header: the stream of its blocks, its metadata map, and the sync marker that ends each
    block.
    """

    source: io.BytesIO
    entries: dict[str, bytes]
    sync: bytes


def _open_file(data: bytes) -> _OpenedFile:
    source = io.BytesIO(data)
    return _OpenedFile(source, *_head(source))


class _UncompressedFiles:
    """A file-like object that reads files of one schema as one file, with their blocks decompressed."""

    def __init__(self, files: Iterable[_OpenedFile]) -> None:
        self._files = iter(files)
        first = self._begin(next(self._files))
        self._sync = first.sync
        self._rest = io.BytesIO(_spelled_head(first.entries["avro.schema"], first.sync))

    def _begin(self, file: _OpenedFile) -> _OpenedFile:
        """Start to read a file. The limits apply to each file separately."""
        self._file = file
        self._codec = file.entries.get("avro.codec", b"null").decode()
        self._bytes = self._entries = 0
        return file

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, fewer only at the end of the last file. Raises BadAvro for a malformed block."""
        data = self._rest.read(size)
        while len(data) < size and (piece := self._block()):
            self._rest = io.BytesIO(piece)
            data += self._rest.read(size - len(data))
        return data

    def read_all(self) -> bytes:
        """Read all remaining bytes of all files. Raises BadAvro for a malformed block."""
        pieces = [self._rest.read()]
        while piece := self._block():
            pieces.append(piece)
        return b"".join(pieces)

    def _block(self) -> bytes:
        while not (first := self._file.source.read(1)):
            file = next(self._files, None)
            if file is None:
                return b""
            self._begin(file)
        source = self._file.source
        source.seek(-len(first), io.SEEK_CUR)
        count, packed = _read_long(source), _read_bytes(source)
        if source.read(_SYNC_SIZE) != self._file.sync:
            raise BadAvro("a block does not end at its declared size")
        block = _decompress(packed, self._codec)
        self._bytes += len(block)
        self._entries += count
        if not 0 <= count <= len(block) or self._entries > ENTRIES_MAX:
            raise BadAvro(f"it declares more entries than are allowed (at most {ENTRIES_MAX}, and one for each byte)")
        if self._bytes > FILE_BYTES_MAX:
            raise BadAvro(f"it unpacks to more than {FILE_BYTES_MAX} bytes")
        return b"".join((_encode_long(count), _encode_long(len(block)), block, self._sync))


def _decompress(packed: bytes, codec: str) -> bytes:
    most = BLOCK_BYTES_MAX + 1
    if codec == "null":
        block = packed
    elif codec == "deflate":
        block = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most)
    elif codec == "bzip2":
        block = bz2.BZ2Decompressor().decompress(packed, most)
    elif codec == "xz":
        block = lzma.LZMADecompressor(memlimit=_LZMA_BYTES_MAX).decompress(packed, most)
    else:
        raise BadAvro(f"it is compressed with {codec[:40]!r}, and only null, deflate, bzip2 and xz are supported")
    if len(block) >= most:
        raise BadAvro(f"one of its blocks unpacks to more than {BLOCK_BYTES_MAX} bytes")
    return block


# -- the header ----------------------------------------------------------------------------------------------------


def _head(source: io.BytesIO) -> tuple[dict[str, bytes], bytes]:
    """Read the header. Returns its metadata map, and the sync marker that ends each block.

    Raises BadAvro if the header is missing or truncated.
    """
    if source.read(len(_MAGIC)) != _MAGIC:
        raise BadAvro("it has no Avro header")
    entries: dict[str, bytes] = {}
    while count := _read_long(source):
        if count < 0:
            _read_long(source)  # the size of the map's block in bytes
        for _ in range(abs(count)):
            name = _read_bytes(source).decode()
            entries[name] = _read_bytes(source)
    return entries, source.read(_SYNC_SIZE)


def _spelled_head(schema: bytes, sync: bytes) -> bytes:
    words = (b"avro.schema", schema, b"avro.codec", b"null")
    return b"".join(
        (_MAGIC, _encode_long(2), *(_encode_long(len(word)) + word for word in words), _encode_long(0), sync)
    )


def _read_long(source: io.BytesIO) -> int:
    number = 0
    for shift in range(0, 70, 7):
        byte = source.read(1)
        if not byte:
            break
        number |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (number >> 1) ^ -(number & 1)
    raise BadAvro("it is truncated, or a number is too long")


def _read_bytes(source: io.BytesIO) -> bytes:
    size = _read_long(source)
    data = source.read(max(size, 0))
    if len(data) != size:
        raise BadAvro("it is truncated")
    return data


def _encode_long(number: int) -> bytes:
    """Encode a non-negative integer as an Avro `long`: zigzag, then variable length."""
    rest, encoded_bytes = number << 1, bytearray()
    while rest > 0x7F:
        encoded_bytes.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded_bytes.append(rest)
    return bytes(encoded_bytes)


# -- the schema ----------------------------------------------------------------------------------------------------


def _schema_text(entries: dict[str, bytes]) -> bytes:
    text = entries.get("avro.schema", b"")
    if len(text) > SCHEMA_BYTES_MAX:
        raise BadAvro(f"its schema is longer than {SCHEMA_BYTES_MAX} bytes")
    return text


def _schema(entries: dict[str, bytes]) -> object:
    schema: object = json.loads(_schema_text(entries))
    _SchemaBounds().takes_bytes(schema, 0)
    return schema


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _reader_schema(text: bytes, paths: tuple[tuple[str, ...], ...]) -> tuple[bool, Schema | None]:
    """Return whether rows have the first path, and the reader schema with only the given paths (None if rows have none
    of them).

    All manifests of a table have the same schema, so the result is cached.
    """
    schema = _schema({"avro.schema": text})
    target = _reduce_schema(schema, paths)
    return _reduce_schema(schema, paths[:1]) is not None, None if target is None else fastavro.parse_schema(
        cast("Schema", target)
    )


class _SchemaBounds:
    """Checks a schema: it must not be recursive, and items of arrays and maps must take at least one byte."""

    def __init__(self) -> None:
        self._known: dict[object, bool] = {}
        self._empty = 0

    def takes_bytes(self, schema: object, depth: int) -> bool:
        """Return whether each value of a schema takes at least one byte in a file.

        Raises BadAvro for a schema that is nested too deeply, or has arrays or maps of empty items.
        """
        if depth > DEPTH_MAX:
            raise BadAvro(f"its schema has more than {DEPTH_MAX} levels")
        if isinstance(schema, list):
            for each in schema:
                if each != "null":
                    self.takes_bytes(each, depth + 1)
            return True
        takes = self._of(schema, depth)
        if not takes:
            self._empty += 1
            if self._empty > EMPTY_MAX:
                raise BadAvro(f"its schema has more than {EMPTY_MAX} parts without bytes")
        return takes

    def _of(self, schema: object, depth: int) -> bool:
        if not isinstance(schema, dict):
            return self._named_type_takes_bytes(schema)
        kind, names = schema.get("type"), {schema.get("name"), f"{schema.get('namespace')}.{schema.get('name')}"}
        if kind in ("array", "map"):
            if not self.takes_bytes(schema.get("items" if kind == "array" else "values"), depth + 1):
                raise BadAvro("its schema repeats parts without bytes")
            return True
        if kind == "record":
            self._known |= dict.fromkeys(names, False)  # false while the record is checked, for references to itself
            parts = [self.takes_bytes(field["type"], depth + 1) for field in schema["fields"]]
            is_found = any(parts)
        elif kind in ("fixed", "enum"):
            is_found = kind == "enum" or int(schema["size"]) > 0
        else:
            return self.takes_bytes(kind, depth + 1)
        self._known |= dict.fromkeys(names, is_found)
        return is_found

    def _named_type_takes_bytes(self, name: object) -> bool:
        if name == "null":
            return False
        if name in ("boolean", "int", "long", "float", "double", "bytes", "string"):
            return True
        if not self._known.get(name, False):
            raise BadAvro(f"its schema names {str(name)[:40]!r}, which is missing, empty, or recursive")
        return True


_LEAVES: Final = frozenset({"string", "int", "long", "boolean", "null"})


def _is_leaf(schema: object) -> bool:
    kind = schema.get("type") if isinstance(schema, dict) else schema
    return isinstance(kind, str) and kind in _LEAVES


def _is_pairs(schema: object) -> bool:
    """Return whether a schema is an array of records of a key and a value, as Iceberg writes maps with integer keys."""
    items = schema.get("items") if isinstance(schema, dict) and schema.get("type") == "array" else None
    fields = items.get("fields", []) if isinstance(items, dict) else []
    return [each["name"] for each in fields] == ["key", "value"] and all(
        _is_leaf(each["type"]) or each["type"] == "bytes" for each in fields
    )


def _reduce_schema(schema: object, paths: Sequence[tuple[str, ...]]) -> object:
    """Return a schema reduced to the primitive values and maps at some paths; None if none of them exists."""
    if () in paths:
        branches = schema if isinstance(schema, list) else [schema]
        return schema if all(_is_leaf(each) or _is_pairs(each) for each in branches) else None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        return None
    fields: list[object] = []
    for field in schema["fields"]:
        inner = [path[1:] for path in paths if path[0] == field["name"]]
        target = _reduce_schema(field["type"], inner) if inner else None
        if target is not None:
            fields.append({**field, "type": target})
    return {**schema, "fields": fields} if fields else None
