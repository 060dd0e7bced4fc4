# SPDX-License-Identifier: Apache-2.0
"""Running imports: a metalake that is hidden until it is complete, and the mapping from the file's ids to new ids.

Must not know file formats. Imported objects are below a metalake in a separate name space, which no path reaches.
Renaming that node updates one row and makes all imported objects visible at once. Only this renaming writes a change
row: no view can have cached the zones of imported objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from limnos.model.entities import MetadataDocument
from limnos.model.kinds import KINDS, ROOT_ID, Kind
from limnos.store.changes import ChangeDraft
from limnos.store.objects.documents import DocumentWrites
from limnos.store.sql import Load, Params, Row, Sql, Value
from limnos.store.transaction import Writes

OPEN, WHOLE, DONE, GIVEN_UP = "open", "whole", "done", "given-up"
"""The states of an import: receiving records; read to its end; visible; being deleted."""
STAGE: Final = "import"
"""The name space of an imported metalake until it is complete."""
_COLUMNS = (
    "id, name, form, keeps, state, record_count, source, metalake_id, owner_id, masked, begun_by, begun_at, fed_at"
)
_AMONG = "IN (SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:ids AS json)) v)"
_AMONG_ON_SQLITE = "IN (SELECT value FROM json_each(:ids))"


def _with_ids(text: str) -> Sql:
    return Sql(text.replace("AMONG", _AMONG), on_sqlite=text.replace("AMONG", _AMONG_ON_SQLITE))


ONE = Sql(f"SELECT {_COLUMNS} FROM metalake_import WHERE id = :id")
ALL = Sql(f"SELECT {_COLUMNS} FROM metalake_import WHERE state IN ('{OPEN}', '{WHOLE}') ORDER BY id LIMIT :limit")
BEGIN = Sql(
    f"INSERT INTO metalake_import ({_COLUMNS}) VALUES"
    f" (:id, :name, :form, :keeps, '{OPEN}', 0, '', 0, 0, '[]', :actor, :now, :now)"
)
ADVANCE = Sql(
    "UPDATE metalake_import SET record_count = :records, source = :source, metalake_id = :metalake, owner_id = :owner,"
    " masked = :masked, fed_at = :now WHERE id = :id"
)
STATE = Sql("UPDATE metalake_import SET state = :state, fed_at = :now WHERE id = :id")
LAST = Sql("SELECT max(id) FROM metalake_import")
IDLE = Sql(f"SELECT id FROM metalake_import WHERE state IN ('{OPEN}', '{WHOLE}') AND fed_at < :before ORDER BY id")
_REF = "old_id, new_id, kind, catalog_id, depth, provider, nests"
REFS = _with_ids(f"SELECT {_REF} FROM import_object WHERE import_id = :import AND old_id AMONG")
PUT = Sql(
    f"INSERT INTO import_object (import_id, {_REF}) VALUES (:import, :old, :new, :kind, :catalog, :depth, :provider,"
    " :nests)"
)
TAKEN = _with_ids(
    "SELECT id FROM node WHERE id AMONG UNION SELECT id FROM principal WHERE id AMONG UNION SELECT id FROM role WHERE"
    " id AMONG ORDER BY 1 LIMIT 1"
)
_AUDIT = "created_by, created_at, modified_by, modified_at"
_AUDITED = ":created_by, :created_at, :modified_by, :modified_at"
NODE = Sql(
    f"INSERT INTO node (id, zone, parent_id, kind, name_space, name, format, implicit, {_AUDIT}, revision, deleted,"
    f" record, folded) VALUES (:id, :zone, :parent, :kind, :space, :name, :format, :implicit, {_AUDITED}, 0, 0,"
    " :record, :folded) ON CONFLICT DO NOTHING"
)
OWNER = Sql("INSERT INTO owner (object_id, principal_id) VALUES (:id, :principal)")
PRINCIPAL = Sql(
    f"INSERT INTO principal (id, metalake_id, kind, name, external_id, enabled, {_AUDIT}, deleted, tokens_from) VALUES"
    f" (:id, :metalake, :kind, :name, :external_id, :enabled, {_AUDITED}, 0, :tokens_from) ON CONFLICT DO NOTHING"
)
ROLE = Sql(
    f"INSERT INTO role (id, metalake_id, name, {_AUDIT}, deleted, record)"
    f" VALUES (:id, :metalake, :name, {_AUDITED}, 0, :record) ON CONFLICT DO NOTHING"
)
GRANT = Sql(
    "INSERT INTO access_grant (role_id, object_id, privilege, object_kind, allowed)"
    " VALUES (:role, :object, :privilege, :kind, :allowed) ON CONFLICT DO NOTHING"
)
MEMBER = Sql("INSERT INTO group_member (user_id, group_id) VALUES (:from, :to) ON CONFLICT DO NOTHING")
HOLDER = Sql("INSERT INTO role_member (principal_id, role_id) VALUES (:from, :to) ON CONFLICT DO NOTHING")
TAGGED = Sql("INSERT INTO tag_object (object_id, tag_id) VALUES (:from, :to) ON CONFLICT DO NOTHING")
POLICED = Sql(
    "INSERT INTO policy_object (object_id, policy_id, attached_by) VALUES (:from, :to, :attached_by) ON CONFLICT DO"
    " NOTHING"
)
STATISTIC = Sql(
    f"INSERT INTO statistic (object_id, partition_name, name, value, {_AUDIT})"
    f" VALUES (:id, :partition, :name, :value, {_AUDITED}) ON CONFLICT DO NOTHING"
)
ON_COLUMN = Sql(
    "INSERT INTO column_attachment (object_id, field_id, attached_id, kind) VALUES (:from, :field, :to, :kind) ON"
    " CONFLICT DO NOTHING"
)
TAG_VALUE = Sql(
    "INSERT INTO tag_value (object_id, field_id, tag_id, value, position) VALUES (:from, :field, :to, :value,"
    " :position) ON CONFLICT DO NOTHING"
)
COLUMN_STATISTIC = Sql(
    f"INSERT INTO column_statistic (object_id, field_id, name, value, {_AUDIT})"
    f" VALUES (:id, :field, :name, :value, {_AUDITED}) ON CONFLICT DO NOTHING"
)
USES = Sql("INSERT INTO dependency (user_id, used_id) VALUES (:from, :to) ON CONFLICT DO NOTHING")
PROTECTED = Sql(
    "INSERT INTO protection (node_id, zone, below, set_by, set_at) VALUES (:id, :zone, :below, :set_by, :set_at) ON"
    " CONFLICT DO NOTHING"
)
RESTRICTION = Sql(
    "INSERT INTO restriction (object_id, name, zone, terms, set_by, set_at) VALUES (:id, :name, :zone, :terms, :set_by,"
    " :set_at) ON CONFLICT DO NOTHING"
)
MODEL_VERSION = Sql(
    f"INSERT INTO model_version (model_id, version, comment, properties, uris, {_AUDIT})"
    f" VALUES (:id, :version, :comment, :properties, :uris, {_AUDITED}) ON CONFLICT DO NOTHING"
)
ALIAS = Sql("INSERT INTO model_alias (model_id, alias, version) VALUES (:id, :alias, :version) ON CONFLICT DO NOTHING")
LANCE_VERSION = Sql(
    "INSERT INTO lance_version (node_id, branch, version, scheme, staged, size, e_tag, metadata, created_at, settled)"
    " VALUES (:id, :branch, :version, :scheme, :staged, :size, :e_tag, :metadata, :created_at, :settled) ON CONFLICT DO"
    " NOTHING"
)
DECLARATION = Sql(
    "INSERT INTO pipeline_version (pipeline_id, version, digest, declaration, declared_by, declared_at) VALUES"
    " (:id, :version, :digest, :text, :declared_by, :declared_at) ON CONFLICT DO NOTHING"
)
THERE = _with_ids(
    "SELECT id FROM node WHERE id AMONG UNION SELECT id FROM principal WHERE id AMONG UNION SELECT id FROM role WHERE"
    " id AMONG"
)
NAME = Sql(f"UPDATE node SET name_space = 'metalake', name = :name WHERE id = :id AND name_space = '{STAGE}'")
SOME = Sql("SELECT old_id, new_id FROM import_object WHERE import_id = :import ORDER BY old_id LIMIT :limit")
FORGET = _with_ids("DELETE FROM import_object WHERE import_id = :import AND old_id AMONG")
FORGET_IMPORT = Sql("DELETE FROM metalake_import WHERE id = :import")
FORGET_CLOCK = Sql("DELETE FROM clock WHERE zone = :lock")
_HANGING = (
    ("owner", "object_id"),
    ("document", "node_id"),
    ("protection", "node_id"),
    ("restriction", "object_id"),
    ("tag_object", "object_id"),
    ("policy_object", "object_id"),
    ("statistic", "object_id"),
    ("column_attachment", "object_id"),
    ("tag_value", "object_id"),
    ("column_statistic", "object_id"),
    ("access_grant", "role_id"),
    ("role_member", "role_id"),
    ("group_member", "group_id"),
    ("dependency", "user_id"),
    ("model_version", "model_id"),
    ("model_alias", "model_id"),
    ("lance_version", "node_id"),
    ("place", "owner_id"),
    ("fileset_place", "node_id"),
    ("pipeline_version", "pipeline_id"),
    ("clock", "zone"),
    ("principal", "id"),
    ("role", "id"),
    ("node", "id"),
)
WIPES = tuple(_with_ids(f"DELETE FROM {table} WHERE {column} AMONG") for table, column in _HANGING)
"""For each table that may have rows of an abandoned import, the statement that deletes them."""


def lock_of(import_id: int) -> int:
    """Return the zone of an import, a negative number.

    Transactions that write to the import lock the clock of this zone.
    """
    return -import_id


class MetalakeImport(NamedTuple):
    """An import: its name, its progress, and the header of its file. `form` is the format of the file; with `keeps`,
    objects keep the ids that they have in the file.
    """

    id: int
    name: str
    form: str
    keeps: bool
    state: str
    records: int
    source: str
    metalake_id: int
    owner_id: int
    """The metalake's owner, by its id in the file."""
    masked: tuple[str, ...]
    """The secret properties that are missing in the file."""
    begun_by: str
    begun_at: int
    fed_at: int


class ImportedObject(NamedTuple):
    """The new object for an object of the file: its new id, its kind, the catalog that it is or that contains it (0:
    none), and its depth.
    """

    new_id: int
    kind: Kind
    catalog_id: int = 0
    depth: int = 0
    provider: str = ""
    nests: bool = False


def _import_of(row: Row) -> MetalakeImport:
    masked = tuple(json.loads(row[9]))
    return MetalakeImport(
        id=row[0],
        name=row[1],
        form=row[2],
        keeps=bool(row[3]),
        state=row[4],
        records=row[5],
        source=row[6],
        metalake_id=row[7],
        owner_id=row[8],
        masked=masked,
        begun_by=row[10],
        begun_at=row[11],
        fed_at=row[12],
    )


def import_read(import_id: int) -> Load[MetalakeImport | None]:
    """Read an import by its id; None if it does not exist."""
    rows = yield ONE, {"id": import_id}
    return _import_of(rows[0]) if rows else None


def imports_read(limit: int) -> Load[list[MetalakeImport]]:
    """Read up to `limit` unfinished imports."""
    rows = yield ALL, {"limit": limit}
    return [_import_of(row) for row in rows]


def refs_read(import_id: int, old_ids: Sequence[int]) -> Load[dict[int, ImportedObject]]:
    """Read the imported objects for ids of the file; ids that were not imported yet are omitted."""
    rows = yield REFS, {"import": import_id, "ids": json.dumps(old_ids)}
    return dict(map(_ref_of, rows))


def _ref_of(row: Row) -> tuple[int, ImportedObject]:
    return row[0], ImportedObject(
        new_id=row[1], kind=KINDS[row[2]], catalog_id=row[3], depth=row[4], provider=row[5], nests=bool(row[6])
    )


class ImportWrites(Writes):
    """Reads and writes imports and imported objects inside a transaction."""

    def begin(self, name: str, *, form: str, keeps: bool) -> MetalakeImport:
        """Insert an import, and its zone's clock, which serializes the requests that send its records."""
        last: int | None = self.tx.rows(LAST, {})[0][0]
        # Not an id of the store: the imported file may use the same ids.
        import_id = max(self.tx.now_ms, (last or 0) + 1)
        self.tx.new_zone(lock_of(import_id))
        params: dict[str, Value] = {"id": import_id, "name": name, "form": form, "keeps": keeps}
        self.tx.count(BEGIN, params | {"actor": self.tx.actor, "now": self.tx.now_ms})
        now = self.tx.now_ms
        return MetalakeImport(
            id=import_id,
            name=name,
            form=form,
            keeps=keeps,
            state=OPEN,
            records=0,
            source="",
            metalake_id=0,
            owner_id=0,
            masked=(),
            begun_by=self.tx.actor,
            begun_at=now,
            fed_at=now,
        )

    def read(self, import_id: int) -> MetalakeImport | None:
        """Read an import inside the transaction, or None."""
        rows = self.tx.rows(ONE, {"id": import_id})
        return _import_of(rows[0]) if rows else None

    def refs(self, import_id: int, old_ids: Iterable[int]) -> dict[int, ImportedObject]:
        """Read the imported objects for ids of the file inside the transaction, like `refs_read`."""
        rows = self.tx.rows(REFS, {"import": import_id, "ids": json.dumps(list(old_ids))})
        return dict(map(_ref_of, rows))

    def find_used_id(self, ids: Sequence[int]) -> int | None:
        """Return the lowest of these ids that is or was the id of an object of the store, or None."""
        rows = self.tx.rows(TAKEN, {"ids": json.dumps(ids)})
        return rows[0][0] if rows else None

    def put(self, import_id: int, refs: Mapping[int, ImportedObject]) -> None:
        """Store the mapping of objects of the file to new objects."""
        self.many(
            PUT,
            [
                {
                    "import": import_id,
                    "old": old,
                    "new": ref.new_id,
                    "kind": int(ref.kind),
                    "catalog": ref.catalog_id,
                    "depth": ref.depth,
                    "provider": ref.provider,
                    "nests": ref.nests,
                }
                for old, ref in refs.items()
            ],
        )

    def many(self, statement: Sql, rows: Sequence[Params]) -> None:
        """Insert rows. Rows that conflict with existing rows are skipped; `missing` finds those."""
        if rows:
            self.tx.session.many(statement, rows)

    def missing(self, ids: Sequence[int]) -> int | None:
        """Return the first of `ids` that has no row of a node, principal or role; None if all have one. A row is
        missing if its insert was skipped because of a conflict, such as a taken name.
        """
        existing_ids = {row[0] for row in self.tx.rows(THERE, {"ids": json.dumps(ids)})}
        return next((each for each in ids if each not in existing_ids), None)

    def document(self, document: MetadataDocument, node_id: int) -> None:
        """Insert the metadata document of a table or view. Raises BadRequest if another table is at its location."""
        DocumentWrites(self.tx).create(
            MetadataDocument(
                node_id=node_id,
                version=1,
                uuid=document.uuid,
                location=document.location,
                metadata_location=document.metadata_location,
                body=document.body,
            )
        )

    def advance(self, metalake_import: MetalakeImport) -> None:
        """Store the progress of an import."""
        params: dict[str, Value] = {
            "id": metalake_import.id,
            "records": metalake_import.records,
            "source": metalake_import.source,
        }
        params |= {
            "metalake": metalake_import.metalake_id,
            "owner": metalake_import.owner_id,
            "masked": json.dumps(metalake_import.masked),
        }
        self.tx.count(ADVANCE, params | {"now": self.tx.now_ms})

    def end(self, import_id: int) -> None:
        """Mark an import as complete: the file was read to its end."""
        self.tx.count(STATE, {"id": import_id, "state": WHOLE, "now": self.tx.now_ms})

    def publish(self, metalake_import: MetalakeImport, *, owner_id: int) -> None:
        """Give the metalake its name, which makes it visible with everything in it, and complete the import.

        The name must be free.
        """
        self.tx.count(NAME, {"id": metalake_import.metalake_id, "name": metalake_import.name})
        self.tx.add_change(
            ChangeDraft(
                operation="create",
                kind=Kind.METALAKE,
                node_id=metalake_import.metalake_id,
                name_space="metalake",
                old_parent=None,
                old_name=None,
                new_parent=ROOT_ID,
                new_name=metalake_import.name,
                owner_id=owner_id,
            )
        )
        self.tx.count(STATE, {"id": metalake_import.id, "state": DONE, "now": self.tx.now_ms})

    def give_up(self, import_id: int) -> None:
        """Abandon an import. `prune` deletes its rows step by step."""
        self.tx.count(STATE, {"id": import_id, "state": GIVEN_UP, "now": self.tx.now_ms})

    def idle(self, *, before: int) -> list[int]:
        """Read the ids of the unfinished imports that received no records since `before`, in milliseconds since
        1970.
        """
        return [row[0] for row in self.tx.rows(IDLE, {"before": before})]

    def prune(self, import_id: int, *, limit: int) -> bool:
        """Delete up to `limit` rows of an ended import, and if it was abandoned, their objects.

        Returns whether more rows remain.
        """
        metalake_import = self.read(import_id)
        if metalake_import is None or metalake_import.state in (OPEN, WHOLE):
            return False
        some = self.tx.rows(SOME, {"import": import_id, "limit": limit})
        if not some:
            self.tx.count(FORGET_CLOCK, {"lock": lock_of(import_id)})
            self.tx.count(FORGET_IMPORT, {"import": import_id})
            return False
        if metalake_import.state == GIVEN_UP:
            ids = json.dumps([new for _, new in some])
            for statement in WIPES:
                self.tx.count(statement, {"ids": ids})
        self.tx.count(FORGET, {"import": import_id, "ids": json.dumps([old for old, _ in some])})
        return True
