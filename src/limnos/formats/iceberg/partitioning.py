# SPDX-License-Identifier: Apache-2.0
"""Partition specs as JSON: checks them against a schema, assigns field ids, and compares them.

Must not know tables or commits. Source: Iceberg specification, "Partitioning".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from limnos.formats.iceberg.json_types import (
    INT_MAX,
    Json,
    as_object,
    hashable,
    integer_at,
    objects_at,
    optional_integer_at,
    string_at,
    text_at,
)
from limnos.formats.iceberg.schema import SchemaColumn, SchemaColumns
from limnos.formats.iceberg.transforms import canonical_transform, check_source, is_readable, parse_transform
from limnos.model.errors import BadRequest

FIRST_FIELD_ID = 1000
_SPEC = "Invalid partition spec"
_ITEMS = re.compile(r"\.(?:element|value)\.")


def spec_fields(spec: object) -> list[Json]:
    """Check a spec and return its fields in stored form; `field-id` may be absent.

    Raises BadRequest for malformed JSON, unknown transforms, a duplicate name or field id, or the same transform of the
    same column twice.
    """
    fields = [_field(one) for one in objects_at(as_object(spec, _SPEC), "fields", where=_SPEC)]
    _check_unique("name", [one["name"] for one in fields])
    _check_unique("field id", [one["field-id"] for one in fields if "field-id" in one])
    _check_unique("source and transform", [key_of(one) for one in fields if one["transform"] != "void"])
    return fields


def _field(arguments: Json) -> Json:
    name = text_at(arguments, "name", where=f"{_SPEC}, a field")
    where = f"{_SPEC}, field '{name}'"
    parsed = parse_transform(string_at(arguments, "transform", where=where), where=where)
    integer_at(arguments, "source-id", where=where, low=0, high=INT_MAX)
    stored_field = {**arguments, "transform": parsed}
    if optional_integer_at(arguments, "field-id", where=where, low=0, high=INT_MAX) is None:
        stored_field.pop("field-id", None)
    return stored_field


def _check_unique(what: str, values: list[object]) -> None:
    seen_fields: set[object] = set()
    for value in values:
        if value in seen_fields:
            output = " ".join(str(part) for part in value) if isinstance(value, tuple) else value
            raise BadRequest(f"{_SPEC}: {what} {output} is used more than once")
        seen_fields.add(value)


def stored_fields(spec: Json) -> list[Json]:
    """Return the `fields` of a stored partition spec. Raises BadRequest if they are not a list of objects."""
    return objects_at(spec, "fields", where="Partition spec")


def check_binding(fields: Iterable[Json], columns: SchemaColumns) -> None:
    """Check that each field's source column exists and fits its transform. Raises BadRequest."""
    for one in fields:
        where = f"{_SPEC}, field '{one.get('name')}'"
        source_id = integer_at(one, "source-id", where=where)
        check_source(columns, source_id, str(canonical_transform(one.get("transform"))), where=where)


def check_readable(fields: Iterable[Json], columns: SchemaColumns) -> None:
    """Check that readers of the current schema accept the fields of a spec, which may be a former one.

    Iceberg's Java library reads no table in which a field has the name of a column that is not its source, or a
    transform that its source's present type does not have, unless the source was dropped. It also counts the names of
    columns in lists and maps without `element` and `value`. Raises BadRequest.
    """
    for one in fields:
        name, source_id = str(one.get("name")), one.get("source-id")
        source = columns.by_id.get(source_id) if isinstance(source_id, int) else None
        if source is None:
            continue
        column = columns.by_name.get(name) or (_column_by_short_name(name, columns) if "." in name else None)
        if column is not None and column.id != source_id:
            raise BadRequest(
                f"{_SPEC}, field '{name}': column {column.id} has that name and is not its source; rename the column, "
                "or choose another name for the field"
            )
        transform_text = str(canonical_transform(one.get("transform")))
        if not is_readable(source, transform_text):
            raise BadRequest(
                f"{_SPEC}, field '{name}': transform {transform_text} cannot read column '{source.name}' with its new "
                "type; add a column under another name, or remove the spec"
            )


def _column_by_short_name(name: str, columns: SchemaColumns) -> SchemaColumn | None:
    return next((each for full, each in columns.by_name.items() if "." in full and _ITEMS.sub(".", full) == name), None)


def key_of(one: Json) -> tuple[object, object]:
    """Return a partition field's (source id, transform), by which equal fields of different specs get the same field
    id.
    """
    return hashable(one.get("source-id")), canonical_transform(one.get("transform"))


def content_of(fields: Iterable[Json]) -> tuple[tuple[object, ...], ...]:
    """Return a key for the sources, transforms and names of fields: equal for two equal specs, regardless of their
    field ids.
    """
    return tuple((*key_of(one), hashable(one.get("name"))) for one in fields)


def with_field_ids(fields: list[Json], next_id: Callable[[Json], int]) -> list[Json]:
    """Return the fields with a `field-id` each; a field without an id gets `next_id(field)`."""
    return [one if "field-id" in one else {**one, "field-id": next_id(one)} for one in fields]


def highest_field_id(fields: Iterable[Json]) -> int:
    """Return the highest field id; 999 if there are no fields, since ids begin at 1000."""
    return max((integer_at(one, "field-id", where=_SPEC) for one in fields), default=FIRST_FIELD_ID - 1)


def is_sequential(fields: list[Json]) -> bool:
    """Return whether the field ids are 1000, 1001 and so on, as format version 1 requires."""
    return all(one.get("field-id") == FIRST_FIELD_ID + position for position, one in enumerate(fields))


def renumber_spec(fields: Iterable[Json], source_ids: dict[object, int]) -> list[Json]:
    """Return the fields of a new table's spec: source ids are mapped to the new column ids (`source_ids`), and field
    ids count from 1000.
    """
    return [
        {**one, "source-id": source_ids[one["source-id"]], "field-id": FIRST_FIELD_ID + position}
        for position, one in enumerate(fields)
    ]
