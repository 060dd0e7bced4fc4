# SPDX-License-Identifier: Apache-2.0
"""A table's metadata during a commit: copy on write, and the state that the request's updates share.

Must not know single updates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from limnos.formats.iceberg.client_times import AHEAD_MS
from limnos.formats.iceberg.json_types import Json, as_object, hashable, integer_at
from limnos.formats.iceberg.metadata import references, rows, with_current_shape
from limnos.formats.iceberg.partitioning import key_of, stored_fields
from limnos.formats.iceberg.rows import SCANS_MAX, DocumentRows
from limnos.formats.iceberg.schema import SchemaColumns, columns
from limnos.model.errors import BadRequest

HERE = "Table metadata"

ID_KEYS = {
    "schemas": "schema-id",
    "partition-specs": "spec-id",
    "sort-orders": "order-id",
    "snapshots": "snapshot-id",
    "statistics": "snapshot-id",
    "partition-statistics": "snapshot-id",
    "encryption-keys": "key-id",
}
"""The lists whose rows have ids, with the key of the id."""


@dataclass(slots=True, kw_only=True)
class MetadataDraft:
    """The metadata document that the updates of a commit change.

    `doc` is a shallow copy. Replace its values directly. Change objects through `edit_map`, logs through `edit_log`,
    which copy once, and lists of objects with ids through `rows`, which `settle` writes into `doc`. `origin` is the
    document before the commit and is never changed; None for a new table.
    """

    doc: Json
    origin: Json | None
    now_ms: int
    stored: Json | None = None
    """The document before the commit as it was stored: `origin` itself, or one that lacks lists which `origin` has."""
    ahead_ms: int = AHEAD_MS
    """The maximum time by which clients' times may be ahead of `now_ms`, in milliseconds."""
    updated_ms: int | None = None
    """The time of the next snapshot log entry, once an update of this request has set it."""
    schema_updates: int = 0
    """The number of `add-schema` updates of this request so far."""
    added_schema_id: int | None = None
    added_spec_id: int | None = None
    added_order_id: int | None = None
    added_snapshots: dict[int, int] = field(default_factory=dict)
    """Snapshots added by this request: id to timestamp in ms."""
    schemas_of_snapshots: dict[int, object] = field(default_factory=dict)
    """The schema ids of snapshots that this request added, by snapshot id."""
    main_ids: list[int] = field(default_factory=list)
    """Snapshots that this request made current, in order."""
    dropped_snapshots: bool = False
    removed_schemas: set[int] = field(default_factory=set)
    """The ids of schemas that this request removed."""
    is_reworded: bool = False
    """Whether the document says the same in other words, such as `5.0` for `5`, which compare as equal."""
    _owned: set[str] = field(default_factory=set)
    _lists: dict[str, DocumentRows] = field(default_factory=dict)
    _logs: dict[str, list[Json]] = field(default_factory=dict)
    _extended: dict[str, list[Json]] = field(default_factory=dict)
    """The former logs of which this draft has a copy, with entries appended."""
    _refs_to: dict[object, set[str]] | None = None
    _field_ids: dict[object, object] | None = None
    _parent_ids: set[object] | None = None
    _added_parents: set[object] = field(default_factory=set)
    _parent_scans: int = 0
    _columns: dict[object, SchemaColumns] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The format version, as upgraded so far."""
        return integer_at(self.doc, "format-version", where=HERE)

    def integer(self, key: str) -> int:
        """Return an integer field of the document. Raises BadRequest if it is missing or not an integer."""
        return integer_at(self.doc, key, where=HERE)

    def rows(self, key: str) -> DocumentRows:
        """Return a list of objects with ids, such as `schemas`, for reading and for changes."""
        document_rows = self._lists.get(key)
        if document_rows is None:  # cached, because checking every element of a long list dominates a commit
            document_rows = self._lists[key] = DocumentRows(rows(self.doc, key), ID_KEYS[key])
        return document_rows

    def settle(self) -> None:
        """Write the changed lists into the document."""
        for key, document_rows in self._lists.items():
            if document_rows.changed:
                self.doc[key] = document_rows.to_list()

    def replace_document(self, corrected: Json) -> None:
        """Replace the whole document by one that states the same in other words. `settle` must come before."""
        self.doc = corrected
        self.is_reworded = True
        for cached in (self._owned, self._lists, self._logs, self._extended, self._columns):
            cached.clear()

    def log(self, key: str) -> list[Json]:
        """Return a log, such as `snapshot-log`, for reading only; empty if it is missing."""
        results = self._logs.get(key)
        if results is None:
            results = self._logs[key] = rows(self.doc, key)
        return results

    def edit_log(self, key: str) -> list[Json]:
        """Return a log to append entries to: a copy that belongs to this draft, made at the first call."""
        log = self.log(key)
        if key in self._owned:
            return log
        copied = self.put_log(key, list(log))
        self._extended[key] = log
        return copied

    def put_log(self, key: str, new: list[Json]) -> list[Json]:
        """Replace a log by a list that belongs to this draft."""
        self._owned.add(key)
        self._extended.pop(key, None)
        self.doc[key] = self._logs[key] = new
        return new

    def grown_lists(self) -> dict[str, list[Json]]:
        """Return the former lists to which this request only appended rows, by key: snapshots, and the snapshot log."""
        grown = dict(self._extended)
        if (snapshots := self._lists.get("snapshots")) is not None and snapshots.is_grown:
            grown["snapshots"] = snapshots.given
        return grown

    def map(self, key: str) -> Json:
        """Return an object field, such as `properties`, for reading only; empty if it is missing or null."""
        result = self.doc.get(key)
        if isinstance(result, dict):
            return result
        return {} if result is None else as_object(result, f"{HERE}: field '{key}'")

    def edit_map(self, key: str) -> Json:
        """Return an object field for changes: a copy that belongs to this draft, made at the first call."""
        fields = self.map(key)
        if key in self._owned:
            return fields
        self._owned.add(key)
        copied = dict(fields)
        self.doc[key] = copied
        return copied

    def refs_to(self) -> dict[object, set[str]]:
        """Return the names of branches and tags by snapshot id. `put_ref` keeps the mapping up to date."""
        if self._refs_to is None:
            self._refs_to = {}
            for name, ref in references(self.doc).items():
                self._refs_to.setdefault(integer_at(ref, "snapshot-id", where=HERE), set()).add(name)
        return self._refs_to

    def put_ref(self, name: str, ref: Json | None) -> None:
        """Set or remove (None) a reference. Does not change the current snapshot."""
        refs = self.edit_map("refs")
        former_ref = refs.pop(name, None) if ref is None else refs.get(name)
        if ref is not None:
            refs[name] = ref
        if self._refs_to is None:
            return
        if isinstance(former_ref, dict):
            self._refs_to.get(former_ref.get("snapshot-id"), set()).discard(name)
        if ref is not None:
            self._refs_to.setdefault(ref.get("snapshot-id"), set()).add(name)

    def has_child(self, snapshot_id: int) -> bool:
        """Return whether a snapshot of the document names this one as its parent."""
        ids = self.rows("snapshots").known
        if ids is not None and snapshot_id not in ids.parents and snapshot_id not in self._added_parents:
            return False
        if self._parent_ids is None and self._parent_scans < SCANS_MAX:
            self._parent_scans += 1
            return snapshot_id in [row.get("parent-snapshot-id") for row in self.rows("snapshots").to_list()]
        if self._parent_ids is None:
            self._parent_ids = {hashable(row.get("parent-snapshot-id")) for row in self.rows("snapshots")}
        return snapshot_id in self._parent_ids

    def add_snapshot(self, snapshot: Json, time_ms: int) -> None:
        """Append a checked snapshot of this request; `time_ms` is its time since 1970."""
        snapshot_id = integer_at(snapshot, "snapshot-id", where=HERE)
        self.rows("snapshots").append(snapshot)
        self.updated_ms = self.added_snapshots[snapshot_id] = time_ms
        if snapshot.get("schema-id") is not None:
            self.schemas_of_snapshots[snapshot_id] = snapshot["schema-id"]
        parent_id = hashable(snapshot.get("parent-snapshot-id"))
        self._added_parents.add(parent_id)
        if self._parent_ids is not None:
            self._parent_ids.add(parent_id)

    def field_ids(self) -> dict[object, object]:
        """Return the ids of partition fields by (source id, transform).

        A caller that adds a partition spec must add its fields to this mapping.
        """
        if self._field_ids is None:
            specs = map(stored_fields, self.rows("partition-specs"))
            self._field_ids = {key_of(one): one.get("field-id") for fields in specs for one in fields}
        return self._field_ids

    def current_schema(self) -> Json | None:
        """Return the current schema; for a new table without one, the schema that was added last."""
        fields = self.rows("schemas").find(self.integer("current-schema-id"))
        if fields is None and self.added_schema_id is not None:
            fields = self.rows("schemas").find(self.added_schema_id)
        return fields

    def current_columns(self, needed_for: str) -> SchemaColumns:
        """Return the columns of the current schema.

        Raises BadRequest if there is none yet; `needed_for` names the update in the message.
        """
        schema = self.current_schema()
        if schema is None:
            raise BadRequest(f"Cannot add a {needed_for} before a schema: send add-schema and set-current-schema first")
        return self.columns_of(schema)

    def columns_of(self, schema: Json) -> SchemaColumns:
        """Return the columns of a schema in the document, validated once per commit."""
        key = schema.get("schema-id")
        schema_columns = self._columns.get(key)
        if schema_columns is None:
            schema_columns = self._columns[key] = columns(schema)
        return schema_columns

    def cache_columns(self, schema_id: int, schema_columns: SchemaColumns) -> None:
        """Cache the columns of a schema that was just added."""
        self._columns[schema_id] = schema_columns

    @property
    def latest_ms(self) -> int:
        """The latest allowed timestamp from a client, in milliseconds since 1970.

        A later timestamp in the document is from a wrong clock.
        """
        return self.now_ms + self.ahead_ms

    def plausible(self, time_ms: int) -> int:
        """Return a stored timestamp in milliseconds, or the current time if it is in the future.

        A future timestamp in a log would make all new snapshots invalid until that time.
        """
        return time_ms if time_ms <= self.now_ms + self.ahead_ms else self.now_ms

    def stamp(self) -> int:
        """Return the timestamp of this commit for the snapshot log, in milliseconds: that of the added snapshot, else
        the current time, but not before the last entry.
        """
        if self.updated_ms is None:
            log = self.log("snapshot-log")
            last = self.plausible(integer_at(log[-1], "timestamp-ms", where=HERE)) if log else 0
            self.updated_ms = max(self.now_ms, last)
        return self.updated_ms


def start(base: Json | None, *, version: int, now_ms: int, ahead_ms: int = AHEAD_MS) -> MetadataDraft:
    """Create a draft of `base`, or of a new table in format `version` (ignored with a base)."""
    if base is not None:
        origin = with_current_shape(base)
        return MetadataDraft(doc=dict(origin), origin=origin, stored=base, now_ms=now_ms, ahead_ms=ahead_ms)
    doc: Json = {"format-version": version, "table-uuid": None, "location": None}
    if version > 1:
        doc["last-sequence-number"] = 0
    doc |= {"last-updated-ms": now_ms, "last-column-id": 0, "current-schema-id": 0, "schemas": []}
    doc |= {"default-spec-id": 0, "partition-specs": [], "last-partition-id": 999}
    doc |= {"default-sort-order-id": 0, "sort-orders": [], "properties": {}}
    doc |= empty_history(version)
    return MetadataDraft(doc=doc, origin=None, now_ms=now_ms, ahead_ms=ahead_ms)


def empty_history(version: int) -> Json:
    """Return the initial snapshot fields of the metadata of a new table, without snapshots."""
    history: Json = {"current-snapshot-id": -1}
    if version >= 3:
        history = {"current-snapshot-id": None, "next-row-id": 0}
    lists = ("snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log")
    return {**history, "refs": {}, **{key: [] for key in lists}}


def resolve_added_id(chosen: int, added: int | None, *, what: str, update: str) -> int:
    """Return the id in an update: -1 stands for the last object that the request added, whose id is `added`.

    Raises BadRequest if the request added none.
    """
    if chosen != -1:
        return chosen
    if added is None:
        raise BadRequest(f"Cannot set last added {what}: no {what} has been added; send {update} first or name an id")
    return added
