# SPDX-License-Identifier: Apache-2.0
"""Sort orders as JSON: checks them against a schema, and compares them.

Must not know tables or commits. Source: Iceberg specification, "Sorting".
"""

from __future__ import annotations

from collections.abc import Iterable

from limnos.formats.iceberg.json_types import (
    INT_MAX,
    Json,
    as_object,
    hashable,
    integer_at,
    objects_at,
    preview_value,
    string_at,
)
from limnos.formats.iceberg.schema import SchemaColumn, SchemaColumns
from limnos.formats.iceberg.transforms import canonical_transform, check_source, parse_transform
from limnos.model.errors import BadRequest

UNSORTED_ID = 0
FIRST_SORTED_ID = 1
_ORDER = "Invalid sort order"
_CHOICES = {"direction": ("asc", "desc"), "null-order": ("nulls-first", "nulls-last")}


def order_fields(order: object) -> list[Json]:
    """Return the fields of a sort order in stored form. Raises BadRequest for malformed JSON and unknown transforms."""
    return [
        _field(one, index) for index, one in enumerate(objects_at(as_object(order, _ORDER), "fields", where=_ORDER))
    ]


def _field(arguments: Json, place: int) -> Json:
    where = f"{_ORDER}, field {place}"
    parsed = parse_transform(string_at(arguments, "transform", where=where), where=where)
    integer_at(arguments, "source-id", where=where, low=0, high=INT_MAX)
    return {**arguments, "transform": parsed, **{key: _choice(arguments, key, where) for key in _CHOICES}}


def _choice(arguments: Json, key: str, where: str) -> str:
    text = string_at(arguments, key, where=where).lower()
    if text not in _CHOICES[key]:
        raise BadRequest(f"{where}: {key} must be {' or '.join(_CHOICES[key])}, not '{preview_value(text)}'")
    return text


def check_choices(stored: Json, *, where: str) -> None:
    """Check the direction and the order of nulls of a stored sort field. Raises BadRequest."""
    for key, words in _CHOICES.items():
        if string_at(stored, key, where=where) not in words:
            raise BadRequest(f"{where}: {key} must be {' or '.join(words)}, not '{preview_value(stored[key])}'")


def stored_fields(order: Json) -> list[Json]:
    """Return the `fields` of a stored sort order. Raises BadRequest if they are not a list of objects."""
    return objects_at(order, "fields", where="Sort order")


def check_binding(fields: Iterable[Json], columns: SchemaColumns) -> None:
    """Check that each field's source column exists and has a type that its transform accepts.

    Raises BadRequest otherwise.
    """
    for index, one in enumerate(fields):
        where = f"{_ORDER}, field {index}"
        source_id = integer_at(one, "source-id", where=where)
        if check_source(columns, source_id, str(canonical_transform(one.get("transform"))), where=where) is None:
            _check_source_of_void(columns.by_id.get(source_id), source_id, where=where)


def _check_source_of_void(column: SchemaColumn | None, source_id: int, *, where: str) -> None:
    """Check the source of a sort field with the transform `void`, which readers check like that of any other.

    Raises BadRequest.
    """
    if column is None:
        raise BadRequest(f"{where}: cannot find source column {source_id} in the current schema")
    if column.primitive is None or column.primitive.family == "variant":
        raise BadRequest(f"{where}: source column '{column.name}' must be a primitive")


def content_of(fields: Iterable[Json]) -> tuple[tuple[object, ...], ...]:
    """Return a key for the fields of a sort order: equal for orders that sort in the same way; order ids are
    ignored.
    """
    return tuple(
        (
            hashable(one.get("source-id")),
            canonical_transform(one.get("transform")),
            hashable(one.get("direction")),
            hashable(one.get("null-order")),
        )
        for one in fields
    )


def renumber_order(fields: Iterable[Json], source_ids: dict[object, int]) -> list[Json]:
    """Return the fields of a new table's sort order, with source ids replaced by the new column ids (`source_ids`)."""
    return [{**one, "source-id": source_ids[one["source-id"]]} for one in fields]
