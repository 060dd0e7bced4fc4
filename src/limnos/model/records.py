"""Stored records of objects: frozen values for the services, Protobuf bytes for the store's `record` columns.

May import Protobuf (with the server extra), the generated messages and the rest of `model`. The package `model` must
not import this module, so that the light client works without Protobuf. Must not know SQL or wire formats. Ids, names,
parents and audit fields are columns of the store and never part of a record (design document "seed 2";
`proto/limnos/v1/records.proto`).

To change an object, take the value that was read and use `dataclasses.replace`. That preserves fields which a newer
minor version wrote and this version does not know. A newly built value would lose them.
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
from limnos.model.kinds import Kind
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
"""The catalog types of seed 2. A type of a newer version is read as `UNKNOWN_<number>` and written back unchanged."""


class UnreadableRecord(LimnosError):
    """Stored bytes are malformed, or of a newer major version.

    `stored_version` is None if even the version is unreadable.
    """

    code = "unreadable-record"

    def __init__(self, message: str, *, kind: str, version: tuple[int, int] | None) -> None:
        known = (MAJOR_VERSION, MINOR_VERSION)
        super().__init__(message, kind=kind, found=version, known=known)
        self.kind = kind
        self.stored_version = version
        self.known = known


_Message = (
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
    | records_pb2.RoleRecord
)


_Reader = Callable[[Any, str], object]


def _given(message: Any, name: str) -> object:  # noqa: ANN401 - any message
    return getattr(message, name) if message.HasField(name) else None


@cache
def _readers_of(message: Hashable) -> Mapping[str, _Reader]:
    """Return for each field of a message class the function that reads it, except for the field `version`."""
    return {
        known.name: _reader_of(cast("FieldDescriptor", known))
        for known in cast("type[_Message]", message).DESCRIPTOR.fields
        if known.name != "version"
    }


def _readers(message: type[_Message]) -> Mapping[str, _Reader]:
    return _readers_of(cast("Hashable", message))  # a message has no hash, but its class has


def _reader_of(known: FieldDescriptor) -> _Reader:
    if known.message_type is not None:
        return lambda message, name: dict(getattr(message, name))
    if known.is_repeated:
        return lambda message, name: tuple(getattr(message, name))
    if known.enum_type is not None:
        return lambda message, name: _type_word(getattr(message, name))
    return _given if known.has_presence else getattr


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """The record of an object. Its fields have the names of its message's fields."""

    MESSAGE: ClassVar[type[_Message]]
    unknown: bytes = field(default=b"", repr=False, kw_only=True)
    """Fields that a newer minor version wrote, as bytes."""

    def message(self) -> _Message:
        """Build the Protobuf message: the unknown fields preserved from the last read, then every known field."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _readers(self.MESSAGE)}
        if not self.unknown:
            if "type" in values:
                values["type"] = type_number(values["type"])
            return self.MESSAGE(**values)
        message: Any = self.MESSAGE.FromString(self.unknown)
        if "type" in values:
            known = values["type"] == _type_word(message.type)
            values["type"] = None if known else type_number(values["type"])
        message.MergeFrom(self.MESSAGE(**values))
        return cast("_Message", message)

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


@dataclass(frozen=True, slots=True)
class MetalakeRecord(StoredRecord):
    """A metalake; `in_use` is false while it is disabled."""

    MESSAGE = records_pb2.MetalakeRecord
    comment: str | None
    properties: Mapping[str, str]
    in_use: bool


@dataclass(frozen=True, slots=True)
class CatalogRecord(StoredRecord):
    """A catalog; `type` is one of CATALOG_TYPES, `provider` names the connector, such as `lakehouse-iceberg`."""

    MESSAGE = records_pb2.CatalogRecord
    type: str
    provider: str
    comment: str | None
    properties: Mapping[str, str]
    in_use: bool


@dataclass(frozen=True, slots=True)
class NamespaceRecord(StoredRecord):
    """A namespace of any depth."""

    MESSAGE = records_pb2.NamespaceRecord
    comment: str | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TableRecord(StoredRecord):
    """A table, without the content of its metadata document.

    For Lance tables: `declared` (created without data) and `managed` (the store keeps its versions). For SQL++
    datasets: the statements that created the dataset and its indexes, and the text of its object type.
    """

    MESSAGE = records_pb2.TableRecord
    comment: str | None
    properties: Mapping[str, str]
    declared: bool = False
    managed: bool = False
    statements: tuple[str, ...] = ()
    object_type: str = ""


@dataclass(frozen=True, slots=True)
class ViewRecord(StoredRecord):
    """A view, without its metadata document. `writer_id` is the user who wrote its current text, 0 if none did."""

    MESSAGE = records_pb2.ViewRecord
    comment: str | None
    properties: Mapping[str, str]
    writer_id: int


@dataclass(frozen=True, slots=True)
class TagRecord(StoredRecord):
    """A tag, and the values allowed in its attachments: any if the list is empty, none if the tag is `valueless`."""

    MESSAGE = records_pb2.TagRecord
    comment: str | None
    properties: Mapping[str, str]
    allowed_values: tuple[str, ...] = ()
    valueless: bool = False


@dataclass(frozen=True, slots=True)
class ModelRecord(StoredRecord):
    """A model, without its versions. `next_version` is the number of the next version."""

    MESSAGE = records_pb2.ModelRecord
    comment: str | None
    properties: Mapping[str, str]
    next_version: int = 0


@dataclass(frozen=True, slots=True)
class FilesetRecord(StoredRecord):
    """A fileset and its locations by name. The server does not manage the directories of an `external` fileset."""

    MESSAGE = records_pb2.FilesetRecord
    comment: str | None
    properties: Mapping[str, str]
    external: bool
    locations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicRecord(StoredRecord):
    """A topic of a messaging catalog: comment and properties. The topic itself is in the external system."""

    MESSAGE = records_pb2.TopicRecord
    comment: str | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PolicyRecord(StoredRecord):
    """A policy of a metalake: its type, whether it is enabled, and its content as JSON."""

    MESSAGE = records_pb2.PolicyRecord
    comment: str | None
    properties: Mapping[str, str]
    policy_type: str
    enabled: bool
    content: str


@dataclass(frozen=True, slots=True)
class JobTemplateRecord(StoredRecord):
    """A job template or a pipeline.

    A pipeline has the version number and the SHA-256 of its newest declaration. A job template has a type, and its
    content as JSON.
    """

    MESSAGE = records_pb2.JobTemplateRecord
    comment: str | None
    properties: Mapping[str, str]
    declared: int
    digest: str
    job_type: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class SqlppObjectRecord(StoredRecord):
    """A SQL++ object other than a table or view, with the statements that created it.

    A function has one statement per arity. `definition` is the JSON of a function registered through Gravitino's API,
    which has no statements. `dependencies` are the names that the body of each of a function's statements used at its
    creation, as JSON; empty if they were not recorded.
    """

    MESSAGE = records_pb2.DeclaredRecord
    comment: str | None
    properties: Mapping[str, str]
    statements: tuple[str, ...]
    definition: str = ""
    dependencies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleRecord(StoredRecord):
    """A role, without its rules."""

    MESSAGE = records_pb2.RoleRecord
    properties: Mapping[str, str]


NodeRecord = (
    MetalakeRecord
    | CatalogRecord
    | NamespaceRecord
    | TableRecord
    | ViewRecord
    | TagRecord
    | JobTemplateRecord
    | SqlppObjectRecord
    | ModelRecord
    | FilesetRecord
    | TopicRecord
    | PolicyRecord
)
Record = NodeRecord | RoleRecord
NODE_RECORDS: Final[Mapping[Kind, type[NodeRecord]]] = {
    Kind.METALAKE: MetalakeRecord,
    Kind.CATALOG: CatalogRecord,
    Kind.NAMESPACE: NamespaceRecord,
    Kind.TABLE: TableRecord,
    Kind.VIEW: ViewRecord,
    Kind.TAG: TagRecord,
    Kind.JOB_TEMPLATE: JobTemplateRecord,
    Kind.MODEL: ModelRecord,
    Kind.FILESET: FilesetRecord,
    Kind.TOPIC: TopicRecord,
    Kind.POLICY: PolicyRecord,
    **dict.fromkeys((Kind.DATATYPE, Kind.SYNONYM, Kind.EXTERNAL_DATASET, Kind.FUNCTION), SqlppObjectRecord),
}
"""The record class of each kind of node. A new kind of node needs a class above and a line here."""


def encode(record: Record) -> bytes:
    """Encode a record; equal values give equal bytes.

    Raises BadRequest for text that is not Unicode (a lone surrogate) and for an unknown catalog type.
    """
    return _blank(_BLANK.index(record)) if record in _BLANK else _encode(record)


BLANK_TABLE: Final = TableRecord(None, {})
BLANK_NAMESPACE: Final = NamespaceRecord(None, {})
_BLANK: Final[tuple[Record, ...]] = (BLANK_TABLE, BLANK_NAMESPACE)
"""Encoded records of most new objects, computed once."""


@cache
def _blank(place: int) -> bytes:
    return _encode(_BLANK[place])


def _encode(record: Record) -> bytes:
    try:
        message = record.message()
    except UnicodeEncodeError as error:
        raise BadRequest(
            f"A comment or property is not valid Unicode text ({error.reason}). Send it as UTF-8."
        ) from error
    # A version means that a newer minor version wrote it; its unknown fields are kept.
    if not message.HasField("version"):
        message.version.major_version = MAJOR_VERSION
        message.version.minor_version = MINOR_VERSION
    return message.SerializeToString(deterministic=True)


def type_number(word: str) -> schema_pb2.Catalog.Type:
    """Return the stored enum value of a catalog type. Raises BadRequest for a name that is not in CATALOG_TYPES."""
    if word not in _TYPE_NUMBERS:
        raise BadRequest(f"Catalog type {word!r} is unknown. Use one of {', '.join(CATALOG_TYPES)}.")
    return _TYPE_NUMBERS[word]


def _type_word(number: int) -> str:
    return _TYPE_WORDS.get(number, f"UNKNOWN_{number}")


def _parse(shape: type[_Message], data: bytes) -> _Message:
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


def _kind_word(shape: type[_Message]) -> str:
    """Return a kind's name in words: its message's name without the suffix `Record`."""
    return " ".join(re.findall("[A-Z][a-z]+", shape.DESCRIPTOR.name)[:-1]).lower()


def _check_version(message: _Message) -> None:
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
        f"The stored record of a {kind} has version {result[0]}.{result[1]}; this server reads version {MAJOR_VERSION}.x "
        f"(at most {MAJOR_VERSION}.{MINOR_VERSION}). Start a server that supports version {result[0]}.",
        kind=kind,
        version=result,
    )


def _unknown(message: _Message) -> bytes:
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
    for known in message.DESCRIPTOR.fields:
        if known.name not in keep:
            message.ClearField(known.name)
    return message.SerializeToString(deterministic=True)
