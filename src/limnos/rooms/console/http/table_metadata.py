# SPDX-License-Identifier: Apache-2.0
"""The parts of an Iceberg table's metadata that pages show, decoded without the rest.

Pure. Fields that old writers omit have defaults.
"""

from __future__ import annotations

from typing import Final

import msgspec

COLUMNS_MAX: Final = 1_000
"""The maximum number of columns that a page shows, nested ones included."""
DEPTH_MAX: Final = 30


class FieldPart(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The displayed parts of a struct's field: its id, name and type, whether it is required, and its comment."""

    id: int
    name: str
    type: object
    required: bool = False
    doc: str | None = None


class SchemaPart(msgspec.Struct, frozen=True, rename="kebab"):
    """The parts of a schema in table metadata that the page shows."""

    fields: list[FieldPart] = []
    schema_id: int = 0
    identifier_field_ids: list[int] = []


class SnapshotPart(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    """A snapshot; times are milliseconds since 1970."""

    snapshot_id: int
    timestamp_ms: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    schema_id: int | None = None
    summary: dict[str, str] = {}


class ReferencePart(msgspec.Struct, frozen=True, rename="kebab"):
    """The displayed parts of a snapshot reference: a branch or a tag."""

    snapshot_id: int
    type: str


class PartitionFieldPart(msgspec.Struct, frozen=True, rename="kebab"):
    """A field of a partition spec."""

    name: str
    transform: str
    source_id: int = 0


class PartitionSpecPart(msgspec.Struct, frozen=True, rename="kebab"):
    """The parts of a partition spec in table metadata that the page shows."""

    spec_id: int
    fields: list[PartitionFieldPart] = []


class SortFieldPart(msgspec.Struct, frozen=True, rename="kebab"):
    """A field of a sort order."""

    transform: str
    direction: str
    source_id: int = 0
    null_order: str = ""


class SortOrderPart(msgspec.Struct, frozen=True, rename="kebab"):
    """The parts of a sort order in table metadata that the page shows."""

    order_id: int
    fields: list[SortFieldPart] = []


class MetadataPart(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    """The parts of a table's metadata that the pages show."""

    format_version: int = 1
    table_uuid: str = ""
    location: str = ""
    last_updated_ms: int | None = None
    schemas: list[SchemaPart] = []
    schema: SchemaPart | None = None
    current_schema_id: int = 0
    properties: dict[str, str] = {}
    current_snapshot_id: int | None = None
    snapshots: list[SnapshotPart] = []
    refs: dict[str, ReferencePart] = {}
    partition_specs: list[PartitionSpecPart] = []
    default_spec_id: int = 0
    sort_orders: list[SortOrderPart] = []
    default_sort_order_id: int = 0

    def current_schema(self) -> SchemaPart:
        """Return the schema of `current-schema-id`, else the only schema of a version 1 document, else an empty one."""
        lines = next((each for each in self.schemas if each.schema_id == self.current_schema_id), self.schema)
        return SchemaPart() if lines is None else lines


class ColumnLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A column for display; `depth` is 0 for a column of the table, more for a field inside one."""

    number: str
    id: int
    name: str
    type: str
    is_required: bool
    is_key: bool
    comment: str
    tags: list[str]
    depth: int


_decode = msgspec.json.Decoder(MetadataPart).decode


def decode_metadata(body: bytes) -> MetadataPart:
    """Decode a table's metadata JSON; fields that no page shows are skipped."""
    return _decode(body)


def type_text(value: object, *, depth: int = 0) -> str:
    """Return an Iceberg type for display, such as `list<string>`. The fields of a struct are omitted, since they are
    separate rows.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or depth > DEPTH_MAX:
        return "?"
    kind = value.get("type")
    if kind == "list":
        return f"list<{type_text(value.get('element'), depth=depth + 1)}>"
    if kind == "map":
        key, own = type_text(value.get("key"), depth=depth + 1), type_text(value.get("value"), depth=depth + 1)
        return f"map<{key}, {own}>"
    return str(kind)


def column_lines(schema: SchemaPart, tags: dict[int, list[str]]) -> tuple[list[ColumnLine], int]:
    """Return the columns with their nested columns, at most `COLUMNS_MAX`, and the total count of columns."""
    lines: list[ColumnLine] = []
    no_tags: list[str] = []
    keys, count = frozenset(schema.identifier_field_ids), 0
    waiting = [(field, str(number), 0) for number, field in reversed(list(enumerate(schema.fields, 1)))]
    while waiting:
        field, number, depth = waiting.pop()
        count += 1
        if count <= COLUMNS_MAX:
            kind = field.type
            line = ColumnLine(
                number=number,
                id=field.id,
                name=field.name,
                type=kind if isinstance(kind, str) else type_text(kind),
                is_required=field.required,
                is_key=field.id in keys,
                comment=field.doc or "",
                tags=tags.get(field.id, no_tags),
                depth=depth,
            )
            lines.append(line)
        if depth < DEPTH_MAX and not isinstance(field.type, str):
            waiting += [(each, "", depth + 1) for each in reversed(_fields_inside(field.type))]
    return lines, count


def schema_changes(before: SchemaPart, after: SchemaPart) -> list[str]:
    """Describe the columns that differ between two schemas, nested ones included. Columns are compared by id."""
    old, new = ({each.id: each for each in column_lines(schema, {})[0]} for schema in (before, after))
    changes = [f"adds {each.name} {each.type}" for number, each in new.items() if number not in old]
    for number, column in old.items():
        other = new.get(number)
        if other is None:
            changes.append(f"drops {column.name}")
        elif (other.name, other.type) != (column.name, column.type):
            changes.append(f"{column.name} {column.type} becomes {other.name} {other.type}")
        elif other.is_required is not column.is_required:
            changes.append(f"{column.name} becomes {'required' if other.is_required else 'optional'}")
    return changes


def _fields_inside(value: object) -> list[FieldPart]:
    """Return the fields of a struct, or of the struct inside lists and maps (as element or value); else none."""
    steps = 0
    while isinstance(value, dict) and value.get("type") in {"list", "map"} and steps < DEPTH_MAX:
        value = value.get("element") if value["type"] == "list" else value.get("value")
        steps += 1
    if isinstance(value, dict) and value.get("type") == "struct":
        return msgspec.convert(value.get("fields", []), list[FieldPart])
    return []
