# SPDX-License-Identifier: Apache-2.0
"""A stored record: a frozen value with the fields of a Protobuf message, and its conversion from and to bytes.

The package `model` must not import this module. Must not know SQL or wire formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, ClassVar, Final, Self, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from limnos.model.errors import BadRequest, LimnosError
from limnos.model.proto.limnos.v1 import records_pb2, schema_pb2

MAJOR_VERSION: Final = 1
MINOR_VERSION: Final = 0
SHARED_BYTES_MAX: Final = 64
"""The maximum size of stored bytes whose record is shared: most tables have a few bytes and the same ones."""
SHARED_MAX: Final = 4_096
"""The maximum number of shared records."""

_TYPE_NUMBERS: Final = {
    "RELATIONAL": schema_pb2.Catalog.RELATIONAL,
    "FILE": schema_pb2.Catalog.FILE,
    "STREAM": schema_pb2.Catalog.STREAM,
    "ML": schema_pb2.Catalog.ML,
}
_TYPE_WORDS: Final[dict[int, str]] = {number: word for word, number in _TYPE_NUMBERS.items()}
CATALOG_TYPES: Final = tuple(_TYPE_NUMBERS)
"""The catalog types of records. A type of a newer version is read as `UNKNOWN_<number>` and written back unchanged."""


class UnreadableRecord(LimnosError):
    """Stored bytes are malformed, or of a newer major version.

    `stored_version` is None if even the version is unreadable.
    """

    code = "unreadable-record"

    def __init__(self, message: str, *, kind: str, version: tuple[int, int] | None) -> None:
        own_version = (MAJOR_VERSION, MINOR_VERSION)
        super().__init__(message, kind=kind, found=version, known=own_version)
        self.kind = kind
        self.stored_version = version
        self.known = own_version


RecordMessage = (
    records_pb2.MetalakeRecord
    | records_pb2.CatalogRecord
    | records_pb2.NamespaceRecord
    | records_pb2.TableRecord
    | records_pb2.ViewRecord
    | records_pb2.TagRecord
    | records_pb2.JobTemplateRecord
    | records_pb2.DeclaredRecord
    | records_pb2.ModelRecord
    | records_pb2.FilesetRecord
    | records_pb2.TopicRecord
    | records_pb2.PolicyRecord
    | records_pb2.ObjectRecord
    | records_pb2.RoleRecord
)


_Reader = Callable[[Any, str], object]


def _read_optional(message: Any, name: str) -> object:  # noqa: ANN401 - any message
    return getattr(message, name) if message.HasField(name) else None


@cache
def _readers_of(message: Hashable) -> Mapping[str, _Reader]:
    """Return the function that reads each field of a message class, by the field's name; `version` is omitted."""
    return {
        field.name: _reader_of(cast("FieldDescriptor", field))
        for field in cast("type[RecordMessage]", message).DESCRIPTOR.fields
        if field.name != "version"
    }


def _readers(message: type[RecordMessage]) -> Mapping[str, _Reader]:
    return _readers_of(cast("Hashable", message))  # a message has no hash, but its class has


def _reader_of(known: FieldDescriptor) -> _Reader:
    if known.message_type is not None:
        return lambda message, name: dict(getattr(message, name))
    if known.is_repeated:
        return lambda message, name: tuple(getattr(message, name))
    if known.enum_type is not None:
        return lambda message, name: _type_word(getattr(message, name))
    return _read_optional if known.has_presence else getattr


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """The record of an object. Its fields have the names of its message's fields."""

    MESSAGE: ClassVar[type[RecordMessage]]
    unknown: bytes = field(default=b"", repr=False, kw_only=True)
    """Fields that a newer minor version wrote, as bytes."""

    def message(self) -> RecordMessage:
        """Build the Protobuf message: the unknown fields preserved from the last read, then every known field."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _readers(self.MESSAGE)}
        if not self.unknown:
            if "type" in values:
                values["type"] = type_number(values["type"])
            return self.MESSAGE(**values)
        message: Any = self.MESSAGE.FromString(self.unknown)
        if "type" in values:
            is_known_type = values["type"] == _type_word(message.type)
            values["type"] = None if is_known_type else type_number(values["type"])
        message.MergeFrom(self.MESSAGE(**values))
        return cast("RecordMessage", message)

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Decode stored bytes. Short inputs are cached, so equal bytes share one record.

        Raises UnreadableRecord for malformed bytes or a newer major version.
        """
        if len(data) <= SHARED_BYTES_MAX:
            return cast("Self", _shared_record(cast("Hashable", cls), data))
        return cls.decode(data)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decode stored bytes into a new record, which is not shared.

        Raises UnreadableRecord for malformed bytes or a newer major version.
        """
        message = _parse(cls.MESSAGE, data)
        values: dict[str, Any] = {name: read(message, name) for name, read in _readers(cls.MESSAGE).items()}
        return cls(**values, unknown=_unknown(message))


@lru_cache(maxsize=SHARED_MAX)
def _shared_record(record: Hashable, data: bytes) -> StoredRecord:
    return cast("type[StoredRecord]", record).decode(data)


def type_number(word: str) -> schema_pb2.Catalog.Type:
    """Return the stored enum value of a catalog type. Raises BadRequest for a name that is not in CATALOG_TYPES."""
    if word not in _TYPE_NUMBERS:
        raise BadRequest(f"Catalog type {word!r} is unknown. Use one of {', '.join(CATALOG_TYPES)}.")
    return _TYPE_NUMBERS[word]


def _type_word(number: int) -> str:
    return _TYPE_WORDS.get(number, f"UNKNOWN_{number}")


def _parse(shape: type[RecordMessage], data: bytes) -> RecordMessage:
    """Parse a message of this major version. Raises UnreadableRecord for malformed bytes or a newer major version."""
    try:
        message = shape.FromString(data)
    except DecodeError as error:
        kind = _kind_word(shape)
        raise UnreadableRecord(
            f"The stored record of a {kind} is damaged: it is not a Protobuf message of kind {kind}. "
            "Restore it from a backup or an export.",
            kind=kind,
            version=None,
        ) from error
    _check_version(message)
    return message


def _kind_word(shape: type[RecordMessage]) -> str:
    """Return a kind's name in words: its message's name without the suffix `Record`."""
    return " ".join(re.findall("[A-Z][a-z]+", shape.DESCRIPTOR.name)[:-1]).lower()


def _check_version(message: RecordMessage) -> None:
    version = message.version
    if version.major_version == MAJOR_VERSION:
        return
    result, kind = (version.major_version, version.minor_version), _kind_word(type(message))
    if result[0] == 0:
        raise UnreadableRecord(
            f"The stored record of a {kind} has no version, so it was not written by Limnos or is damaged. "
            "Restore it from a backup or an export.",
            kind=kind,
            version=None,
        )
    raise UnreadableRecord(
        f"The stored record of a {kind} has version {result[0]}.{result[1]}; this server reads version"
        f" {MAJOR_VERSION}.x (at most {MAJOR_VERSION}.{MINOR_VERSION}). Start a server that supports version"
        f" {result[0]}.",
        kind=kind,
        version=result,
    )


def _unknown(message: RecordMessage) -> bytes:
    """Return the fields of a parsed message that this version does not know, as bytes for the next write.

    They include the version if a newer minor version wrote the record, and a catalog type of such a version. Nearly
    every record has none, which is detected without copying the message.
    """
    keep = set()
    if message.version.minor_version > MINOR_VERSION:
        keep.add("version")
    if isinstance(message, records_pb2.CatalogRecord) and message.type not in _TYPE_WORDS:
        keep.add("type")
    if not keep and not UnknownFieldSet(message):
        return b""
    for descriptor in message.DESCRIPTOR.fields:
        if descriptor.name not in keep:
            message.ClearField(descriptor.name)
    return message.SerializeToString(deterministic=True)
