"""Import rows: resolves the references of checked records, assigns ids, and writes rows for each table of the store.

May import the rooms below. Runs inside a transaction, on records that were checked before. A record may refer only to
earlier records. So a reference to a missing or later object, or a cycle, is refused here, with the record's number.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import msgspec

from limnos.access.principal_names import ascii_skeleton, check_new_name, check_principal_name
from limnos.formats.exchange.messages import millis, terms_of
from limnos.formats.lance_manifests import SCHEMES, check_branch, is_staged_name
from limnos.model.attachments import check_tag_value
from limnos.model.errors import BadRequest
from limnos.model.kind_table import HELD, is_in_any_catalog, kinds_with, name_space_of
from limnos.model.kinds import ICEBERG_PROVIDER, METALAKE_OBJECTS, ROOT_ID, TABLE_FORMATS, Kind, ZoneKind
from limnos.model.privileges import check_binding, parse_privilege
from limnos.model.records import CatalogRecord, FilesetRecord, MetalakeRecord, RoleRecord, ViewRecord, encode
from limnos.model.storage_locations import LocationKind
from limnos.names.folding import fold
from limnos.names.path import PARTS_MAX, check_part
from limnos.services.exchange.import_checks import KINDS, is_lance, with_record_number
from limnos.services.request.catalog_traits import is_nested
from limnos.services.request.table_formats import LANCE
from limnos.services.storage.catalog_locations import catalog_locations_claim
from limnos.services.storage.location_claims import location_claim, locations_claim, locations_lock
from limnos.store.exchange import imports
from limnos.store.exchange.imports import ImportedObject, MetalakeImport
from limnos.store.objects.fileset_locations import PUT as PLACE_PUT
from limnos.store.objects.fileset_locations import fileset_location_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord, Link
    from limnos.model.proto.limnos.v1.schema_pb2 import AuditInfo
    from limnos.model.records import NodeRecord
    from limnos.services.exchange.import_checks import CheckedRecord
    from limnos.store.sql import Params, Sql, Value
    from limnos.store.tx import Tx

_DEFINE: Final = ("principal", "metalake", "catalog", "namespace", "table", "entity", "role")
"""The kinds of records that define an object."""
_LINKS: Final[Mapping[str, tuple[Sql, Kind | None, tuple[Kind, ...]]]] = {
    "member": (imports.MEMBER, Kind.USER, (Kind.GROUP,)),
    "holder": (imports.HOLDER, None, (Kind.ROLE,)),
    "uses": (imports.USES, None, ()),
}
"""For each kind of link its statement, and the kinds of objects at its start and end, if limited."""
_ATTACHED: Final = {"tagged": (imports.TAGGED, Kind.TAG), "policed": (imports.POLICED, Kind.POLICY)}
"""For each kind of link that attaches something, the statement for objects, and the attached kind."""
FIELD_ID_MAX: Final = 2**31 - 1
_METALAKE_ONLY: Final = tuple(kind for kind in METALAKE_OBJECTS if kind.is_node)
_IN_ICEBERG: Final = kinds_with(lambda row: row.catalogs == (ICEBERG_PROVIDER,))


def defined_id(record: ExportRecord) -> int | None:
    """Return the id of the object that a record defines, as in the file; None for other records."""
    word = record.WhichOneof("record")
    return cast("int", getattr(record, word).id) if word in _DEFINE else None


def named_ids(record: ExportRecord) -> Iterator[int]:
    """Yield the ids to which a record refers, as in the file."""
    word = record.WhichOneof("record") or ""
    message = getattr(record, word)
    for field in ("parent_id", "namespace_id", "catalog_id", "metalake_id", "role_id", "object_id", "from_id", "to_id", "model_id", "table_id", "pipeline_id"):  # fmt: skip
        if field in message.DESCRIPTOR.fields_by_name:
            yield getattr(message, field)
    for field in ("to_ids", "except_ids"):
        if field in message.DESCRIPTOR.fields_by_name:
            yield from getattr(message, field)
    yield record.owner_id
    if word == "entity" and message.WhichOneof("rest") == "view":
        yield message.view.writer_id


class ImportPart:
    """A batch of an import's records, in order, to be written as rows."""

    def __init__(self, tx: Tx, metalake_import: MetalakeImport, *, separator: str, warehouse: str) -> None:
        self._tx = tx
        self._held = metalake_import
        self._separator = separator
        self._refs: dict[int, ImportedObject] = {}
        self._fresh: dict[int, ImportedObject] = {}
        self._ids: dict[int, int] = {}
        self._rows: dict[Sql, list[Params]] = {}
        self._numbers: dict[int, int] = {}
        """The record's number of each new object, by its new id."""
        self._warehouse = warehouse
        self._located: list[tuple[ImportedObject, CheckedRecord]] = []
        """New objects that have locations."""

    def take(self, records: Sequence[CheckedRecord]) -> MetalakeImport:
        """Write the records. Returns the import's progress. Raises BadRequest, with nothing written."""
        named = {each for ready in records for each in named_ids(ready.record)}
        self._give_ids(records)
        self._refs = self._tx.imports.refs(self._held.id, named | set(self._ids))
        for ready in records:
            self._number = ready.number
            self._one(ready)
        self._write()
        return self._held

    def _give_ids(self, records: Sequence[CheckedRecord]) -> None:
        """Assign an id to each new object: its own, or a new one. Raises BadRequest."""
        for ready in records:
            old = defined_id(ready.record)
            if old is None:
                continue
            if not 0 < old < 1 << 53:
                raise BadRequest(f"Record {ready.number}: {old} is no id: ids are from 1 to {(1 << 53) - 1}")
            if old in self._ids:
                raise BadRequest(f"Record {ready.number}: there was an object with id {old} before")
            self._ids[old] = ready.number
        known = self._tx.imports.refs(self._held.id, self._ids)
        for old in known:
            raise BadRequest(f"Record {self._ids[old]}: there was an object with id {old} before")
        if not self._ids:
            return
        numbers = self._ids
        if self._held.keeps:
            self._keep_ids(numbers)
            self._ids = {old: old for old in numbers}
        else:
            self._ids = dict(zip(numbers, self._tx.session.next_ids(len(numbers)), strict=True))
        self._numbers = {new: numbers[old] for old, new in self._ids.items()}

    def _keep_ids(self, numbers: Mapping[int, int]) -> None:
        count = self._tx.imports.taken(list(numbers))
        if count is not None:
            raise BadRequest(
                f"Record {numbers[count]}: id {count} is or was something else's in this store, and ids are never used twice: import with --ids map"
            )
        self._tx.session.pass_ids(max(numbers))

    def _one(self, ready: CheckedRecord) -> None:
        word = ready.record.WhichOneof("record") or ""
        if ready.number == 1 or word == "header":
            self._header(ready, word)
        elif not self._held.metalake_id and word != "metalake":
            raise BadRequest(f"Record {ready.number}: the second record of an export is the metalake")
        else:
            with with_record_number(ready.number):
                if self._held.state == imports.WHOLE:
                    raise BadRequest("it stands behind the file's last record")
                _TAKE[word](self, ready)
        self._held = self._held._replace(records=ready.number)

    def _header(self, ready: CheckedRecord, word: str) -> None:
        if ready.number != 1 or word != "header":
            raise BadRequest(f"Record {ready.number}: an export has one header, as its first record")
        head = ready.record.header
        self._held = self._held._replace(source=head.metalake)

    # -- objects ---------------------------------------------------------------------------------------------------

    def metalake(self, ready: CheckedRecord) -> None:
        """Add the metalake, hidden until the import is finished."""
        if self._held.metalake_id:
            raise BadRequest("there was a metalake before: an export has one")
        message, record = ready.record.metalake, ready.record
        comment = message.comment if message.HasField("comment") else None
        stored = MetalakeRecord(comment, dict(message.properties), message.in_use, unknown=record.unknown)
        new = self._define(message.id, Kind.METALAKE)
        self._held = self._held._replace(metalake_id=new.new_id, owner_id=record.owner_id)
        self._row(imports.NODE, {
            "id": new.new_id, "zone": ROOT_ID, "parent": ROOT_ID, "kind": int(Kind.METALAKE), "space": imports.STAGE, "name": str(self._held.id),
            "folded": None, "format": "", "implicit": False, "record": encode(stored), **self._audit(message.audit_info),
        })  # fmt: skip
        self._tx.new_zone(new.new_id)

    def principal(self, ready: CheckedRecord) -> None:
        """Add a user or group."""
        message = ready.record.principal
        kinds = {"user": Kind.USER, "group": Kind.GROUP}
        if message.kind not in kinds:
            raise BadRequest("a principal is a user or a group")
        self._check_name(message.name, kinds[message.kind], statement=imports.PRINCIPAL)
        new = self._define(message.id, kinds[message.kind])
        external = message.external_id if message.HasField("external_id") else None
        self._row(imports.PRINCIPAL, {
            "id": new.new_id, "metalake": self._held.metalake_id, "kind": int(new.kind), "name": message.name, "external_id": external,
            "enabled": message.enabled, "tokens_from": self._tx.next_id() if message.successor else 0, **self._audit(message.audit_info),
        })  # fmt: skip

    def _check_name(self, name: str, kind: Kind, *, statement: Sql) -> None:
        """Check the name of a new user, group or role; `statement` inserts the rows to compare with.

        Raises BadRequest.
        """
        check_principal_name(name, kind)
        known: list[str] = []
        if ascii_skeleton(name) is not None:
            waiting = [row for row in self._rows.get(statement, ()) if row.get("kind", int(kind)) == int(kind)]
            stored = self._tx.roles.names if kind is Kind.ROLE else partial(self._tx.principals.names, kind=kind)
            known = [*stored(self._held.metalake_id), *(str(row["name"]) for row in waiting)]
        check_new_name(name, kind, known=known)

    def catalog(self, ready: CheckedRecord) -> None:
        """Add a catalog, with its clock."""
        message, stored = ready.record.catalog, cast("CatalogRecord", ready.stored)
        self._require(message.metalake_id, Kind.METALAKE)
        new = self._define(message.id, Kind.CATALOG, provider=stored.provider, nests=is_nested(stored))
        self._node(ready, new, parent_id=self._held.metalake_id, name=message.name, audit=message.audit_info)
        self._tx.new_zone(new.new_id)
        if ready.record.masked:
            names = tuple(f"{message.name}: {key}" for key in ready.record.masked)
            self._held = self._held._replace(masked=(*self._held.masked, *names))

    def namespace(self, ready: CheckedRecord) -> None:
        """Add a namespace below its catalog or another namespace."""
        message = ready.record.namespace
        above = self._above(message.catalog_id, message.parent_id if message.HasField("parent_id") else None)
        if above.kind is Kind.NAMESPACE and not above.nests:
            raise BadRequest(f"namespaces of its catalog do not nest, and {message.name} lies in another one")
        if above.nests and self._separator in message.name:
            raise BadRequest(
                f"the name {message.name} holds '{self._separator}', by which this server separates names: start it with another separator"
            )
        self._node(
            ready,
            self._below(message.id, Kind.NAMESPACE, above=above),
            parent_id=above.new_id,
            name=message.name,
            audit=message.audit_info,
        )

    def table(self, ready: CheckedRecord) -> None:
        """Add a table with its document."""
        message = ready.record.table
        above = self._above(message.catalog_id, message.namespace_id if message.HasField("namespace_id") else None)
        if above.kind is Kind.CATALOG and not is_lance(message.format):
            raise BadRequest(f"table {message.name} lies in no namespace")
        new = self._below(message.id, Kind.TABLE, above=above)
        self._node(ready, new, parent_id=above.new_id, name=message.name, audit=message.audit_info)

    def entity(self, ready: CheckedRecord) -> None:
        """Add an object of any other kind."""
        message = ready.record.entity
        kind = KINDS[message.kind]
        if kind in _METALAKE_ONLY:
            self._require(message.parent_id, Kind.METALAKE)
            new, parent_id = self._define(message.id, kind), self._held.metalake_id
        else:
            above = self._above(message.catalog_id, message.parent_id)
            _check_held(kind, above)
            new, parent_id = self._below(message.id, kind, above=above), above.new_id
        if isinstance(ready.stored, ViewRecord) and ready.stored.writer_id:
            writer = self._require(ready.stored.writer_id, Kind.USER).new_id
            ready = ready._replace(stored=replace(ready.stored, writer_id=writer))
        self._node(ready, new, parent_id=parent_id, name=message.name, audit=message.audit_info)

    def role(self, ready: CheckedRecord) -> None:
        """Add a role."""
        message = ready.record.role
        self._check_name(message.name, Kind.ROLE, statement=imports.ROLE)
        new = self._define(message.id, Kind.ROLE)
        self._row(imports.ROLE, {
            "id": new.new_id, "metalake": self._held.metalake_id, "name": message.name,
            "record": encode(RoleRecord.read(message.rest.SerializeToString())), **self._audit(message.audit_info),
        })  # fmt: skip
        self._own(ready.record, new.new_id)

    # -- attachments and links --------------------------------------------------------------------------------------

    def grant(self, ready: CheckedRecord) -> None:
        """Add a rule of a role."""
        message = ready.record.grant
        role, target = self._require(message.role_id, Kind.ROLE), self._require(message.object_id)
        privilege = parse_privilege(message.privilege)
        check_binding(privilege, target.kind, None)
        self._row(imports.GRANT, {
            "role": role.new_id, "object": target.new_id, "privilege": int(privilege), "kind": int(target.kind), "allowed": message.allowed,
        })  # fmt: skip

    def link(self, ready: CheckedRecord) -> None:
        """Add a link between two objects."""
        message = ready.record.link
        if message.kind == "protected":
            target = self._require(message.from_id)
            zone = ROOT_ID if target.kind is Kind.METALAKE else self._zone(target)
            self._row(imports.PROTECTED, {
                "id": target.new_id, "zone": zone, "below": message.below, "set_by": message.set_by, "set_at": millis(message.set_at),
            })  # fmt: skip
            return
        if message.kind in _ATTACHED:
            self._attach(message)
            return
        if message.kind not in _LINKS:
            raise BadRequest(f"'{message.kind[:50]}' is no kind of link that this version imports")
        statement, begins, ends = _LINKS[message.kind]
        first, last = self._require(message.from_id, *filter(None, (begins,))), self._require(message.to_id, *ends)
        if message.kind == "holder" and first.kind not in (Kind.USER, Kind.GROUP):
            raise BadRequest("a role is held by users and groups")
        self._row(statement, {"from": first.new_id, "to": last.new_id})

    def _attach(self, message: Link) -> None:
        """Attach a tag or policy to an object or column, with a tag's values."""
        statement, kind = _ATTACHED[message.kind]
        first = self._require(message.from_id, *((Kind.TABLE,) if message.field_id else ()))
        row: Params = {"from": first.new_id, "to": self._require(message.to_id, kind).new_id}
        if message.field_id:
            self._row(imports.ON_COLUMN, {**row, "field": _field_id(message.field_id), "kind": int(kind)})
        else:
            self._row(statement, row)
        if message.values and kind is not Kind.TAG:
            raise BadRequest("only tags have values where they are attached")
        for position, value in enumerate(message.values):
            place: Params = {**row, "field": message.field_id, "value": check_tag_value(value), "position": position}
            self._row(imports.TAG_VALUE, place)

    def model_version(self, ready: CheckedRecord) -> None:
        """Add a version of a model, with its aliases."""
        message = ready.record.model_version
        model = self._require(message.model_id, Kind.MODEL).new_id
        self._alone(imports.MODEL_VERSION, {
            "id": model, "version": message.number, "comment": message.comment if message.HasField("comment") else None,
            "properties": json.dumps(dict(message.properties)), "uris": json.dumps(dict(message.uris)), **self._audit(message.audit_info),
        }, what=f"version {message.number} of the model")  # fmt: skip
        for alias in message.aliases:
            self._alone(imports.ALIAS, {"id": model, "alias": alias, "version": message.number}, what=f"alias {alias}")

    def lance_version(self, ready: CheckedRecord) -> None:
        """Add a version of a Lance table."""
        message = ready.record.lance_version
        check_branch(message.branch)
        if message.staged and not is_staged_name(message.staged):
            raise BadRequest(f"{message.staged[:100]!r} is the name of no staged manifest")
        if message.scheme not in SCHEMES.values() or message.number < 0:
            raise BadRequest(f"version {message.number} of scheme {message.scheme} is no version of a Lance table")
        self._alone(imports.LANCE_VERSION, {
            "id": self._require(message.table_id, Kind.TABLE).new_id, "branch": message.branch, "version": message.number,
            "scheme": message.scheme, "staged": message.staged, "size": message.size if message.HasField("size") else None,
            "e_tag": message.e_tag if message.HasField("e_tag") else None, "metadata": message.metadata,
            "created_at": millis(message.created_at), "settled": message.settled,
        }, what=f"version {message.number} of the table")  # fmt: skip

    def statistic(self, ready: CheckedRecord) -> None:
        """Add a statistic of a table, or of one of its partitions or columns."""
        message = ready.record.statistic
        try:
            msgspec.json.decode(message.value)
        except msgspec.DecodeError:
            raise BadRequest(f"the value of statistic {message.name[:100]} is no JSON") from None
        row: Params = {
            "id": self._require(message.table_id, Kind.TABLE).new_id, "name": message.name, "value": message.value,
            **self._audit(message.audit_info),
        }  # fmt: skip
        what = f"statistic {message.name[:100]} of the table"
        if not message.field_id:
            self._alone(imports.STATISTIC, {**row, "partition": message.partition}, what=what)
            return
        if message.partition:
            raise BadRequest(f"{what} is of a partition and of a column at once")
        self._alone(imports.COLUMN_STATISTIC, {**row, "field": _field_id(message.field_id)}, what=what)

    def restriction(self, ready: CheckedRecord) -> None:
        """Add a read restriction of a table or namespace.

        Principals missing in the file are omitted, which restricts no fewer users.
        """
        message = ready.record.restriction
        target = self._require(message.object_id, Kind.TABLE, Kind.NAMESPACE)
        terms = terms_of(
            message,
            lambda ids: tuple(
                [imported_object.new_id for each in ids if (imported_object := self._refs.get(each)) is not None]
            ),
        )
        self._alone(imports.RESTRICTION, {
            "id": target.new_id, "name": check_part(message.name), "zone": self._zone(target), "terms": msgspec.json.encode(terms).decode(),
            "set_by": message.set_by, "set_at": millis(message.set_at),
        }, what=f"restriction {message.name[:100]} of the {target.kind.word}")  # fmt: skip

    def declaration(self, ready: CheckedRecord) -> None:
        """Add a version of a pipeline's declaration."""
        message = ready.record.declaration
        self._alone(imports.DECLARATION, {
            "id": self._require(message.pipeline_id, Kind.JOB_TEMPLATE).new_id, "version": message.number, "digest": message.digest,
            "text": message.text, "declared_by": message.declared_by, "declared_at": millis(message.declared_at),
        }, what=f"declaration {message.number} of the pipeline")  # fmt: skip

    # -- helpers --------------------------------------------------------------------------------------------------

    def _define(
        self, old: int, kind: Kind, *, catalog_id: int = 0, depth: int = 0, provider: str = "", nests: bool = False
    ) -> ImportedObject:
        new_id = self._ids[old]
        ref = ImportedObject(new_id, kind, new_id if kind is Kind.CATALOG else catalog_id, depth, provider, nests)
        self._refs[old] = self._fresh[old] = ref
        return ref

    def _below(self, old: int, kind: Kind, *, above: ImportedObject) -> ImportedObject:
        if above.depth >= PARTS_MAX:
            raise BadRequest(f"it lies deeper than {PARTS_MAX} levels")
        return self._define(
            old, kind, catalog_id=above.catalog_id, depth=above.depth + 1, provider=above.provider, nests=above.nests
        )

    def _above(self, catalog_id: int, parent_id: int | None) -> ImportedObject:
        catalog = self._require(catalog_id, Kind.CATALOG)
        above = catalog if parent_id is None else self._require(parent_id, Kind.NAMESPACE, Kind.CATALOG)
        if above.catalog_id != catalog.new_id:
            raise BadRequest(f"it lies in {parent_id}, which lies in another catalog than {catalog_id}")
        return above

    def _require(self, old: int, *kinds: Kind) -> ImportedObject:
        imported_object = self._refs.get(old)
        if imported_object is None:
            raise BadRequest(
                f"it names {old}, which no record before it defines: that is missing in the file, comes later, or the two lie in each other"
            )
        if kinds and imported_object.kind not in kinds:
            raise BadRequest(
                f"it names {old} as a {' or '.join(kind.word for kind in kinds)}, which is a {imported_object.kind.word}"
            )
        return imported_object

    def _zone(self, ref: ImportedObject) -> int:
        return ref.catalog_id if ref.kind.home is ZoneKind.CATALOG else self._held.metalake_id

    def _node(self, ready: CheckedRecord, new: ImportedObject, *, parent_id: int, name: str, audit: AuditInfo) -> None:
        stored = cast("NodeRecord", ready.stored)
        table_format = TABLE_FORMATS.get(new.provider, "") if new.kind is Kind.TABLE else ready.record.entity.format
        self._row(imports.NODE, {
            "id": new.new_id, "zone": self._zone(new), "parent": parent_id, "kind": int(new.kind), "space": name_space_of(new.kind, new.provider),
            "name": name, "folded": fold(name), "format": table_format, "implicit": ready.record.implicit, "record": encode(stored), **self._audit(audit),
        })  # fmt: skip
        if isinstance(stored, FilesetRecord):
            for row in fileset_location_rows(new.new_id, stored.locations.values(), managed=not stored.external):
                self._row(PLACE_PUT, row)
        self._own(ready.record, new.new_id)
        if ready.document is not None or isinstance(stored, (CatalogRecord, FilesetRecord)):
            self._located.append((new, ready))

    def _own(self, record: ExportRecord, new_id: int) -> None:
        if record.owner_id:
            owner = self._require(record.owner_id, Kind.USER, Kind.GROUP)
            self._row(imports.OWNER, {"id": new_id, "principal": owner.new_id})

    def _audit(self, audit: AuditInfo) -> dict[str, Value]:
        """Return the audit columns of a record; without a creator, the importing user counts as creator."""
        changed = millis(audit.last_modified_time) if audit.HasField("last_modified_time") else None
        return {
            "created_by": audit.creator or self._tx.actor, "created_at": millis(audit.create_time) or self._tx.now_ms,
            "modified_by": audit.last_modifier if audit.HasField("last_modifier") else None, "modified_at": changed,
        }  # fmt: skip

    def _row(self, statement: Sql, row: Params) -> None:
        self._rows.setdefault(statement, []).append(row)

    def _alone(self, statement: Sql, row: Params, *, what: str) -> None:
        """Insert a row at once, which must be the only one with its key. Raises BadRequest."""
        if not self._tx.count(statement, row):
            raise BadRequest(f"{what} stands in a record before it")

    def _write(self) -> None:
        """Write the collected rows. A duplicate name is reported with the later record's number."""
        for statement, rows in self._rows.items():
            self._tx.imports.many(statement, rows)
        doubled = self._tx.imports.missing(list(self._numbers)) if self._numbers else None
        if doubled is not None:
            raise BadRequest(
                f"Record {self._numbers[doubled]}: something before it has the same name in the same place"
            )
        self._lock_locations()
        for ref, ready in self._located:
            if ready.document is not None:
                with with_record_number(ready.number):
                    self._tx.imports.document(ready.document, ref.new_id)
        for ref, ready in self._located:
            with with_record_number(ready.number):
                self._claim_locations(ref, ready)
        self._tx.imports.put(self._held.id, self._fresh)
        self._tx.imports.advance(self._held)

    def _lock_locations(self) -> None:
        """Lock the locations of all tables, views and filesets at once."""
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
                tx, kind, owner_id=owner, catalog_id=catalog, locations=dict.fromkeys(record.locations.values())
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
            location_claim(tx, kind, owner_id=owner, catalog_id=catalog, location=ready.document.location)
            if ready.data_paths:
                locations_claim(
                    tx, LocationKind.DATA_PATH, owner_id=owner, catalog_id=catalog, locations=ready.data_paths
                )

    def trailer(self, ready: CheckedRecord) -> None:
        """Verify the trailer's record count and mark the import complete. Raises BadRequest for another count."""
        records = ready.record.trailer.records
        if records != ready.number:
            raise BadRequest(
                f"the file says that it has {records} records, and this one is the last: some are missing, or were added"
            )
        self._tx.imports.end(self._held.id)
        self._held = self._held._replace(state=imports.WHOLE)


def _field_id(sent: int) -> int:
    """Check a column's field id. Raises BadRequest."""
    if sent > FIELD_ID_MAX:
        raise BadRequest(f"{sent} is no id of a column")
    return sent


def _check_held(kind: Kind, above: ImportedObject) -> None:
    """Refuse an object that a catalog of this provider cannot hold. Raises BadRequest."""
    expected = HELD.get(above.provider)
    fits = is_in_any_catalog(kind) or (
        expected is kind if above.provider in HELD or kind in HELD.values() else kind in _IN_ICEBERG
    )
    if not fits:
        raise BadRequest(f"a catalog of provider {above.provider} holds no {kind.word}s")
    if above.kind is not Kind.NAMESPACE:
        raise BadRequest(f"the {kind.word} lies in no namespace")


_TAKE: Final[Mapping[str, Callable[[ImportPart, CheckedRecord], None]]] = {
    "metalake": ImportPart.metalake, "principal": ImportPart.principal, "catalog": ImportPart.catalog, "namespace": ImportPart.namespace, "table": ImportPart.table,
    "entity": ImportPart.entity, "role": ImportPart.role, "grant": ImportPart.grant, "link": ImportPart.link, "model_version": ImportPart.model_version,
    "lance_version": ImportPart.lance_version, "statistic": ImportPart.statistic, "restriction": ImportPart.restriction, "declaration": ImportPart.declaration, "trailer": ImportPart.trailer,
}  # fmt: skip
