# SPDX-License-Identifier: Apache-2.0
"""Writes one batch of an import: assigns ids, resolves references, and inserts rows and storage locations.

Runs inside a transaction, on records that were checked before. Must not know the content of each kind of record:
`import_rows` has a method for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, cast

from limnos.access.principal_names import ascii_skeleton, check_new_name, check_principal_name
from limnos.model.errors import BadRequest
from limnos.model.kind_table import name_space_of
from limnos.model.kinds import TABLE_FORMATS, Kind, ZoneKind
from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord
from limnos.model.proto.limnos.v1.schema_pb2 import AuditInfo
from limnos.model.records import CatalogRecord, FilesetRecord, NodeRecord, encode
from limnos.model.storage_locations import LocationKind
from limnos.names.parts import fold
from limnos.names.path import PARTS_MAX
from limnos.rooms.exchange.formats.messages import millis
from limnos.rooms.exchange.services.import_checks import CheckedRecord, with_record_number
from limnos.services.request.table_formats import LANCE
from limnos.services.storage.catalog_locations import catalog_locations_claim
from limnos.services.storage.location_claims import location_claim, locations_claim, locations_lock
from limnos.store.exchange import imports
from limnos.store.exchange.imports import ImportedObject, MetalakeImport
from limnos.store.objects.fileset_locations import PUT as PLACE_PUT
from limnos.store.objects.fileset_locations import fileset_location_rows
from limnos.store.sql import Params, Sql, Value
from limnos.store.tx import Tx

_DEFINE: Final = ("principal", "metalake", "catalog", "namespace", "table", "entity", "role")
"""The kinds of records that define an object."""


def defined_id(record: ExportRecord) -> int | None:
    """Return the id of the object that a record defines, as in the file; None for other records."""
    word = record.WhichOneof("record")
    return cast("int", getattr(record, word).id) if word in _DEFINE else None


def named_ids(record: ExportRecord) -> Iterator[int]:
    """Yield the ids to which a record refers, as in the file."""
    word = record.WhichOneof("record") or ""
    message = getattr(record, word)
    for field in (
        "parent_id",
        "namespace_id",
        "catalog_id",
        "metalake_id",
        "role_id",
        "object_id",
        "from_id",
        "to_id",
        "model_id",
        "table_id",
        "pipeline_id",
    ):
        if field in message.DESCRIPTOR.fields_by_name:
            yield getattr(message, field)
    for field in ("to_ids", "except_ids"):
        if field in message.DESCRIPTOR.fields_by_name:
            yield from getattr(message, field)
    yield record.owner_id
    if word == "entity" and message.WhichOneof("rest") == "view":
        yield message.view.writer_id
    if word == "entity" and message.WhichOneof("rest") == "policy":
        yield message.policy.writer_id
    if word == "link":
        yield message.attached_by


class ImportWriter:
    """The new objects and rows of one batch of an import, and the progress of the import."""

    def __init__(self, tx: Tx, metalake_import: MetalakeImport, *, separator: str, warehouse: str) -> None:
        self._tx = tx
        self._progress = metalake_import
        self._separator = separator
        self._refs: dict[int, ImportedObject] = {}
        self._new_objects: dict[int, ImportedObject] = {}
        self._ids: dict[int, int] = {}
        self._rows_by_statement: dict[Sql, list[Params]] = {}
        self._numbers: dict[int, int] = {}
        """The record's number of each new object, by its new id."""
        self._warehouse = warehouse
        self._located: list[tuple[ImportedObject, CheckedRecord]] = []
        """New objects that have locations."""

    def _assign_ids(self, records: Sequence[CheckedRecord]) -> None:
        """Assign an id to each new object: the id in the file if the import keeps ids, else a new id. Raises BadRequest
        if an id is invalid, occurs twice, or is to be kept and is or was in use.
        """
        for ready in records:
            old = defined_id(ready.record)
            if old is None:
                continue
            if not 0 < old < 1 << 53:
                raise BadRequest(f"Record {ready.number}: {old} is not an id: ids are from 1 to {(1 << 53) - 1}")
            if old in self._ids:
                raise BadRequest(f"Record {ready.number}: an earlier object has id {old}")
            self._ids[old] = ready.number
        known_refs = self._tx.imports.refs(self._progress.id, self._ids)
        for old in known_refs:
            raise BadRequest(f"Record {self._ids[old]}: an earlier object has id {old}")
        if not self._ids:
            return
        numbers = self._ids
        if self._progress.keeps:
            self._keep_ids(numbers)
            self._ids = {old: old for old in numbers}
        else:
            self._ids = dict(zip(numbers, self._tx.session.next_ids(len(numbers)), strict=True))
        self._numbers = {new: numbers[old] for old, new in self._ids.items()}

    def _keep_ids(self, numbers: Mapping[int, int]) -> None:
        count = self._tx.imports.find_used_id(list(numbers))
        if count is not None:
            raise BadRequest(
                f"Record {numbers[count]}: id {count} is or was used for another object in this store, and ids are"
                " never reused: import with --ids map"
            )
        self._tx.session.pass_ids(max(numbers))

    def _define(
        self, old: int, kind: Kind, *, catalog_id: int = 0, depth: int = 0, provider: str = "", nests: bool = False
    ) -> ImportedObject:
        new_id = self._ids[old]
        ref = ImportedObject(
            new_id=new_id,
            kind=kind,
            catalog_id=new_id if kind is Kind.CATALOG else catalog_id,
            depth=depth,
            provider=provider,
            nests=nests,
        )
        self._refs[old] = self._new_objects[old] = ref
        return ref

    def _define_below(self, old: int, kind: Kind, *, above: ImportedObject) -> ImportedObject:
        if above.depth >= PARTS_MAX:
            raise BadRequest(f"it is deeper than {PARTS_MAX} levels")
        return self._define(
            old, kind, catalog_id=above.catalog_id, depth=above.depth + 1, provider=above.provider, nests=above.nests
        )

    def _find_parent(self, catalog_id: int, parent_id: int | None) -> ImportedObject:
        catalog = self._require(catalog_id, Kind.CATALOG)
        above = catalog if parent_id is None else self._require(parent_id, Kind.NAMESPACE, Kind.CATALOG)
        if above.catalog_id != catalog.new_id:
            raise BadRequest(f"it is in {parent_id}, which is in another catalog than {catalog_id}")
        return above

    def _require(self, old: int, *kinds: Kind) -> ImportedObject:
        imported_object = self._refs.get(old)
        if imported_object is None:
            raise BadRequest(
                f"it names {old}, which no earlier record defines: it is missing in the file, follows later, or the two"
                " contain each other"
            )
        if kinds and imported_object.kind not in kinds:
            raise BadRequest(
                f"it names {old} as a {' or '.join(kind.word for kind in kinds)}, which is a"
                f" {imported_object.kind.word}"
            )
        return imported_object

    def _user_id(self, old: int) -> int:
        """Return the new id of a user of the file; 0 for another object, or one that is not in the file."""
        user = self._refs.get(old)
        return user.new_id if user is not None and user.kind is Kind.USER else 0

    def _zone(self, ref: ImportedObject) -> int:
        return ref.catalog_id if ref.kind.home is ZoneKind.CATALOG else self._progress.metalake_id

    def _check_name(self, name: str, kind: Kind, *, statement: Sql) -> None:
        """Check that the name of a new user, group or role is valid and not in use. `statement` inserts the batch's
        other objects of the kind, whose names are compared as well.

        Raises BadRequest for an invalid name, or one that is in use or too similar.
        """
        check_principal_name(name, kind)
        known: list[str] = []
        if ascii_skeleton(name) is not None:
            waiting = [
                row for row in self._rows_by_statement.get(statement, ()) if row.get("kind", int(kind)) == int(kind)
            ]
            stored = self._tx.roles.names if kind is Kind.ROLE else partial(self._tx.principals.names, kind=kind)
            known = [*stored(self._progress.metalake_id), *(str(row["name"]) for row in waiting)]
        check_new_name(name, kind, known=known)

    def _add_node(
        self, ready: CheckedRecord, new: ImportedObject, *, parent_id: int, name: str, audit: AuditInfo
    ) -> None:
        stored_record = cast("NodeRecord", ready.stored)
        table_format = TABLE_FORMATS.get(new.provider, "") if new.kind is Kind.TABLE else ready.record.entity.format
        self._add_row(
            imports.NODE,
            {
                "id": new.new_id,
                "zone": self._zone(new),
                "parent": parent_id,
                "kind": int(new.kind),
                "space": name_space_of(new.kind, new.provider),
                "name": name,
                "folded": fold(name),
                "format": table_format,
                "implicit": ready.record.implicit,
                "record": encode(stored_record),
                **self._audit_columns(audit),
            },
        )
        if isinstance(stored_record, FilesetRecord):
            for row in fileset_location_rows(
                new.new_id, stored_record.locations.values(), managed=not stored_record.external
            ):
                self._add_row(PLACE_PUT, row)
        self._set_owner(ready.record, new.new_id)
        if ready.document is not None or isinstance(stored_record, (CatalogRecord, FilesetRecord)):
            self._located.append((new, ready))

    def _set_owner(self, record: ExportRecord, new_id: int) -> None:
        if record.owner_id:
            owner = self._require(record.owner_id, Kind.USER, Kind.GROUP)
            self._add_row(imports.OWNER, {"id": new_id, "principal": owner.new_id})

    def _audit_columns(self, audit: AuditInfo) -> dict[str, Value]:
        """Return the audit columns of a record; without a creator, the importing user counts as creator."""
        modified_ms = millis(audit.last_modified_time) if audit.HasField("last_modified_time") else None
        return {
            "created_by": audit.creator or self._tx.actor,
            "created_at": millis(audit.create_time) or self._tx.now_ms,
            "modified_by": audit.last_modifier if audit.HasField("last_modifier") else None,
            "modified_at": modified_ms,
        }

    def _add_row(self, statement: Sql, row: Params) -> None:
        self._rows_by_statement.setdefault(statement, []).append(row)

    def _insert_unique(self, statement: Sql, row: Params, *, what: str) -> None:
        """Insert a row immediately. Raises BadRequest if another row has its unique key; `what` names the object in the
        message.
        """
        if not self._tx.count(statement, row):
            raise BadRequest(f"{what} is in an earlier record")

    def _write_rows(self) -> None:
        """Write the collected rows, the documents and the storage locations, and update the import's progress.

        Raises BadRequest with the record's number for a duplicate name, or an invalid document or location.
        """
        for statement, rows in self._rows_by_statement.items():
            self._tx.imports.many(statement, rows)
        doubled = self._tx.imports.missing(list(self._numbers)) if self._numbers else None
        if doubled is not None:
            raise BadRequest(f"Record {self._numbers[doubled]}: an earlier object has the same name in the same place")
        self._lock_locations()
        for ref, ready in self._located:
            if ready.document is not None:
                with with_record_number(ready.number):
                    self._tx.imports.document(ready.document, ref.new_id)
        for ref, ready in self._located:
            with with_record_number(ready.number):
                self._claim_locations(ref, ready)
        self._tx.imports.put(self._progress.id, self._new_objects)
        self._tx.imports.advance(self._progress)

    def _lock_locations(self) -> None:
        """Lock the locations of all tables, views and filesets of the batch by one statement."""
        some = [ready for _, ready in self._located]
        locations = [path for ready in some for path in ready.data_paths]
        locations += [
            each
            for ready in some
            if isinstance(ready.stored, FilesetRecord)
            for each in ready.stored.locations.values()
        ]
        locations_lock(
            self._tx, documents=[ready.document for ready in some if ready.document is not None], locations=locations
        )

    def _claim_locations(self, ref: ImportedObject, ready: CheckedRecord) -> None:
        """Register the storage locations of an object or catalog."""
        tx, owner, catalog, record = self._tx, ref.new_id, ref.catalog_id, ready.stored
        if isinstance(record, CatalogRecord):
            catalog_locations_claim(tx, owner, record=record, warehouse=self._warehouse, keeps=True)
        elif isinstance(record, FilesetRecord):
            kind = LocationKind.EXTERNAL_FILESET if record.external else LocationKind.FILESET
            locations_claim(
                tx,
                kind,
                owner_id=owner,
                catalog_id=catalog,
                locations=dict.fromkeys(record.locations.values()),
                adopts=True,
            )
        elif ready.document is not None:
            is_lance = TABLE_FORMATS.get(ref.provider) == LANCE
            kind = (
                LocationKind.VIEW
                if ref.kind is Kind.VIEW
                else LocationKind.LANCE_TABLE
                if is_lance
                else LocationKind.TABLE
            )
            location_claim(tx, kind, owner_id=owner, catalog_id=catalog, location=ready.document.location, adopts=True)
            if ready.data_paths:
                locations_claim(
                    tx,
                    LocationKind.DATA_PATH,
                    owner_id=owner,
                    catalog_id=catalog,
                    locations=ready.data_paths,
                    adopts=True,
                )
