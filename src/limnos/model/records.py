"""The stored rest of an object: frozen values for the services, Protobuf bytes for the store's `record` columns.

May import Protobuf (with the server extra) and the generated messages, beside the rest of `model`; `model` itself
must not import this module, so that the light client does without. Knows no SQL and no wire format: ids, names,
parents and audit fields are the store's columns and never stand here (seed 2; `proto/limnos/v1/records.proto`).

To change an object, take the value that was read and use `dataclasses.replace`: that carries along what a newer
minor version wrote and this one does not know. A value built afresh would drop it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from google.protobuf.message import DecodeError

from limnos.model.errors import BadRequest, LimnosError
from limnos.model.proto.limnos.v1 import records_pb2, schema_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

MAJOR_VERSION: Final = 1
MINOR_VERSION: Final = 0

_TYPE_NUMBERS: Final = {
    "RELATIONAL": schema_pb2.Catalog.RELATIONAL,
    "FILE": schema_pb2.Catalog.FILE,
    "STREAM": schema_pb2.Catalog.STREAM,
    "ML": schema_pb2.Catalog.ML,
}
_TYPE_WORDS: Final[dict[int, str]] = {number: word for word, number in _TYPE_NUMBERS.items()}
CATALOG_TYPES: Final = tuple(_TYPE_NUMBERS)
"""The types of seed 2. A type that only a newer version knows reads as `UNKNOWN_<number>` and is written back so."""


class UnreadableRecord(LimnosError):
    """Stored bytes that this version cannot or must not read. `found` is None when not even their version is legible."""

    code = "unreadable-record"

    def __init__(self, message: str, *, kind: str, found: tuple[int, int] | None) -> None:
        known = (MAJOR_VERSION, MINOR_VERSION)
        super().__init__(message, kind=kind, found=found, known=known)
        self.kind = kind
        self.found = found
        self.known = known


@dataclass(frozen=True, slots=True)
class MetalakeRecord:
    """A metalake; `in_use` is false while it is disabled."""

    comment: str | None
    properties: Mapping[str, str]
    in_use: bool
    unknown: bytes = field(default=b"", repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CatalogRecord:
    """A catalog; `type` is one of CATALOG_TYPES, `provider` names the connector, such as `lakehouse-iceberg`."""

    type: str
    provider: str
    comment: str | None
    properties: Mapping[str, str]
    in_use: bool
    unknown: bytes = field(default=b"", repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class NamespaceRecord:
    """A namespace of any depth."""

    comment: str | None
    properties: Mapping[str, str]
    unknown: bytes = field(default=b"", repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A table, without what its metadata document says."""

    comment: str | None
    properties: Mapping[str, str]
    unknown: bytes = field(default=b"", repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RoleRecord:
    """A role, without its rules."""

    properties: Mapping[str, str]
    unknown: bytes = field(default=b"", repr=False, kw_only=True)


Record = MetalakeRecord | CatalogRecord | NamespaceRecord | TableRecord | RoleRecord
_Described = (
    records_pb2.MetalakeRecord | records_pb2.CatalogRecord | records_pb2.NamespaceRecord | records_pb2.TableRecord
)
_Message = _Described | records_pb2.RoleRecord


def encode(record: Record) -> bytes:
    """Write a record; equal values give equal bytes.

    Raises BadRequest for text that is no Unicode (a lone surrogate) and for a catalog type that is not known.
    """
    return _blank(_BLANK.index(record)) if record in _BLANK else _encoded(record)


BLANK_TABLE: Final = TableRecord(None, {})
BLANK_NAMESPACE: Final = NamespaceRecord(None, {})
_BLANK: Final[tuple[Record, ...]] = (BLANK_TABLE, BLANK_NAMESPACE)
"""What most new objects carry; their bytes are made once."""


@cache
def _blank(place: int) -> bytes:
    return _encoded(_BLANK[place])


def _encoded(record: Record) -> bytes:
    try:
        message = _filled(record)
    except UnicodeEncodeError as error:
        raise BadRequest(
            f"A comment or property is not valid Unicode text ({error.reason}). Send it as UTF-8."
        ) from error
    if not message.HasField("version"):  # else a newer minor version wrote it, and its fields are still in there
        message.version.major_version = MAJOR_VERSION
        message.version.minor_version = MINOR_VERSION
    return message.SerializeToString(deterministic=True)


def decode_metalake(data: bytes) -> MetalakeRecord:
    """Read a metalake's record. Raises UnreadableRecord."""
    message = records_pb2.MetalakeRecord()
    _parse(message, data, kind="metalake")
    return MetalakeRecord(_comment(message), dict(message.properties), message.in_use, unknown=_unknown(message))


def decode_catalog(data: bytes) -> CatalogRecord:
    """Read a catalog's record. Raises UnreadableRecord."""
    message = records_pb2.CatalogRecord()
    _parse(message, data, kind="catalog")
    return CatalogRecord(
        type=_type_word(message.type),
        provider=message.provider,
        comment=_comment(message),
        properties=dict(message.properties),
        in_use=message.in_use,
        unknown=_unknown(message),
    )


def decode_namespace(data: bytes) -> NamespaceRecord:
    """Read a namespace's record. Raises UnreadableRecord."""
    message = records_pb2.NamespaceRecord()
    _parse(message, data, kind="namespace")
    return NamespaceRecord(_comment(message), dict(message.properties), unknown=_unknown(message))


def decode_table(data: bytes) -> TableRecord:
    """Read a table's record. Raises UnreadableRecord."""
    message = records_pb2.TableRecord()
    _parse(message, data, kind="table")
    return TableRecord(_comment(message), dict(message.properties), unknown=_unknown(message))


def decode_role(data: bytes) -> RoleRecord:
    """Read a role's record. Raises UnreadableRecord."""
    message = records_pb2.RoleRecord()
    _parse(message, data, kind="role")
    return RoleRecord(dict(message.properties), unknown=_unknown(message))


def _filled(record: Record) -> _Message:
    """Build the message: first what was not understood when it was read, then every field we know."""
    message: _Message
    match record:
        case MetalakeRecord():
            message = records_pb2.MetalakeRecord.FromString(record.unknown)
            message.in_use = record.in_use
            _describe(message, record.comment)
        case CatalogRecord():
            message = records_pb2.CatalogRecord.FromString(record.unknown)
            message.provider = record.provider
            message.in_use = record.in_use
            _describe(message, record.comment)
            if record.type != _type_word(message.type):
                message.type = type_number(record.type)
        case NamespaceRecord():
            message = records_pb2.NamespaceRecord.FromString(record.unknown)
            _describe(message, record.comment)
        case TableRecord():
            message = records_pb2.TableRecord.FromString(record.unknown)
            _describe(message, record.comment)
        case RoleRecord():
            message = records_pb2.RoleRecord.FromString(record.unknown)
    message.properties.update(record.properties)
    return message


def _describe(message: _Described, comment: str | None) -> None:
    if comment is not None:
        message.comment = comment


def _comment(message: _Described) -> str | None:
    return message.comment if message.HasField("comment") else None


def type_number(word: str) -> schema_pb2.Catalog.Type:
    """Give the stored number of a catalog type. Raises BadRequest for a word that is none of CATALOG_TYPES."""
    if word not in _TYPE_NUMBERS:
        raise BadRequest(f"Catalog type {word!r} is not known. Use one of {', '.join(CATALOG_TYPES)}.")
    return _TYPE_NUMBERS[word]


def _type_word(number: int) -> str:
    return _TYPE_WORDS.get(number, f"UNKNOWN_{number}")


def _parse(message: _Message, data: bytes, *, kind: str) -> None:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise UnreadableRecord(
            f"The stored record of a {kind} is damaged: it is not a Protobuf message of kind {kind}. "
            "Restore it from a backup or an export.",
            kind=kind,
            found=None,
        ) from error
    _check_version(message.version, kind=kind)


def _check_version(version: schema_pb2.SchemaVersion, *, kind: str) -> None:
    found = (version.major_version, version.minor_version)
    if found[0] == MAJOR_VERSION:
        return
    if found[0] == 0:
        raise UnreadableRecord(
            f"The stored record of a {kind} carries no version, so it was not written by Limnos or is damaged. "
            "Restore it from a backup or an export.",
            kind=kind,
            found=None,
        )
    raise UnreadableRecord(
        f"The stored record of a {kind} has version {found[0]}.{found[1]}; this server reads version {MAJOR_VERSION}.x "
        f"(it knows {MAJOR_VERSION}.{MINOR_VERSION}). Start a server that knows version {found[0]}.",
        kind=kind,
        found=found,
    )


def _unknown(message: _Message) -> bytes:
    """Strip a parsed message of all that this version knows; the rest is kept for the next write.

    The version is part of the rest when a newer minor version wrote it, and so is a catalog type of such a version.
    """
    keep = set()
    if message.version.minor_version > MINOR_VERSION:
        keep.add("version")
    if isinstance(message, records_pb2.CatalogRecord) and message.type not in _TYPE_WORDS:
        keep.add("type")
    for known in message.DESCRIPTOR.fields:
        if known.name not in keep:
            message.ClearField(known.name)
    return message.SerializeToString(deterministic=True)
