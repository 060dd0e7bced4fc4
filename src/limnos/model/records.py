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
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVar

from google.protobuf.message import DecodeError

from limnos.model.errors import BadRequest, LimnosError
from limnos.model.kinds import Kind
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


_Described = (
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
)
_Message = _Described | records_pb2.RoleRecord
D = TypeVar("D", bound=_Described)
M = TypeVar("M", bound=_Message)


@dataclass(frozen=True, slots=True)
class MetalakeRecord:
    """A metalake; `in_use` is false while it is disabled."""

    comment: str | None
    properties: Mapping[str, str]
    in_use: bool
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.MetalakeRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = records_pb2.MetalakeRecord.FromString(self.unknown)
        message.in_use = self.in_use
        return _described(message, self)

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.MetalakeRecord(), data, kind="metalake")
        return cls(_comment(message), dict(message.properties), message.in_use, unknown=_unknown(message))


@dataclass(frozen=True, slots=True)
class CatalogRecord:
    """A catalog; `type` is one of CATALOG_TYPES, `provider` names the connector, such as `lakehouse-iceberg`."""

    type: str
    provider: str
    comment: str | None
    properties: Mapping[str, str]
    in_use: bool
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.CatalogRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = records_pb2.CatalogRecord.FromString(self.unknown)
        message.provider = self.provider
        message.in_use = self.in_use
        if self.type != _type_word(message.type):
            message.type = type_number(self.type)
        return _described(message, self)

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.CatalogRecord(), data, kind="catalog")
        return cls(
            type=_type_word(message.type),
            provider=message.provider,
            comment=_comment(message),
            properties=dict(message.properties),
            in_use=message.in_use,
            unknown=_unknown(message),
        )


@dataclass(frozen=True, slots=True)
class NamespaceRecord:
    """A namespace of any depth."""

    comment: str | None
    properties: Mapping[str, str]
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.NamespaceRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        return _described(records_pb2.NamespaceRecord.FromString(self.unknown), self)

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.NamespaceRecord(), data, kind="namespace")
        return cls(_comment(message), dict(message.properties), unknown=_unknown(message))


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A table, without what its metadata document says. Of Lance's: made without data, and versions kept by the store.

    Of SQL++'s: the statements that made the dataset and its indexes, and the text of its objects' type.
    """

    comment: str | None
    properties: Mapping[str, str]
    declared: bool = False
    managed: bool = False
    statements: tuple[str, ...] = ()
    object_type: str = ""
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.TableRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = _described(records_pb2.TableRecord.FromString(self.unknown), self)
        message.declared, message.managed = self.declared, self.managed
        message.statements.extend(self.statements)
        message.object_type = self.object_type
        return message

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.TableRecord(), data, kind="table")
        return cls(
            _comment(message), dict(message.properties), message.declared, message.managed, tuple(message.statements),
            message.object_type, unknown=_unknown(message),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """A view, without what its metadata document says; `writer_id` is the user who wrote its current text, 0 for nobody."""

    comment: str | None
    properties: Mapping[str, str]
    writer_id: int
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.ViewRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = _described(records_pb2.ViewRecord.FromString(self.unknown), self)
        message.writer_id = self.writer_id
        return message

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.ViewRecord(), data, kind="view")
        return cls(_comment(message), dict(message.properties), message.writer_id, unknown=_unknown(message))


@dataclass(frozen=True, slots=True)
class TagRecord:
    """A tag of a metalake, and the values that it may have where it is attached: any if none are named, none if it is valueless."""

    comment: str | None
    properties: Mapping[str, str]
    allowed_values: tuple[str, ...] = ()
    valueless: bool = False
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.TagRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = _described(records_pb2.TagRecord.FromString(self.unknown), self)
        message.allowed_values.extend(self.allowed_values)
        message.valueless = self.valueless
        return message

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.TagRecord(), data, kind="tag")
        values = tuple(message.allowed_values)
        return cls(_comment(message), dict(message.properties), values, message.valueless, unknown=_unknown(message))


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model, without its versions; `next_version` is the number that the next one gets."""

    comment: str | None
    properties: Mapping[str, str]
    next_version: int = 0
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.ModelRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = _described(records_pb2.ModelRecord.FromString(self.unknown), self)
        message.next_version = self.next_version
        return message

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.ModelRecord(), data, kind="model")
        return cls(_comment(message), dict(message.properties), message.next_version, unknown=_unknown(message))


@dataclass(frozen=True, slots=True)
class FilesetRecord:
    """A fileset: where its files are, by names; the directories of an `external` one are nobody's business here."""

    comment: str | None
    properties: Mapping[str, str]
    external: bool
    locations: Mapping[str, str]
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.FilesetRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = _described(records_pb2.FilesetRecord.FromString(self.unknown), self)
        message.external = self.external
        message.locations.update(self.locations)
        return message

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.FilesetRecord(), data, kind="fileset")
        rest = (message.external, dict(message.locations))
        return cls(_comment(message), dict(message.properties), *rest, unknown=_unknown(message))


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic."""

    comment: str | None
    properties: Mapping[str, str]
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.TopicRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        return _described(records_pb2.TopicRecord.FromString(self.unknown), self)

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.TopicRecord(), data, kind="topic")
        return cls(_comment(message), dict(message.properties), unknown=_unknown(message))


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """A policy of a metalake: what kind of rule it is, whether it is in force, and what it says, as JSON."""

    comment: str | None
    properties: Mapping[str, str]
    policy_type: str
    enabled: bool
    content: str
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.PolicyRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = _described(records_pb2.PolicyRecord.FromString(self.unknown), self)
        message.policy_type, message.enabled, message.content = self.policy_type, self.enabled, self.content
        return message

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.PolicyRecord(), data, kind="policy")
        rest = (message.policy_type, message.enabled, message.content)
        return cls(_comment(message), dict(message.properties), *rest, unknown=_unknown(message))


@dataclass(frozen=True, slots=True)
class JobTemplateRecord:
    """A job template. A pipeline: how often it was declared, and the SHA-256 of the newest declaration. Else its type, and what is run as JSON."""

    comment: str | None
    properties: Mapping[str, str]
    declared: int
    digest: str
    job_type: str = ""
    content: str = ""
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.JobTemplateRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = _described(records_pb2.JobTemplateRecord.FromString(self.unknown), self)
        message.declared, message.digest = self.declared, self.digest
        message.job_type, message.content = self.job_type, self.content
        return message

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.JobTemplateRecord(), data, kind="job template")
        rest = (message.declared, message.digest, message.job_type, message.content)
        return cls(_comment(message), dict(message.properties), *rest, unknown=_unknown(message))


@dataclass(frozen=True, slots=True)
class DeclaredRecord:
    """What SQL++ made that is no table and no view: the statements that made it; of a function one for each number of parameters.

    `definition` is of a function that was registered in other words: JSON; it has no statements then. `dependencies`: of functions, what each
    statement's body named when it was made, as JSON; empty texts, or none at all, where nobody noted it.
    """

    comment: str | None
    properties: Mapping[str, str]
    statements: tuple[str, ...]
    definition: str = ""
    dependencies: tuple[str, ...] = ()
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.DeclaredRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = _described(records_pb2.DeclaredRecord.FromString(self.unknown), self)
        message.statements.extend(self.statements)
        message.definition = self.definition
        message.dependencies.extend(self.dependencies)
        return message

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.DeclaredRecord(), data, kind="declared")
        rest = (tuple(message.statements), message.definition, tuple(message.dependencies))
        return cls(_comment(message), dict(message.properties), *rest, unknown=_unknown(message))


@dataclass(frozen=True, slots=True)
class RoleRecord:
    """A role, without its rules."""

    properties: Mapping[str, str]
    unknown: bytes = field(default=b"", repr=False, kw_only=True)

    def message(self) -> records_pb2.RoleRecord:
        """Build the message: what was not understood when it was read, then every field we know."""
        message = records_pb2.RoleRecord.FromString(self.unknown)
        message.properties.update(self.properties)
        return message

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read stored bytes. Raises UnreadableRecord."""
        message = _parsed(records_pb2.RoleRecord(), data, kind="role")
        return cls(dict(message.properties), unknown=_unknown(message))


NodeRecord = (
    MetalakeRecord
    | CatalogRecord
    | NamespaceRecord
    | TableRecord
    | ViewRecord
    | TagRecord
    | JobTemplateRecord
    | DeclaredRecord
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
    **dict.fromkeys((Kind.DATATYPE, Kind.SYNONYM, Kind.EXTERNAL_DATASET, Kind.FUNCTION), DeclaredRecord),
}
"""Which record a node of each kind carries: a new kind of node is a class above and a line here."""


class _Describes(Protocol):
    @property
    def comment(self) -> str | None: ...
    @property
    def properties(self) -> Mapping[str, str]: ...


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
        message = record.message()
    except UnicodeEncodeError as error:
        raise BadRequest(
            f"A comment or property is not valid Unicode text ({error.reason}). Send it as UTF-8."
        ) from error
    if not message.HasField("version"):  # else a newer minor version wrote it, and its fields are still in there
        message.version.major_version = MAJOR_VERSION
        message.version.minor_version = MINOR_VERSION
    return message.SerializeToString(deterministic=True)


def _described(message: D, record: _Describes) -> D:
    """Fill in what everything that has a comment and properties has."""
    if record.comment is not None:
        message.comment = record.comment
    message.properties.update(record.properties)
    return message


def _comment(message: _Described) -> str | None:
    return message.comment if message.HasField("comment") else None


def type_number(word: str) -> schema_pb2.Catalog.Type:
    """Give the stored number of a catalog type. Raises BadRequest for a word that is none of CATALOG_TYPES."""
    if word not in _TYPE_NUMBERS:
        raise BadRequest(f"Catalog type {word!r} is not known. Use one of {', '.join(CATALOG_TYPES)}.")
    return _TYPE_NUMBERS[word]


def _type_word(number: int) -> str:
    return _TYPE_WORDS.get(number, f"UNKNOWN_{number}")


def _parsed(message: M, data: bytes, *, kind: str) -> M:
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
    return message


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
