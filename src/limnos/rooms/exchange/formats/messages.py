# SPDX-License-Identifier: Apache-2.0
"""Builds the records of an export from stored values.

Must not know the selection and order of exported objects. Pure: each function takes values and returns a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from limnos.formats.iceberg.read_restrictions import check_action
from limnos.formats.iceberg.row_filters import read_stored_filter
from limnos.model.entities import MetadataDocument, Node, Principal
from limnos.model.errors import BadRequest
from limnos.model.kind_table import KIND_TABLE
from limnos.model.kinds import Kind
from limnos.model.lance import LanceVersion
from limnos.model.model_versions import ModelVersion
from limnos.model.privileges import Privilege, parse_privilege
from limnos.model.proto.limnos.v1 import export_pb2, records_pb2, schema_pb2
from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord, ReadRestriction
from limnos.model.records import CatalogRecord, MetalakeRecord, NamespaceRecord, TableRecord, encode
from limnos.model.restrictions import ColumnMask, FormerColumn, Restriction, RestrictionTerms
from limnos.model.statistics import Statistic
from limnos.model.stored_records import MAJOR_VERSION, MINOR_VERSION, type_number

_ENTITY = "entity."
RESTS: Final[Mapping[Kind, str]] = {
    kind: row.export.removeprefix(_ENTITY)
    for kind, row in KIND_TABLE.items()
    if row.export and row.export.startswith(_ENTITY)
}
"""For each kind, the field of an entity that contains its stored record."""


def version() -> schema_pb2.SchemaVersion:
    """Return the schema version (major, minor) of the export format that this release writes."""
    return schema_pb2.SchemaVersion(major_version=MAJOR_VERSION, minor_version=MINOR_VERSION)


def stamp(at_ms: int) -> Timestamp:
    """Convert a time in milliseconds since 1970 to a Protobuf Timestamp."""
    return Timestamp(seconds=at_ms // 1000, nanos=at_ms % 1000 * 1_000_000)


def millis(at: Timestamp) -> int:
    """Convert a Protobuf Timestamp to milliseconds since 1970."""
    return at.seconds * 1000 + at.nanos // 1_000_000


def audit(result: tuple[str, int], changed: tuple[str | None, int | None]) -> schema_pb2.AuditInfo:
    """Build the audit information of an object from (creator, creation time) and (last modifier, time), in milliseconds
    since 1970.
    """
    info = schema_pb2.AuditInfo(creator=result[0], create_time=stamp(result[1]))
    if changed[0] is not None:
        info.last_modifier = changed[0]
    if changed[1] is not None:
        info.last_modified_time.CopyFrom(stamp(changed[1]))
    return info


def header(*, metalake: str, product: str, now_ms: int, epoch: int, revisions: tuple[int, int]) -> ExportRecord:
    """Build the first record of an export: its metalake, time, epoch and revisions (of the server and of the
    metalake).
    """
    head = export_pb2.ExportHeader(
        version=version(),
        metalake=metalake,
        product=product,
        time=stamp(now_ms),
        epoch=epoch,
        server_revision=revisions[0],
        metalake_revision=revisions[1],
    )
    return ExportRecord(header=head)


def trailer(records: int) -> ExportRecord:
    """Build the last record of an export; `records` is the count of records before it."""
    return ExportRecord(trailer=export_pb2.ExportTrailer(records=records + 1))


def principal(result: Principal) -> ExportRecord:
    """Build the export record of a user or group."""
    message = export_pb2.Principal(
        id=result.id,
        kind=result.kind.word,
        name=result.name,
        external_id=result.external_id,
        enabled=result.enabled,
        audit_info=_audit(result),
        version=version(),
        successor=result.tokens_from > 0,
    )
    return ExportRecord(principal=message)


def metalake(node: Node, *, owner_id: int | None) -> ExportRecord:
    """Build the export record of the metalake."""
    record = cast("MetalakeRecord", node.record)
    message = schema_pb2.Metalake(
        id=node.id,
        name=node.name,
        comment=record.comment,
        properties=record.properties,
        audit_info=_audit(node),
        version=version(),
        in_use=record.in_use,
    )
    return ExportRecord(metalake=message, owner_id=owner_id or 0, unknown=record.unknown)


def catalog(node: Node, *, properties: Mapping[str, str], masked: Sequence[str], warehouse: str) -> ExportRecord:
    """Build the export record of a catalog, with the properties that may be exported."""
    record = cast("CatalogRecord", node.record)
    message = schema_pb2.Catalog(
        id=node.id,
        metalake_id=node.parent_id,
        name=node.name,
        comment=record.comment,
        type=type_number(record.type),
        properties=properties,
        audit_info=_audit(node),
        version=version(),
        provider=record.provider,
        in_use=record.in_use,
    )
    return ExportRecord(catalog=message, unknown=record.unknown, masked=masked, warehouse=warehouse)


def node_record(node: Node, document: MetadataDocument | None) -> ExportRecord:
    """Build the export record of an object in a catalog, or of a metalake object."""
    record = EXPORTERS[node.kind](node, document)
    if document is not None:
        record.pointer.CopyFrom(
            export_pb2.Pointer(
                uuid=document.uuid, location=document.location, metadata_location=document.metadata_location
            )
        )
    return record


def _namespace(node: Node, _: MetadataDocument | None) -> ExportRecord:
    record = cast("NamespaceRecord", node.record)
    message = schema_pb2.Namespace(
        id=node.id,
        catalog_id=node.zone,
        parent_id=_parent(node),
        name=node.name,
        comment=record.comment,
        properties=record.properties,
        audit_info=_audit(node),
        version=version(),
    )
    return ExportRecord(namespace=message, implicit=node.implicit, unknown=record.unknown)


def _table(node: Node, document: MetadataDocument | None) -> ExportRecord:
    record = cast("TableRecord", node.record)
    columns = columns_of(document.body) if document is not None and document.metadata_location else []
    message = schema_pb2.Table(
        id=node.id,
        namespace_id=_parent(node),
        catalog_id=node.zone,
        name=node.name,
        comment=record.comment,
        format=node.format,
        columns=columns,
        properties=record.properties,
        audit_info=_audit(node),
        version=version(),
    )
    beyond = records_pb2.TableRecord.FromString(encode(record))
    beyond.ClearField("comment")
    beyond.properties.clear()
    return ExportRecord(table=message, beyond=beyond)


def _entity(node: Node, _: MetadataDocument | None) -> ExportRecord:
    message = export_pb2.Entity(
        id=node.id,
        parent_id=node.parent_id,
        catalog_id=0 if node.kind.home.value == "metalake" else node.zone,
        kind=node.kind.word,
        name=node.name,
        format=node.format,
        audit_info=_audit(node),
        version=version(),
    )
    getattr(message, RESTS[node.kind]).MergeFromString(encode(node.record))
    return ExportRecord(entity=message)


EXPORTERS: Final[Mapping[Kind, Callable[[Node, MetadataDocument | None], ExportRecord]]] = {
    Kind.NAMESPACE: _namespace,
    Kind.TABLE: _table,
    **dict.fromkeys(RESTS, _entity),
}
"""The function that builds the record, for each kind below the metalake."""


def _parent(node: Node) -> int | None:
    return None if node.parent_id == node.zone else node.parent_id


def _audit(result: Node | Principal | ModelVersion | Statistic) -> schema_pb2.AuditInfo:
    return audit((result.created_by, result.created_at), (result.modified_by, result.modified_at))


class _IcebergField(msgspec.Struct, kw_only=True):
    name: str
    type: msgspec.Raw | str = ""
    id: int = 0
    required: bool = False
    doc: str | None = None
    default: msgspec.Raw | None = msgspec.field(default=None, name="write-default")


class _IcebergSchema(msgspec.Struct):
    fields: list[_IcebergField] = []
    number: int = msgspec.field(default=0, name="schema-id")


class _IcebergMetadata(msgspec.Struct):
    current: int = msgspec.field(default=0, name="current-schema-id")
    schemas: list[_IcebergSchema] = []
    schema: _IcebergSchema | None = None


_metadata = msgspec.json.Decoder(_IcebergMetadata)


def columns_of(body: bytes) -> list[schema_pb2.Column]:
    """Return the columns of an Iceberg table, in order; empty for malformed metadata."""
    try:
        metadata = _metadata.decode(body)
    except msgspec.DecodeError:
        return []
    schema = next((each for each in metadata.schemas if each.number == metadata.current), metadata.schema)
    return [] if schema is None else [_column(field) for field in schema.fields]


def _column(field: _IcebergField) -> schema_pb2.Column:
    raw = bytes(field.type) if isinstance(field.type, msgspec.Raw) else field.type.encode()
    text = msgspec.json.decode(raw) if raw.startswith(b'"') else raw.decode()
    default = None if field.default is None else bytes(field.default).decode()
    return schema_pb2.Column(
        id=field.id, name=field.name, type=text, nullable=not field.required, comment=field.doc, default_value=default
    )


def role(
    role_id: int, name: str, *, record: bytes, audit_info: schema_pb2.AuditInfo, owner_id: int | None
) -> ExportRecord:
    """Build the export record of a role. Its grants and members are separate records."""
    rest = records_pb2.RoleRecord.FromString(record)
    message = export_pb2.Role(id=role_id, name=name, audit_info=audit_info, version=version(), rest=rest)
    return ExportRecord(role=message, owner_id=owner_id or 0)


def grant(role_id: int, object_id: int, *, privilege: str, allowed: bool) -> ExportRecord:
    """Build the export record of a grant or denial of a privilege to a role."""
    return ExportRecord(
        grant=export_pb2.Grant(role_id=role_id, object_id=object_id, privilege=privilege, allowed=allowed)
    )


def link(kind: str, *, from_id: int, to_id: int) -> ExportRecord:
    """Build the export record of a relation between two objects, such as a membership."""
    return ExportRecord(link=export_pb2.Link(kind=kind, from_id=from_id, to_id=to_id))


def attachment_record(kind: str, row: Sequence[int], *, values: Sequence[str] = ()) -> ExportRecord:
    """Build the export record of a tag or policy attached to an object or column.

    `row` has the ids of the object, the tag or policy, the column's field, and the user who attached it (0 if unknown).
    """
    message = export_pb2.Link(
        kind=kind, from_id=row[0], to_id=row[1], field_id=row[2], values=values, attached_by=row[3]
    )
    return ExportRecord(link=message)


def protection_record(node_id: int, *, below: bool, set_by: str, set_at: int) -> ExportRecord:
    """Build the export record of the protection of an object."""
    message = export_pb2.Link(
        kind="protected", from_id=node_id, to_id=node_id, below=below, set_by=set_by, set_at=stamp(set_at)
    )
    return ExportRecord(link=message)


def model_version(model_id: int, result: ModelVersion) -> ExportRecord:
    """Build the export record of a version of a model, with its URIs and aliases."""
    message = export_pb2.ModelVersion(
        model_id=model_id,
        number=result.version,
        comment=result.comment,
        properties=result.properties,
        uris=result.uris,
        aliases=result.aliases,
        audit_info=_audit(result),
    )
    return ExportRecord(model_version=message)


def lance_version(table_id: int, result: LanceVersion) -> ExportRecord:
    """Build the export record of a managed version of a Lance table."""
    message = export_pb2.LanceVersion(
        table_id=table_id,
        branch=result.branch,
        number=result.version,
        scheme=result.scheme,
        staged=result.staged,
        size=result.size,
        e_tag=result.e_tag,
        metadata=result.metadata,
        created_at=stamp(result.created_at),
        settled=result.settled,
    )
    return ExportRecord(lance_version=message)


def statistic(table_id: int, result: Statistic, *, field_id: int = 0) -> ExportRecord:
    """Build the export record of a custom statistic of a table, a partition or a column."""
    message = export_pb2.Statistic(
        table_id=table_id,
        partition=result.partition,
        name=result.name,
        value=result.value,
        audit_info=_audit(result),
        field_id=field_id,
    )
    return ExportRecord(statistic=message)


def restriction(result: Restriction) -> ExportRecord:
    """Build the export record of a read restriction of a table or namespace."""
    terms = result.terms
    message = export_pb2.ReadRestriction(
        object_id=result.object_id,
        name=result.name,
        row_filter=terms.row_filter,
        to_ids=terms.to,
        except_ids=terms.unless,
        masks=[
            export_pb2.ColumnMask(column=each.column, action=each.action, field_id=each.field_id)
            for each in terms.masks
        ],
        set_by=result.set_by,
        set_at=stamp(result.set_at),
        former=[
            export_pb2.FormerColumn(table_id=each.table_id, field_id=each.field_id, name=each.name)
            for each in terms.former
        ],
        inherited=terms.inherited,
        denies=[Privilege(each).word for each in terms.denies],
    )
    return ExportRecord(restriction=message)


def terms_of(message: ReadRestriction, ids: Callable[[Iterable[int]], tuple[int, ...]]) -> RestrictionTerms:
    """Return the terms of a restriction; `ids` maps exported ids to those of this store, and omits unknown ones.

    If one of the principals that it restricts is unknown, it restricts all users. Raises BadRequest for an invalid
    filter or mask.
    """
    masks = tuple([ColumnMask(each.column, check_action(each.action), each.field_id) for each in message.masks])
    row_filter = message.row_filter
    if row_filter:
        try:
            row_filter = msgspec.json.encode(read_stored_filter(msgspec.json.decode(row_filter))).decode()
        except msgspec.DecodeError:
            raise BadRequest(f"the filter of restriction {message.name[:100]} is not JSON") from None
    to = ids(message.to_ids)
    former = tuple(
        [
            FormerColumn(table_id, each.field_id, each.name)
            for each in message.former
            for table_id in ids((each.table_id,))
        ]
    )
    return RestrictionTerms(
        row_filter=row_filter,
        masks=masks,
        to=to if len(to) == len(message.to_ids) else (),
        unless=ids(message.except_ids),
        former=former,
        inherited=message.inherited,
        denies=tuple(int(parse_privilege(each)) for each in message.denies),
    )


def declaration(row: Sequence[object]) -> ExportRecord:
    """Build the export record of a version of a pipeline's declaration.

    `row`: pipeline id, version number, digest, text, author, time in milliseconds since 1970.
    """
    pipeline_id, number, digest, text, declared_by, declared_at = cast("tuple[int, int, str, str, str, int]", row)
    message = export_pb2.Declaration(
        pipeline_id=pipeline_id,
        number=number,
        digest=digest,
        text=text,
        declared_by=declared_by,
        declared_at=stamp(declared_at),
    )
    return ExportRecord(declaration=message)
