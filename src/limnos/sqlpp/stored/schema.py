"""Declared types as columns of an Iceberg table, and columns of a table that others made as types.

May import `types` and `errors`. Must not know rows, nor Iceberg beyond the JSON of a schema. A field has a column of its own when its type has one in
every engine and its name can be a column's; whatever has none lies in the column `_open` of its object, as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from limnos.sqlpp.errors import compilation
from limnos.sqlpp.stored.types import (
    AnyType,
    ArrayType,
    BagType,
    DeclaredType,
    FieldType,
    RecordType,
    Scalar,
    ScalarName,
    StorageForm,
    check,
    encode_form,
    type_at,
)

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

OPEN = "_open"
"""The column of what is not declared, of fields that can't be columns, and of declared fields that are NULL and not MISSING."""
TYPE_PROPERTY = "sqlpp.type"
"""A table's property that tells engines what its columns mean; the tree's own record is what counts."""

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
"""What a type is in Iceberg. Spark has no TIME and no type for durations: they are their text, as every engine reads it."""

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
"""What a column of a table that others made is in SQL++; `decimal` is a double, `fixed` is binary, what is not here anything."""

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
"""How tables of datasets are written: a statement of one object must not write a million others again."""


def has_column(field: FieldType) -> bool:
    """Whether a field is a column of its own. A name with a dot would be two columns' to some engines."""
    return bool(field.name) and "." not in field.name and field.name != OPEN and _has_column_type(field.type)


def has_open(record: RecordType) -> bool:
    """Whether objects of a type need the column `_open`."""
    if record.foreign:
        return False
    return record.open or any(field.optional or not has_column(field) for field in record.fields)


def columns(record: RecordType) -> tuple[FieldType, ...]:
    """The fields that are columns."""
    return tuple(field for field in record.fields if has_column(field))


def _has_column_type(type_: DeclaredType) -> bool:
    if isinstance(type_, (ArrayType, BagType)):
        return _has_column_type(type_.item)
    return bool(columns(type_)) if isinstance(type_, RecordType) else isinstance(type_, Scalar)


def schema_of(form: StorageForm) -> dict[str, Json]:
    """The schema of a dataset's table, as Iceberg's JSON, identifier fields included.

    Raises SqlppError for a key that cannot be one, and for a dataset of which nothing can be a column.
    """
    check(form)
    for path in form.keys:
        if not all(has_column(field) for field in _types_along(form.type, path)):
            raise compilation(
                f"The key {'.'.join(path)} has a name that no column can have: `{OPEN}`, or one with a dot"
            )
    numbers = iter(range(1, 1 << 31))
    identifiers: list[int] = []
    keys = frozenset(form.keys)
    fields = _fields(form.type, numbers, path=(), keys=keys, identifiers=identifiers)
    if not fields:
        raise compilation("A dataset needs a field that is declared")
    if form.variant and has_open(form.type):
        fields[-1]["type"] = "variant"
    return {"type": "struct", "schema-id": 0, "identifier-field-ids": identifiers, "fields": fields}


def properties_of(form: StorageForm) -> dict[str, str]:
    """The properties of a dataset's table. A VARIANT takes the third version of the format."""
    version = {"format-version": "3"} if form.variant else {}
    return {**WRITES, **version, TYPE_PROPERTY: encode_form(form)}


def _types_along(record: RecordType, path: tuple[str, ...]) -> Iterator[FieldType]:
    for length in range(1, len(path) + 1):
        found = type_at(record, path[:length])
        if found is not None:
            yield found


def _fields(
    record: RecordType,
    numbers: Iterator[int],
    *,
    path: tuple[str, ...],
    keys: frozenset[tuple[str, ...]],
    identifiers: list[int],
) -> list[dict[str, Json]]:
    made: list[dict[str, Json]] = []
    for field in columns(record):
        here, number = (*path, field.name), next(numbers)
        is_key = here in keys
        if is_key and isinstance(field.type, Scalar) and field.type.name not in _NO_IDENTIFIER:
            identifiers.append(number)
        holds_key = any(key[: len(here)] == here for key in keys)
        type_ = _iceberg(field.type, numbers, path=here, keys=keys, identifiers=identifiers)
        made.append({"id": number, "name": field.name, "required": holds_key, "type": type_})
    if has_open(record):
        made.append(
            {"id": next(numbers), "name": OPEN, "required": False, "type": "string", "doc": "what is not declared"}
        )
    return made


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


# The other way: tables that others made.


def form_of(schema: Mapping[str, Json]) -> StorageForm:
    """A table that others made, as a dataset without a key: closed, every field optional."""
    return StorageForm(_record(schema))


def _record(schema: Mapping[str, Json]) -> RecordType:
    fields = schema["fields"]
    if not isinstance(fields, Sequence):
        raise TypeError("the fields of a schema are a list")
    made = [
        FieldType(str(field["name"]), _declared_type(field["type"]), optional=True)
        for field in fields
        if isinstance(field, Mapping)
    ]
    return RecordType(tuple(made), open=False, foreign=True)


def _declared_type(type_: Json) -> DeclaredType:
    if isinstance(type_, str):
        word = type_.partition("(")[0].partition("[")[0]
        name = {"decimal": "double", "fixed": "binary"}.get(word) or FOREIGN.get(word)
        return AnyType() if name is None else Scalar(name)  # type: ignore[arg-type]
    if not isinstance(type_, Mapping):
        raise TypeError("a type is a word or an object")
    if type_["type"] == "struct":
        return _record(type_)
    if type_["type"] == "list":
        return ArrayType(_declared_type(type_["element"]), optional=True)
    return AnyType()
