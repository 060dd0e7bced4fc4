# SPDX-License-Identifier: Apache-2.0
"""Converts declared types to columns of an Iceberg table, and columns of other tables to types.

Must not know rows, or Iceberg beyond the JSON of a schema. A field has a separate column if its type exists in every
engine and its name is valid for a column. All other fields are text in the column `_open` of their object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.language.stored.types import (
    WITHOUT_COLUMN,
    AnyType,
    ArrayType,
    BagType,
    DeclaredType,
    FieldType,
    RecordType,
    Scalar,
    StorageForm,
    check,
    encode_form,
    type_at,
)
from limnos.rooms.sqlpp.language.values.model import ScalarName

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

OPEN = "_open"
"""The column for undeclared fields, fields that cannot be columns, and declared fields that are NULL (not MISSING)."""
TYPE_PROPERTY = "sqlpp.type"
"""The table property that describes the columns' meaning for engines. The server's own record is authoritative."""

SCALARS: Mapping[ScalarName, str] = {
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "integer": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "uuid": "uuid",
    "date": "date",
    "time": "string",
    "datetime": "timestamptz",
    "duration": "string",
    "year-month-duration": "string",
    "day-time-duration": "string",
}
"""The Iceberg type of each SQL++ type. Spark has no TIME and no durations: they are text that every engine can read."""

FOREIGN: Mapping[str, ScalarName] = {
    "boolean": "boolean",
    "int": "integer",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "uuid": "uuid",
    "date": "date",
    "time": "time",
    "timestamp": "datetime",
    "timestamptz": "datetime",
    "timestamp_ns": "datetime",
    "timestamptz_ns": "datetime",
}
"""The SQL++ types of columns of tables that SQL++ did not create.

`decimal` is a double, `fixed` is binary, others are any.
"""

_NO_IDENTIFIER = frozenset({"float", "double"})
WRITES: Mapping[str, str] = {
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.merge.isolation-level": "serializable",
    "write.delete.isolation-level": "serializable",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.manifest.min-count-to-merge": "8",
    "format-version": "2",
}
"""Write properties of datasets' tables, so that a statement about one object does not rewrite a million others."""


def has_column(field: FieldType) -> bool:
    """Return whether a field has a separate column. A name with a dot has none: some engines would parse it as two
    names.
    """
    if field.in_open_part or not field.name or "." in field.name or field.name == OPEN:
        return False
    return _has_column_type(field.type)


def has_open(record: RecordType) -> bool:
    """Return whether objects of a type need the column `_open`, for fields without a separate column and for NULL in
    optional fields.
    """
    if record.foreign:
        return False
    return record.open or any(field.optional or not has_column(field) for field in record.fields)


def open_paths(type_: DeclaredType, *, above: str = "") -> Iterator[str]:
    """Yield the paths, as Iceberg writes them, of the fields that have no column because of their name alone."""
    if isinstance(type_, RecordType):
        for field in type_.fields:
            if field.in_open_part:
                yield f"{above}{field.name}"
            else:
                yield from open_paths(field.type, above=f"{above}{field.name}.")
    elif isinstance(type_, (ArrayType, BagType)):
        yield from open_paths(type_.item, above=f"{above}element.")


def columns(record: RecordType) -> tuple[FieldType, ...]:
    """Return the fields that are stored as separate columns, not in the open part."""
    return tuple(field for field in record.fields if has_column(field))


def _has_column_type(type_: DeclaredType) -> bool:
    if isinstance(type_, (ArrayType, BagType)):
        return _has_column_type(type_.item)
    if isinstance(type_, RecordType):
        return bool(columns(type_))
    return isinstance(type_, Scalar) and type_.name not in WITHOUT_COLUMN


def schema_of(form: StorageForm) -> dict[str, Json]:
    """Return the schema of a dataset's table as Iceberg's JSON, with identifier fields.

    Raises SqlppError for an invalid key, and for a dataset without columns.
    """
    check(form)
    for path in form.keys:
        if not all(has_column(field) for field in _types_along(form.type, path)):
            raise compilation(
                f"The key {'.'.join(path)} has a name that is not possible for a column: `{OPEN}`, one that Iceberg "
                "reserves, one with a dot, or one that differs from another field's by case alone"
            )
    numbers = iter(range(1, 1 << 31))
    identifiers: list[int] = []
    keys = frozenset(form.keys)
    fields = _fields(form.type, numbers, path=(), keys=keys, identifiers=identifiers)
    if not fields:
        raise compilation("A dataset needs a declared field")
    if form.variant and has_open(form.type):
        fields[-1]["type"] = "variant"
    return {"type": "struct", "schema-id": 0, "identifier-field-ids": identifiers, "fields": fields}


def properties_of(form: StorageForm) -> dict[str, str]:
    """Return the properties of a dataset's table. VARIANT needs format version 3."""
    version = {"format-version": "3"} if form.variant else {}
    return {**WRITES, **version, TYPE_PROPERTY: encode_form(form)}


def _types_along(record: RecordType, path: tuple[str, ...]) -> Iterator[FieldType]:
    for length in range(1, len(path) + 1):
        field_type = type_at(record, path[:length])
        if field_type is not None:
            yield field_type


def _fields(
    record: RecordType,
    numbers: Iterator[int],
    *,
    path: tuple[str, ...],
    keys: frozenset[tuple[str, ...]],
    identifiers: list[int],
) -> list[dict[str, Json]]:
    results: list[dict[str, Json]] = []
    for field in columns(record):
        here, number = (*path, field.name), next(numbers)
        is_key = here in keys
        if is_key and isinstance(field.type, Scalar) and field.type.name not in _NO_IDENTIFIER:
            identifiers.append(number)
        holds_key = any(key[: len(here)] == here for key in keys)
        type_ = _iceberg(field.type, numbers, path=here, keys=keys, identifiers=identifiers)
        results.append({"id": number, "name": field.name, "required": holds_key, "type": type_})
    if has_open(record):
        results.append(
            {"id": next(numbers), "name": OPEN, "required": False, "type": "string", "doc": "undeclared fields"}
        )
    return results


def _iceberg(
    type_: DeclaredType,
    numbers: Iterator[int],
    *,
    path: tuple[str, ...],
    keys: frozenset[tuple[str, ...]],
    identifiers: list[int],
) -> Json:
    if isinstance(type_, RecordType):
        return {
            "type": "struct",
            "fields": _fields(type_, numbers, path=path, keys=keys, identifiers=identifiers),
        }
    if isinstance(type_, (ArrayType, BagType)):
        number = next(numbers)
        element = _iceberg(type_.item, numbers, path=path, keys=frozenset(), identifiers=identifiers)
        return {"type": "list", "element-id": number, "element-required": False, "element": element}
    if not isinstance(type_, Scalar):
        raise TypeError(f"{type_} has no column")
    return SCALARS[type_.name]


# The other direction: tables that SQL++ did not create.


def form_of(schema: Mapping[str, Json]) -> StorageForm:
    """Return the storage form of a table that SQL++ did not create: closed, without a key, with all fields optional."""
    return StorageForm(_record(schema))


def _record(schema: Mapping[str, Json]) -> RecordType:
    fields = schema["fields"]
    if not isinstance(fields, Sequence):
        raise TypeError("the fields of a schema must be a list")
    types = [
        FieldType(str(field["name"]), _declared_type(field["type"]), optional=True)
        for field in fields
        if isinstance(field, Mapping)
    ]
    return RecordType(tuple(types), open=False, foreign=True)


def _declared_type(type_: Json) -> DeclaredType:
    if isinstance(type_, str):
        word = type_.partition("(")[0].partition("[")[0]
        name = {"decimal": "double", "fixed": "binary"}.get(word) or FOREIGN.get(word)
        return AnyType() if name is None else Scalar(name)  # type: ignore[arg-type]
    if not isinstance(type_, Mapping):
        raise TypeError("a type must be a string or an object")
    if type_["type"] == "struct":
        return _record(type_)
    if type_["type"] == "list":
        return ArrayType(_declared_type(type_["element"]), optional=True)
    return AnyType()
