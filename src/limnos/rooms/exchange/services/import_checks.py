# SPDX-License-Identifier: Apache-2.0
"""Validates the records of an import one by one, and prepares them for the store, outside of a transaction.

Every error message contains the record's number. Names, catalogs and locations follow the same rules as for objects
that are created.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple, cast

import msgspec

from limnos.formats.gravitino.polaris_policies import translate_policy
from limnos.formats.gravitino.policies import content_text
from limnos.model import errors
from limnos.model.declared_kinds import DECLARED_KINDS
from limnos.model.entities import MetadataDocument
from limnos.model.kinds import TABLE_FORMATS, Kind
from limnos.model.proto.limnos.v1 import records_pb2
from limnos.model.proto.limnos.v1.export_pb2 import Entity, ExportRecord
from limnos.model.proto.limnos.v1.schema_pb2 import Catalog, Namespace, Table
from limnos.model.records import (
    NODE_RECORDS,
    CatalogRecord,
    FilesetRecord,
    NamespaceRecord,
    NodeRecord,
    ObjectRecord,
    PolicyRecord,
    TableRecord,
)
from limnos.model.stored_records import UnreadableRecord
from limnos.names.errors import InvalidName
from limnos.names.parts import check_part
from limnos.names.path import check_catalog_name
from limnos.rooms.exchange.formats.messages import RESTS
from limnos.services.catalog.catalog_checks import catalog_check
from limnos.services.iceberg import views as iceberg_views
from limnos.services.iceberg.registered_tables import table_read_registered
from limnos.services.request.catalog_storage import (
    PROVIDERS_WITH_WAREHOUSE,
    WAREHOUSE,
    CatalogStorage,
    catalog_storage_within,
)
from limnos.services.request.context import Context
from limnos.services.request.defaults import RequestDefaults
from limnos.services.request.named_storages import MetalakeLabel
from limnos.services.request.table_formats import ICEBERG, LANCE
from limnos.services.storage.namespace_locations import check_new_location
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.exchange")
_REPORTED_ERRORS: Final = (
    errors.BadRequest,
    InvalidName,
    errors.MissingFile,
    errors.StorageFailed,
    errors.AlreadyExists,
    errors.UnsupportedOperation,
    UnreadableRecord,
    errors.InvalidTable,
    errors.NotFound,
)
_TYPE_WORDS: Final = {1: "RELATIONAL", 2: "FILE", 3: "STREAM", 4: "ML"}
KINDS: Final[Mapping[str, Kind]] = {kind.word: kind for kind in RESTS}
"""The kinds of entity records, by name."""


class CheckedRecord(NamedTuple):
    """A validated record: its number in the file, the record to store for its object, and the object's document, if
    any.
    """

    number: int
    record: ExportRecord
    stored: NodeRecord | None = None
    document: MetadataDocument | None = None
    data_paths: tuple[str, ...] = ()
    """Locations outside its own to which a table's properties send writers."""


@contextmanager
def with_record_number(number: int) -> Iterator[None]:
    """Convert the errors of an invalid record in the body of a `with` to BadRequest with the record's number in the
    message.
    """
    try:
        yield
    except _REPORTED_ERRORS as error:
        raise errors.BadRequest(f"Record {number}: {error.message}") from error


async def record_check(
    ctx: Context, checked_record: CheckedRecord, *, catalogs: Mapping[int, CatalogRecord]
) -> CheckedRecord:
    """Validate one record. `catalogs` are the catalogs of earlier records, by their ids in the file. Raises BadRequest
    for an invalid record.
    """
    record = checked_record.record
    with with_record_number(checked_record.number):
        word = record.WhichOneof("record")
        if word == "catalog":
            return checked_record._replace(stored=catalogs[record.catalog.id])
        if word == "namespace":
            place = _place(ctx, record.namespace.catalog_id, catalogs=catalogs)
            return checked_record._replace(stored=_namespace(record.namespace, place, unknown=record.unknown))
        if word == "table":
            return await _table(ctx, checked_record, place=_place(ctx, record.table.catalog_id, catalogs=catalogs))
        if word == "entity":
            return await _entity(ctx, checked_record, catalogs=catalogs)
    return checked_record


def catalog_of(
    number: int, record: ExportRecord, *, defaults: RequestDefaults, metalake: MetalakeLabel, keeps_warehouse: bool
) -> CatalogRecord:
    """Validate a catalog's record, and return the record to store. Raises BadRequest for an invalid name or property.

    If the exported catalog had no `warehouse` property, the property is set to its former default, since the tables'
    files are there; without `keeps_warehouse` (the directory is another metalake's) the catalog gets a default of its
    own. Secret properties are encrypted.
    """
    message: Catalog = record.catalog
    with with_record_number(number):
        check_catalog_name(message.name)
        properties = dict(message.properties)
        if keeps_warehouse and record.warehouse and message.provider in PROVIDERS_WITH_WAREHOUSE:
            properties.setdefault(WAREHOUSE, record.warehouse)
        catalog = catalog_check(
            name=message.name,
            catalog_type=_TYPE_WORDS.get(message.type),
            provider=message.provider,
            properties=properties,
            defaults=defaults,
            metalake=metalake,
            catalog_id=None,
        )
        sealed = defaults.storages.keys.seal_properties(properties)
        return replace(
            catalog, properties=sealed, comment=_comment(message), in_use=message.in_use, unknown=record.unknown
        )


def _comment(message: Catalog | Namespace | Table) -> str | None:
    return message.comment if message.HasField("comment") else None


def _place(ctx: Context, catalog_id: int, *, catalogs: Mapping[int, CatalogRecord]) -> CatalogStorage:
    record = catalogs.get(catalog_id)
    if record is None:
        raise errors.BadRequest(f"it is in catalog {catalog_id}, which no earlier record defines")
    return catalog_storage_within(record, "", ctx.services.defaults.allowed, storages=ctx.services.defaults.storages)


def _namespace(message: Namespace, place: CatalogStorage, *, unknown: bytes) -> NamespaceRecord:
    check_part(message.name)
    return check_new_location(
        None, NamespaceRecord(_comment(message), dict(message.properties), unknown=unknown), place
    )


async def _table(ctx: Context, checked_record: CheckedRecord, *, place: CatalogStorage) -> CheckedRecord:
    record = checked_record.record
    message, pointer = record.table, record.pointer
    check_part(message.name)
    if not record.HasField("pointer") or not pointer.location:
        raise errors.BadRequest(f"table {message.name} has no location")
    expected = TABLE_FORMATS.get(place.catalog.provider)
    if message.format != expected:
        raise errors.BadRequest(
            f"table {message.name} is of format '{message.format[:20]}', and its catalog contains {expected or 'none'}"
        )
    paths: tuple[str, ...] = ()
    if message.format == ICEBERG:
        document, _, paths, *_ = await table_read_registered(ctx, place, metadata_location=pointer.metadata_location)
        _check_uuid(document, pointer.uuid)
    else:
        document = MetadataDocument(
            node_id=0,
            version=1,
            uuid=pointer.uuid,
            location=place.normal_location(pointer.location, ""),
            metadata_location="",
            body=b"{}",
        )
    rest = records_pb2.TableRecord()
    rest.CopyFrom(record.beyond)
    rest.properties.clear()
    rest.properties.update(message.properties)
    if message.HasField("comment"):
        rest.comment = message.comment
    rest.version.CopyFrom(message.version)
    return checked_record._replace(
        stored=TableRecord.read(rest.SerializeToString()), document=document, data_paths=paths
    )


def _check_uuid(document: MetadataDocument, uuid: str) -> None:
    if uuid and document.uuid != uuid:
        raise errors.BadRequest(
            f"{document.metadata_location} is the metadata of {document.uuid}, not of {uuid}: another table has"
            " replaced it"
        )


async def _entity(
    ctx: Context, checked_record: CheckedRecord, *, catalogs: Mapping[int, CatalogRecord]
) -> CheckedRecord:
    record = checked_record.record
    message: Entity = record.entity
    kind = KINDS.get(message.kind)
    if kind is None:
        raise errors.BadRequest(f"'{message.kind[:50]}' is not a kind of object that this version imports")
    if message.WhichOneof("rest") != RESTS[kind]:
        raise errors.BadRequest(f"{kind.word} {message.name} has no {RESTS[kind]} record")
    check_part(message.name)
    stored_record = NODE_RECORDS[kind].read(getattr(message, RESTS[kind]).SerializeToString())
    if kind is Kind.VIEW:
        document = await iceberg_views.view_read_registered(
            ctx, _place(ctx, message.catalog_id, catalogs=catalogs), metadata_location=record.pointer.metadata_location
        )
        _check_uuid(document, record.pointer.uuid)
        return checked_record._replace(stored=stored_record, document=document)
    if kind is Kind.FILESET:
        fileset_record, place = cast("FilesetRecord", stored_record), _place(ctx, message.catalog_id, catalogs=catalogs)
        locations = {name: place.normal_location(text, "") for name, text in fileset_record.locations.items()}
        stored_record = replace(fileset_record, locations=locations)
    if kind is Kind.POLICY:
        stored_record = _policy(cast("PolicyRecord", stored_record))
    if kind in DECLARED_KINDS:
        check_own_fields(kind, cast("ObjectRecord", stored_record), name=message.name)
    return checked_record._replace(stored=stored_record)


def check_own_fields(kind: Kind, record: ObjectRecord, *, name: str) -> None:
    """Check the own fields of an object of a declared kind as its routes do. Fields of a newer release are accepted.

    Raises BadRequest for a value that the kind does not allow.
    """
    shape = DECLARED_KINDS[kind].fields
    try:
        own_fields = record.own_fields()
        msgspec.convert({each: own_fields[each] for each in shape.__struct_fields__ if each in own_fields}, shape)
    except msgspec.DecodeError as error:
        raise errors.BadRequest(f"{kind.word} {name} has own fields that this version cannot import: {error}") from None


def _policy(record: PolicyRecord) -> PolicyRecord:
    """Validate the content of a policy, because the server's tasks read the policies of all metalakes. Raises
    BadRequest for invalid content.

    A policy of Polaris becomes one of this server. Its comment names the fields that are dropped.
    """
    translated = translate_policy(record.policy_type, record.content)
    if translated is not None:
        comment = record.comment
        if translated.left_out:
            note = f"Not imported from the policy's type {record.policy_type}: {', '.join(translated.left_out)[:1000]}"
            comment = note if not comment else f"{comment}\n{note}"
            log.warning(
                "a policy of Polaris was imported in part", type=record.policy_type, left_out=translated.left_out
            )
        return replace(
            record,
            policy_type=translated.policy_type,
            content=translated.content,
            comment=comment,
            enabled=record.enabled and translated.enabled,
        )
    try:
        content = msgspec.json.decode(record.content)
    except msgspec.DecodeError as error:
        raise errors.BadRequest(f"the content of the policy is not JSON: {error}") from None
    return replace(record, content=content_text(record.policy_type, content))


def is_lance(table_format: str) -> bool:
    """Return whether a table format is Lance, whose tables may be children of a catalog without a namespace."""
    return table_format == LANCE
