"""Whole objects as seed 2 describes them, assembled from what the store keeps apart: the messages of exports.

May import Protobuf (with the server extra), the generated messages and the rest of `model`. Must not know where the
facts were read. Deterministic: equal facts give equal bytes. `proto/limnos/v1/schema.proto` says what each field means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limnos.model.proto.limnos.v1 import schema_pb2
from limnos.model.records import MAJOR_VERSION, MINOR_VERSION, type_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limnos.model.records import CatalogRecord, MetalakeRecord, NamespaceRecord, TableRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The columns that every object of the tree has. Times are milliseconds since the epoch, UTC."""

    id: int
    name: str
    created_by: str
    created_at_ms: int
    modified_by: str | None = None
    modified_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """One column of a table; `type` as the table format spells it."""

    id: int
    name: str
    type: str
    nullable: bool
    comment: str | None = None
    default_value: str | None = None


def metalake_message(identity: Identity, record: MetalakeRecord) -> bytes:
    """Assemble a Metalake."""
    message = schema_pb2.Metalake(
        id=identity.id,
        name=identity.name,
        comment=record.comment,
        properties=record.properties,
        audit_info=_audit(identity),
        version=_version(),
        in_use=record.in_use,
    )
    return message.SerializeToString(deterministic=True)


def catalog_message(identity: Identity, record: CatalogRecord, *, metalake_id: int) -> bytes:
    """Assemble a Catalog. Raises BadRequest for a type that only a newer version knows."""
    message = schema_pb2.Catalog(
        id=identity.id,
        metalake_id=metalake_id,
        name=identity.name,
        comment=record.comment,
        type=type_number(record.type),
        properties=record.properties,
        audit_info=_audit(identity),
        version=_version(),
        provider=record.provider,
        in_use=record.in_use,
    )
    return message.SerializeToString(deterministic=True)


def namespace_message(
    identity: Identity, record: NamespaceRecord, *, catalog_id: int, parent_id: int | None = None
) -> bytes:
    """Assemble a Namespace; `parent_id` is the parent namespace, None directly below the catalog."""
    message = schema_pb2.Namespace(
        id=identity.id,
        catalog_id=catalog_id,
        parent_id=parent_id,
        name=identity.name,
        comment=record.comment,
        properties=record.properties,
        audit_info=_audit(identity),
        version=_version(),
    )
    return message.SerializeToString(deterministic=True)


def table_message(
    identity: Identity,
    record: TableRecord,
    *,
    catalog_id: int,
    namespace_id: int | None,
    format: str,
    columns: Iterable[ColumnFacts],
) -> bytes:
    """Assemble a Table with its columns in order; `namespace_id` is None directly below the catalog."""
    message = schema_pb2.Table(
        id=identity.id,
        namespace_id=namespace_id,
        catalog_id=catalog_id,
        name=identity.name,
        comment=record.comment,
        format=format,
        columns=[_column(column) for column in columns],
        properties=record.properties,
        audit_info=_audit(identity),
        version=_version(),
    )
    return message.SerializeToString(deterministic=True)


def _column(column: ColumnFacts) -> schema_pb2.Column:
    return schema_pb2.Column(
        id=column.id,
        name=column.name,
        type=column.type,
        nullable=column.nullable,
        comment=column.comment,
        default_value=column.default_value,
    )


def _audit(identity: Identity) -> schema_pb2.AuditInfo:
    audit = schema_pb2.AuditInfo(creator=identity.created_by, last_modifier=identity.modified_by)
    audit.create_time.FromMilliseconds(identity.created_at_ms)
    if identity.modified_at_ms is not None:
        audit.last_modified_time.FromMilliseconds(identity.modified_at_ms)
    return audit


def _version() -> schema_pb2.SchemaVersion:
    return schema_pb2.SchemaVersion(major_version=MAJOR_VERSION, minor_version=MINOR_VERSION)
