# SPDX-License-Identifier: Apache-2.0
"""Field ids by name and names by field id, over all schemas in a table's or view's metadata.

Must not know commits. Source: Iceberg specification, "Schemas and Data Types". Decodes only the needed parts of a
document, so a long history of snapshots costs little.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

DEPTH_MAX = 20
"""The maximum nesting depth of fields that are read."""
BYTES_MAX = 8 << 20
"""The maximum size of a document that is read, in bytes; larger ones are treated as having no fields."""


class _SnapshotSchema(msgspec.Struct, frozen=True, rename="kebab"):
    snapshot_id: int = -1
    schema_id: int | None = None


class _SchemaHistory(msgspec.Struct, frozen=True, rename="kebab"):
    schemas: list[dict[str, object]] = []
    current_schema_id: int | None = None
    snapshots: list[_SnapshotSchema] | None = None


class FieldNames(NamedTuple):
    """The field ids of a table by name, in each of its schemas.

    `schemas` has field ids by name for each schema id: first the current schema, then the others, the newest first.
    `names` has the latest name of each field id. `by_snapshot` has the schema id of each snapshot.
    """

    schemas: dict[int, dict[str, int]]
    names: dict[int, str]
    by_snapshot: dict[int, int]

    @property
    def current(self) -> dict[str, int]:
        """The field ids of the current schema by name."""
        return next(iter(self.schemas.values()), {})

    def id_of(self, name: str, *, snapshot: int | None = None) -> int | None:
        """Return the field id of a name, from the schema of the given snapshot, else from the current schema or the
        newest that has the name.
        """
        schema = None if snapshot is None else self.by_snapshot.get(snapshot)
        if schema is not None and name in self.schemas.get(schema, {}):
            return self.schemas[schema][name]
        return next((ids[name] for ids in self.schemas.values() if name in ids), None)


NOTHING = FieldNames({}, {}, {})


def field_names(body: bytes) -> FieldNames:
    """Read the field names in all schemas of a metadata document; `NOTHING` if it is malformed or too large."""
    if len(body) > BYTES_MAX:
        return NOTHING
    try:
        history = msgspec.json.decode(body, type=_SchemaHistory)
    except msgspec.DecodeError:
        return NOTHING
    schemas: dict[int, dict[str, int]] = {}
    current = history.current_schema_id
    for schema in sorted(history.schemas, key=lambda each: _number(each, "schema-id") == current, reverse=True):
        schemas.setdefault(_number(schema, "schema-id"), _fields(schema, "", depth=DEPTH_MAX))
    head, *older = schemas.items() if schemas else ((0, {}),)
    names_by_schema = dict([head, *sorted(older, reverse=True)])
    names: dict[int, str] = {}
    for ids in names_by_schema.values():
        for name, field_id in ids.items():
            names.setdefault(field_id, name)
    by_snapshot = {each.snapshot_id: each.schema_id for each in history.snapshots or () if each.schema_id is not None}
    return FieldNames(names_by_schema, names, by_snapshot)


def _number(value: dict[str, object], key: str) -> int:
    result = value.get(key)
    return result if isinstance(result, int) else 0


def _fields(kind: object, prefix: str, *, depth: int) -> dict[str, int]:
    """Return the ids of a type's fields by their dotted names."""
    results: dict[str, int] = {}
    if not isinstance(kind, dict) or not depth:
        return results
    parts: list[tuple[object, object, object]] = []
    fields = kind.get("fields")
    if isinstance(fields, list):
        parts = [(each.get("name"), each.get("id"), each.get("type")) for each in fields if isinstance(each, dict)]
    for part in ("element", "key", "value"):
        if f"{part}-id" in kind:
            parts.append((part, kind[f"{part}-id"], kind.get(part)))
    for name, field_id, inner in parts:
        if isinstance(name, str) and isinstance(field_id, int):
            results[f"{prefix}{name}"] = field_id
            results |= _fields(inner, f"{prefix}{name}.", depth=depth - 1)
    return results
