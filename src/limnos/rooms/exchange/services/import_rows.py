# SPDX-License-Identifier: Apache-2.0
"""Converts records of an import to rows of the store, with one method for each kind of record.

Runs inside a transaction, on records that were checked before. A record may refer only to earlier records.
`import_writer` refuses a missing object, a later object and a cycle, with the record's number. Each method raises
BadRequest for an invalid record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

import msgspec

from limnos.formats.lance_manifests import SCHEMES, check_branch, is_staged_name
from limnos.model.attachments import check_tag_value
from limnos.model.errors import BadRequest
from limnos.model.kind_table import may_contain, row_of
from limnos.model.kinds import METALAKE_OBJECTS, ROOT_ID, Kind, is_source_provider
from limnos.model.privileges import check_binding, parse_privilege
from limnos.model.proto.limnos.v1.export_pb2 import Link
from limnos.model.records import CatalogRecord, MetalakeRecord, PolicyRecord, RoleRecord, ViewRecord, encode
from limnos.names.path import check_part
from limnos.rooms.exchange.formats.messages import millis, terms_of
from limnos.rooms.exchange.services.import_checks import KINDS, CheckedRecord, is_lance, with_record_number
from limnos.rooms.exchange.services.import_writer import ImportWriter, named_ids
from limnos.services.request.catalog_traits import is_nested
from limnos.store.exchange import imports
from limnos.store.exchange.imports import ImportedObject, MetalakeImport
from limnos.store.sql import Params, Sql

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


class ImportPart(ImportWriter):
    """A batch of an import's records, in order, to be written as rows."""

    def take(self, records: Sequence[CheckedRecord]) -> MetalakeImport:
        """Write the batch's records. Returns the import's progress. Raises BadRequest for an invalid record; the caller
        then rolls back.
        """
        referenced_ids = {each for ready in records for each in named_ids(ready.record)}
        self._assign_ids(records)
        self._refs = self._tx.imports.refs(self._progress.id, referenced_ids | set(self._ids))
        for ready in records:
            self._number = ready.number
            self._write_record(ready)
        self._write_rows()
        return self._progress

    def _write_record(self, ready: CheckedRecord) -> None:
        word = ready.record.WhichOneof("record") or ""
        if ready.number == 1 or word == "header":
            self._header(ready, word)
        elif not self._progress.metalake_id and word != "metalake":
            raise BadRequest(f"Record {ready.number}: the second record of an export must be the metalake")
        else:
            with with_record_number(ready.number):
                if self._progress.state == imports.WHOLE:
                    raise BadRequest("it follows the trailer, which must be the last record")
                _TAKE[word](self, ready)
        self._progress = self._progress._replace(records=ready.number)

    def _header(self, ready: CheckedRecord, word: str) -> None:
        if ready.number != 1 or word != "header":
            raise BadRequest(
                f"Record {ready.number}: an export must have one header, as its first record: import a file that"
                " 'limnos export METALAKE' wrote"
            )
        head = ready.record.header
        self._progress = self._progress._replace(source=head.metalake)

    # -- objects ---------------------------------------------------------------------------------------------------

    def metalake(self, ready: CheckedRecord) -> None:
        """Add the metalake, which is not visible until the import is finished."""
        if self._progress.metalake_id:
            raise BadRequest("a second metalake: an export has one")
        message, record = ready.record.metalake, ready.record
        comment = message.comment if message.HasField("comment") else None
        stored_record = MetalakeRecord(comment, dict(message.properties), message.in_use, unknown=record.unknown)
        new = self._define(message.id, Kind.METALAKE)
        self._progress = self._progress._replace(metalake_id=new.new_id, owner_id=record.owner_id)
        self._add_row(
            imports.NODE,
            {
                "id": new.new_id,
                "zone": ROOT_ID,
                "parent": ROOT_ID,
                "kind": int(Kind.METALAKE),
                "space": imports.STAGE,
                "name": str(self._progress.id),
                "folded": None,
                "format": "",
                "implicit": False,
                "record": encode(stored_record),
                **self._audit_columns(message.audit_info),
            },
        )
        self._tx.new_zone(new.new_id)

    def principal(self, ready: CheckedRecord) -> None:
        """Add a user or group. Raises BadRequest for another kind or an invalid name."""
        message = ready.record.principal
        kinds = {"user": Kind.USER, "group": Kind.GROUP}
        if message.kind not in kinds:
            raise BadRequest("a principal must be a user or a group")
        self._check_name(message.name, kinds[message.kind], statement=imports.PRINCIPAL)
        new = self._define(message.id, kinds[message.kind])
        external = message.external_id if message.HasField("external_id") else None
        self._add_row(
            imports.PRINCIPAL,
            {
                "id": new.new_id,
                "metalake": self._progress.metalake_id,
                "kind": int(new.kind),
                "name": message.name,
                "external_id": external,
                "enabled": message.enabled,
                "tokens_from": self._tx.next_id() if message.successor else 0,
                **self._audit_columns(message.audit_info),
            },
        )

    def catalog(self, ready: CheckedRecord) -> None:
        """Add a catalog, with the clock of its zone."""
        message, stored_record = ready.record.catalog, cast("CatalogRecord", ready.stored)
        self._require(message.metalake_id, Kind.METALAKE)
        new = self._define(message.id, Kind.CATALOG, provider=stored_record.provider, nests=is_nested(stored_record))
        self._add_node(ready, new, parent_id=self._progress.metalake_id, name=message.name, audit=message.audit_info)
        self._tx.new_zone(new.new_id)
        if ready.record.masked:
            names = tuple(f"{message.name}: {key}" for key in ready.record.masked)
            self._progress = self._progress._replace(masked=(*self._progress.masked, *names))

    def namespace(self, ready: CheckedRecord) -> None:
        """Add a namespace below its catalog or another namespace."""
        message = ready.record.namespace
        above = self._find_parent(message.catalog_id, message.parent_id if message.HasField("parent_id") else None)
        if above.kind is Kind.NAMESPACE and not above.nests:
            raise BadRequest(f"namespaces of its catalog do not nest, and {message.name} is in another one")
        if above.nests and self._separator in message.name:
            raise BadRequest(
                f"the name {message.name} contains '{self._separator}', the separator of this server: start it with"
                " another separator"
            )
        self._add_node(
            ready,
            self._define_below(message.id, Kind.NAMESPACE, above=above),
            parent_id=above.new_id,
            name=message.name,
            audit=message.audit_info,
        )

    def table(self, ready: CheckedRecord) -> None:
        """Add a table with its document."""
        message = ready.record.table
        above = self._find_parent(
            message.catalog_id, message.namespace_id if message.HasField("namespace_id") else None
        )
        if above.kind is Kind.CATALOG and not is_lance(message.format):
            raise BadRequest(f"table {message.name} is not in a namespace")
        new = self._define_below(message.id, Kind.TABLE, above=above)
        self._add_node(ready, new, parent_id=above.new_id, name=message.name, audit=message.audit_info)

    def entity(self, ready: CheckedRecord) -> None:
        """Add an object of a kind that has no own method: a view, fileset, topic, model and so on."""
        message = ready.record.entity
        kind = KINDS[message.kind]
        if kind in _METALAKE_ONLY:
            self._require(message.parent_id, Kind.METALAKE)
            new, parent_id = self._define(message.id, kind), self._progress.metalake_id
        else:
            above = self._find_parent(message.catalog_id, message.parent_id)
            _check_held(kind, above)
            new, parent_id = self._define_below(message.id, kind, above=above), above.new_id
        if isinstance(ready.stored, ViewRecord) and ready.stored.writer_id:
            writer = self._require(ready.stored.writer_id, Kind.USER).new_id
            ready = ready._replace(stored=replace(ready.stored, writer_id=writer))
        if isinstance(ready.stored, PolicyRecord):
            ready = ready._replace(stored=replace(ready.stored, writer_id=self._user_id(ready.stored.writer_id)))
        self._add_node(ready, new, parent_id=parent_id, name=message.name, audit=message.audit_info)

    def role(self, ready: CheckedRecord) -> None:
        """Add a role without privileges; `grant` records add them."""
        message = ready.record.role
        self._check_name(message.name, Kind.ROLE, statement=imports.ROLE)
        new = self._define(message.id, Kind.ROLE)
        self._add_row(
            imports.ROLE,
            {
                "id": new.new_id,
                "metalake": self._progress.metalake_id,
                "name": message.name,
                "record": encode(RoleRecord.read(message.rest.SerializeToString())),
                **self._audit_columns(message.audit_info),
            },
        )
        self._set_owner(ready.record, new.new_id)

    # -- attachments and links --------------------------------------------------------------------------------------

    def grant(self, ready: CheckedRecord) -> None:
        """Add a privilege of a role on an object, allowed or denied."""
        message = ready.record.grant
        role, target = self._require(message.role_id, Kind.ROLE), self._require(message.object_id)
        privilege = parse_privilege(message.privilege)
        check_binding(privilege, target.kind, None)
        self._add_row(
            imports.GRANT,
            {
                "role": role.new_id,
                "object": target.new_id,
                "privilege": int(privilege),
                "kind": int(target.kind),
                "allowed": message.allowed,
            },
        )

    def link(self, ready: CheckedRecord) -> None:
        """Add a link between two objects, such as a membership, a role assignment or an attached tag; or an object's
        protection.
        """
        message = ready.record.link
        if message.kind == "protected":
            target = self._require(message.from_id)
            zone = ROOT_ID if target.kind is Kind.METALAKE else self._zone(target)
            self._add_row(
                imports.PROTECTED,
                {
                    "id": target.new_id,
                    "zone": zone,
                    "below": message.below,
                    "set_by": message.set_by,
                    "set_at": millis(message.set_at),
                },
            )
            return
        if message.kind in _ATTACHED:
            self._attach(message)
            return
        if message.kind not in _LINKS:
            raise BadRequest(f"'{message.kind[:50]}' is not a kind of link that this version imports")
        statement, begins, ends = _LINKS[message.kind]
        first, last = self._require(message.from_id, *filter(None, (begins,))), self._require(message.to_id, *ends)
        if message.kind == "holder" and first.kind not in (Kind.USER, Kind.GROUP):
            raise BadRequest("a role can only be granted to users and groups")
        self._add_row(statement, {"from": first.new_id, "to": last.new_id})

    def _attach(self, message: Link) -> None:
        """Attach a tag or policy to an object or column, with a tag's values."""
        statement, kind = _ATTACHED[message.kind]
        first = self._require(message.from_id, *((Kind.TABLE,) if message.field_id else ()))
        row: Params = {"from": first.new_id, "to": self._require(message.to_id, kind).new_id}
        if message.field_id:
            self._add_row(imports.ON_COLUMN, {**row, "field": _field_id(message.field_id), "kind": int(kind)})
        else:
            by: Params = {"attached_by": self._user_id(message.attached_by)} if kind is Kind.POLICY else {}
            self._add_row(statement, {**row, **by})
        if message.values and kind is not Kind.TAG:
            raise BadRequest("only attached tags have values")
        for position, value in enumerate(message.values):
            place: Params = {**row, "field": message.field_id, "value": check_tag_value(value), "position": position}
            self._add_row(imports.TAG_VALUE, place)

    def model_version(self, ready: CheckedRecord) -> None:
        """Add a version of a model under its number, with its aliases."""
        message = ready.record.model_version
        model = self._require(message.model_id, Kind.MODEL).new_id
        self._insert_unique(
            imports.MODEL_VERSION,
            {
                "id": model,
                "version": message.number,
                "comment": message.comment if message.HasField("comment") else None,
                "properties": json.dumps(dict(message.properties)),
                "uris": json.dumps(dict(message.uris)),
                **self._audit_columns(message.audit_info),
            },
            what=f"version {message.number} of the model",
        )
        for alias in message.aliases:
            self._insert_unique(
                imports.ALIAS, {"id": model, "alias": alias, "version": message.number}, what=f"alias {alias}"
            )

    def lance_version(self, ready: CheckedRecord) -> None:
        """Add a managed version of a Lance table."""
        message = ready.record.lance_version
        check_branch(message.branch)
        if message.staged and not is_staged_name(message.staged):
            raise BadRequest(f"{message.staged[:100]!r} is not the name of a staged manifest")
        if message.scheme not in SCHEMES.values() or message.number < 0:
            raise BadRequest(f"version {message.number} of scheme {message.scheme} is not a version of a Lance table")
        self._insert_unique(
            imports.LANCE_VERSION,
            {
                "id": self._require(message.table_id, Kind.TABLE).new_id,
                "branch": message.branch,
                "version": message.number,
                "scheme": message.scheme,
                "staged": message.staged,
                "size": message.size if message.HasField("size") else None,
                "e_tag": message.e_tag if message.HasField("e_tag") else None,
                "metadata": message.metadata,
                "created_at": millis(message.created_at),
                "settled": message.settled,
            },
            what=f"version {message.number} of the table",
        )

    def statistic(self, ready: CheckedRecord) -> None:
        """Add a statistic of a table, or of one of its partitions or columns."""
        message = ready.record.statistic
        try:
            msgspec.json.decode(message.value)
        except msgspec.DecodeError:
            raise BadRequest(f"the value of statistic {message.name[:100]} is not JSON") from None
        row: Params = {
            "id": self._require(message.table_id, Kind.TABLE).new_id,
            "name": message.name,
            "value": message.value,
            **self._audit_columns(message.audit_info),
        }
        what = f"statistic {message.name[:100]} of the table"
        if not message.field_id:
            self._insert_unique(imports.STATISTIC, {**row, "partition": message.partition}, what=what)
            return
        if message.partition:
            raise BadRequest(f"{what} is of a partition and of a column at once")
        self._insert_unique(imports.COLUMN_STATISTIC, {**row, "field": _field_id(message.field_id)}, what=what)

    def restriction(self, ready: CheckedRecord) -> None:
        """Add a read restriction of a table or namespace.

        Exempt principals that are not in the file are omitted. If a restricted one is not, all users are restricted.
        """
        message = ready.record.restriction
        target = self._require(message.object_id, Kind.TABLE, Kind.NAMESPACE, Kind.VIEW)
        terms = terms_of(
            message,
            lambda ids: tuple(
                [imported_object.new_id for each in ids if (imported_object := self._refs.get(each)) is not None]
            ),
        )
        self._insert_unique(
            imports.RESTRICTION,
            {
                "id": target.new_id,
                "name": check_part(message.name),
                "zone": self._zone(target),
                "terms": msgspec.json.encode(terms).decode(),
                "set_by": message.set_by,
                "set_at": millis(message.set_at),
            },
            what=f"restriction {message.name[:100]} of the {target.kind.word}",
        )

    def declaration(self, ready: CheckedRecord) -> None:
        """Add a version of a pipeline's declaration, under its version number."""
        message = ready.record.declaration
        self._insert_unique(
            imports.DECLARATION,
            {
                "id": self._require(message.pipeline_id, Kind.JOB_TEMPLATE).new_id,
                "version": message.number,
                "digest": message.digest,
                "text": message.text,
                "declared_by": message.declared_by,
                "declared_at": millis(message.declared_at),
            },
            what=f"declaration {message.number} of the pipeline",
        )

    def trailer(self, ready: CheckedRecord) -> None:
        """Verify the trailer's record count and mark the import complete. Raises BadRequest if the counts differ."""
        records = ready.record.trailer.records
        if records != ready.number:
            raise BadRequest(
                f"the file declares another number of records ({records}) than it has: some are missing, or were added"
            )
        self._tx.imports.end(self._progress.id)
        self._progress = self._progress._replace(state=imports.WHOLE)


def _field_id(sent: int) -> int:
    """Return a column's field id. Raises BadRequest if it exceeds `FIELD_ID_MAX`."""
    if sent > FIELD_ID_MAX:
        raise BadRequest(f"{sent} is not a column's id")
    return sent


def _check_held(kind: Kind, above: ImportedObject) -> None:
    """Raise BadRequest if a catalog of this provider has no objects of the kind."""
    is_placeholder = bool(row_of(kind).placeholder) and is_source_provider(above.provider)
    if not is_placeholder and not may_contain(kind, above.provider):
        raise BadRequest(f"a catalog of provider {above.provider} cannot contain {kind.word}s")
    if above.kind is not Kind.NAMESPACE:
        raise BadRequest(f"the {kind.word} is not in a namespace")


_TAKE: Final[Mapping[str, Callable[[ImportPart, CheckedRecord], None]]] = {
    "metalake": ImportPart.metalake,
    "principal": ImportPart.principal,
    "catalog": ImportPart.catalog,
    "namespace": ImportPart.namespace,
    "table": ImportPart.table,
    "entity": ImportPart.entity,
    "role": ImportPart.role,
    "grant": ImportPart.grant,
    "link": ImportPart.link,
    "model_version": ImportPart.model_version,
    "lance_version": ImportPart.lance_version,
    "statistic": ImportPart.statistic,
    "restriction": ImportPart.restriction,
    "declaration": ImportPart.declaration,
    "trailer": ImportPart.trailer,
}
