"""A table's metadata while one commit changes it: copy on write, and what the updates of the request have to share.

May import the standard library, `limnos.model.errors` and this package. Must not know the meaning of single updates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from limnos.formats.iceberg.json_types import Json, as_object, integer_at
from limnos.formats.iceberg.metadata import rows, with_current_shape
from limnos.formats.iceberg.schema import Columns, columns
from limnos.model.errors import BadRequest

HERE = "Table metadata"


@dataclass(slots=True)
class Draft:
    """The document being built.

    `doc` is a shallow copy: replace its values, and take lists and maps to change from `edit_rows` and `edit_map`,
    which copy them once. `origin` is what the commit started from and is never changed; None for a new table.
    """

    doc: Json
    origin: Json | None
    now_ms: int
    updated_ms: int | None = None
    """The table's next last-updated-ms, when an update of this request has settled it."""
    added_schema_id: int | None = None
    added_spec_id: int | None = None
    added_order_id: int | None = None
    added_snapshots: dict[int, int] = field(default_factory=dict)
    """Snapshots added by this request: id to timestamp in ms."""
    main_ids: list[int] = field(default_factory=list)
    """Snapshots that this request made current, in order."""
    dropped_snapshots: bool = False
    _owned: set[str] = field(default_factory=set)
    _lists: dict[str, list[Json]] = field(default_factory=dict)
    _columns: dict[object, Columns] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The format version, as upgraded so far."""
        return integer_at(self.doc, "format-version", where=HERE)

    def integer(self, key: str) -> int:
        """An integer field of the document."""
        return integer_at(self.doc, key, where=HERE)

    def rows(self, key: str) -> list[Json]:
        """A list of objects to read."""
        found = self._lists.get(key)
        if found is None:  # checking every element of a long list costs more than all the rest: once
            found = self._lists[key] = rows(self.doc, key)
        return found

    def edit_rows(self, key: str) -> list[Json]:
        """A list of objects to change; it belongs to this draft alone."""
        found = self.rows(key)
        return found if key in self._owned else self.put_rows(key, list(found))

    def put_rows(self, key: str, new: list[Json]) -> list[Json]:
        """Replace a list by one that belongs to this draft alone."""
        self._owned.add(key)
        self.doc[key] = self._lists[key] = new
        return new

    def map(self, key: str) -> Json:
        """An object to read; empty when missing or null."""
        found = self.doc.get(key)
        return {} if found is None else as_object(found, f"{HERE}: field '{key}'")

    def edit_map(self, key: str) -> Json:
        """An object to change; it belongs to this draft alone."""
        found = self.map(key)
        if key in self._owned:
            return found
        self._owned.add(key)
        copied = dict(found)
        self.doc[key] = copied
        return copied

    def find(self, key: str, id_key: str, wanted: int) -> Json | None:
        """The element of a list that has an id, or None. The newest, which stands last, is the likeliest."""
        return next((row for row in reversed(self.rows(key)) if row.get(id_key) == wanted), None)

    def current_schema(self) -> Json | None:
        """The current schema; for a table whose first schema is not yet current, the one added last."""
        found = self.find("schemas", "schema-id", self.integer("current-schema-id"))
        if found is None and self.added_schema_id is not None:
            found = self.find("schemas", "schema-id", self.added_schema_id)
        return found

    def current_columns(self, needed_for: str) -> Columns:
        """The current schema's columns. Raises BadRequest when there is no schema yet."""
        schema = self.current_schema()
        if schema is None:
            raise BadRequest(f"Cannot add a {needed_for} before a schema: send add-schema and set-current-schema first")
        return self.columns_of(schema)

    def columns_of(self, schema: Json) -> Columns:
        """The columns of a schema in the document, checked once per commit."""
        key = schema.get("schema-id")
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = columns(schema)
        return found

    def know_columns(self, schema_id: int, found: Columns) -> None:
        """Remember the columns of a schema that has just been added."""
        self._columns[schema_id] = found

    def stamp(self) -> int:
        """The time of this commit in ms: that of its snapshot if it adds one, else now, never before the last change."""
        if self.updated_ms is None:
            before = 0 if self.origin is None else integer_at(self.origin, "last-updated-ms", where=HERE)
            self.updated_ms = max(self.now_ms, before)
        return self.updated_ms


def start(base: Json | None, *, version: int, now_ms: int) -> Draft:
    """A draft of `base`, or of a new table in format `version` (ignored when there is a base)."""
    if base is not None:
        origin = with_current_shape(base)
        return Draft(dict(origin), origin, now_ms)
    doc: Json = {"format-version": version, "table-uuid": None, "location": None}
    if version > 1:
        doc["last-sequence-number"] = 0
    doc |= {"last-updated-ms": now_ms, "last-column-id": 0, "current-schema-id": 0, "schemas": []}
    doc |= {"default-spec-id": 0, "partition-specs": [], "last-partition-id": 999}
    doc |= {"default-sort-order-id": 0, "sort-orders": [], "properties": {}}
    doc |= empty_history(version)
    return Draft(doc, None, now_ms)


def empty_history(version: int) -> Json:
    """The fields of a table that has no snapshot yet."""
    fresh: Json = {"current-snapshot-id": -1}
    if version >= 3:
        fresh = {"current-snapshot-id": None, "next-row-id": 0}
    lists = ("snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log")
    return {**fresh, "refs": {}, **{key: [] for key in lists}}


def added_or(chosen: int, added: int | None, *, what: str, update: str) -> int:
    """The id an update means: -1 stands for the one added last in the same request."""
    if chosen != -1:
        return chosen
    if added is None:
        raise BadRequest(f"Cannot set last added {what}: no {what} has been added; send {update} first or name an id")
    return added
