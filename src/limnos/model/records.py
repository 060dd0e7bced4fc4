# SPDX-License-Identifier: Apache-2.0
"""Stored records of objects: frozen values for the services, Protobuf bytes for the store's `record` columns.

The package `model` must not import this module, so that the light client works without Protobuf. Must not know SQL or
wire formats. Ids, names, parents and audit fields are columns of the store and never part of a record (design document
"seed 2"; `proto/limnos/v1/records.proto`).

To change an object, take the value that was read and use `dataclasses.replace`. That preserves fields which a newer
minor version wrote and this version does not know. A newly built value would lose them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import msgspec

from limnos.model.declared_kinds import DECLARED_KINDS
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.proto.limnos.v1 import records_pb2
from limnos.model.stored_records import MAJOR_VERSION, MINOR_VERSION, StoredRecord


@dataclass(frozen=True, slots=True)
class MetalakeRecord(StoredRecord):
    """A metalake; `in_use` is false while it is disabled."""

    MESSAGE = records_pb2.MetalakeRecord
    comment: str | None
    properties: Mapping[str, str]
    in_use: bool


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRecord(StoredRecord):
    """A table, without the content of its metadata document.

    For Lance tables: `declared` (created without data) and `managed` (the store keeps its versions). For SQL++
    datasets: the statements that created the dataset and its indexes, and the definition of its object type.
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
    """A view, without its metadata document. `writer_id` is the user who wrote its current query text, 0 if none."""

    MESSAGE = records_pb2.ViewRecord
    comment: str | None
    properties: Mapping[str, str]
    writer_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesetRecord(StoredRecord):
    """A fileset and its locations by name. The server does not manage the directories of an `external` fileset."""

    MESSAGE = records_pb2.FilesetRecord
    comment: str | None
    properties: Mapping[str, str]
    external: bool
    locations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicRecord(StoredRecord):
    """A topic of a messaging catalog: comment and properties. A topic of a connector catalog is in its source."""

    MESSAGE = records_pb2.TopicRecord
    comment: str | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecord(StoredRecord):
    """A policy of a metalake: its type, whether it is enabled, and its content as JSON.

    `writer_id` is the user who last wrote its content or enabled it, 0 if unknown.
    """

    MESSAGE = records_pb2.PolicyRecord
    comment: str | None
    properties: Mapping[str, str]
    policy_type: str
    enabled: bool
    content: str
    writer_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
class ObjectRecord(StoredRecord):
    """An object of a declared kind; `fields` are its own fields as JSON."""

    MESSAGE = records_pb2.ObjectRecord
    comment: str | None
    properties: Mapping[str, str]
    fields: str = "{}"

    def own_fields(self) -> dict[str, object]:
        """Return its own fields by name. A missing field has its default."""
        return msgspec.json.decode(self.fields or b"{}", type=dict[str, object])

    def with_fields(self, fields: Mapping[str, object]) -> ObjectRecord:
        """Return the record with some own fields set. Fields of a newer release are preserved."""
        text = msgspec.json.encode({**self.own_fields(), **fields}, order="sorted").decode()
        return replace(self, fields=text)


@dataclass(frozen=True, slots=True)
class RoleRecord(StoredRecord):
    """A role, without its grants."""

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
    | ObjectRecord
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
    **dict.fromkeys(DECLARED_KINDS, ObjectRecord),
}
"""The record class of each kind of node. A new kind of node needs a class above and a line here."""


def encode(record: Record) -> bytes:
    """Encode a record; equal values give equal bytes.

    Raises BadRequest for a string that is not valid Unicode (a lone surrogate) and for an unknown catalog type.
    """
    return _blank(_BLANK.index(record)) if record in _BLANK else _encode(record)


BLANK_TABLE: Final = TableRecord(comment=None, properties={})
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
