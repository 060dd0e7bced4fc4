# SPDX-License-Identifier: Apache-2.0
"""Converts objects of a dataset to rows of its table, and back.

Must not know files or DataFrames. A row is a mapping from columns to plain Python values: a date is its days since
1970, a datetime its microseconds, a uuid its text, an array a list and an object a mapping. Both converters are built
once for a type and called for each row.

A null column means MISSING, or NULL if the object's open part has a null under that name. A table that SQL++ did not
create has no open part. An array item that is MISSING is read back as NULL.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias, TypeVar

from limnos.rooms.sqlpp.language.errors import SqlppError, compilation
from limnos.rooms.sqlpp.language.functions.types import convert_to_integer, real_of
from limnos.rooms.sqlpp.language.stored import open_part, time_texts
from limnos.rooms.sqlpp.language.stored.schema import OPEN, columns, has_open
from limnos.rooms.sqlpp.language.stored.types import (
    WITHOUT_COLUMN,
    AnyType,
    ArrayType,
    BagType,
    DeclaredType,
    RecordType,
    Scalar,
    StorageForm,
    type_label,
)
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    WIDTHS,
    Bag,
    Date,
    DateTime,
    Float,
    Integer,
    ScalarName,
    SmallInt,
    TinyInt,
    Value,
    type_name,
)

Plain: TypeAlias = "bool | int | float | str | bytes | list[Plain] | dict[str, Plain] | None"
Row: TypeAlias = "dict[str, Plain]"

SameRow = TypeVar("SameRow")

NOT_PROMOTED, MISMATCH, CLOSED, NULL_FIELD = 1, 37, 3058, 3075
_WHOLE: Mapping[ScalarName, type[int]] = {"tinyint": TinyInt, "smallint": SmallInt, "integer": Integer, "bigint": int}
_TIMES: tuple[ScalarName, ...] = ("time", "duration", "year-month-duration", "day-time-duration")


def object_shaper(form: StorageForm, *, lenient: bool = False) -> Callable[[Value], dict[str, Value]]:
    """Return the function that converts a value to an object of the dataset's type.

    Numbers are converted to the declared type if they fit. `lenient` also converts strings, as for files. The function
    raises SqlppError if the value does not fit.
    """
    shape = _shape(form.type, lenient=lenient, called="")

    def make(value: Value) -> dict[str, Value]:
        result = shape(value)
        if not isinstance(result, dict):
            raise _mismatch("object", value)
        return result

    return make


def to_row(form: StorageForm) -> Callable[[Mapping[str, Value]], Row]:
    """Return the function that converts an object of the dataset's type to a row.

    The function raises SqlppError for a field that a table of another client lacks, and for a value that is nested too
    deeply.
    """
    return _writer(form.type, variant=form.variant)


def to_object(form: StorageForm) -> Callable[[Mapping[str, Plain]], dict[str, Value]]:
    """Return the function that converts a row to an object. Fields of columns that are not in the row are MISSING."""
    return _reader(form.type)


def reader_of(type_: DeclaredType) -> Callable[..., Value]:
    """Return the function that converts a non-null column value to a SQL++ value."""
    return _value_of(type_)


def read_open_part(text: str) -> dict[str, Value]:
    """Decode an open part to the fields that it contains. Raises SqlppError for malformed text."""
    json_text = open_part.read_json_text(text)
    return json_text if isinstance(json_text, dict) else {}


# Shapes.


def _shape(type_: DeclaredType, *, lenient: bool, called: str) -> Callable[[Value], Value]:
    if isinstance(type_, RecordType):
        return _record_shape(type_, lenient=lenient, called=called)
    if isinstance(type_, (ArrayType, BagType)):
        return _items_shape(type_, lenient=lenient, called=called)
    if isinstance(type_, AnyType):
        return lambda value: value
    name = type_.name

    def scalar(value: Value) -> Value:
        result = _cast(value, name, lenient=lenient)
        if result is MISSING:
            raise SqlppError(NOT_PROMOTED, f"Field type {type_name(value)} cannot be promoted to type {name}{called}")
        return result

    return scalar


def _record_shape(type_: RecordType, *, lenient: bool, called: str) -> Callable[[Value], Value]:
    shapes = {
        field.name: (_shape(field.type, lenient=lenient, called=f" (field {field.name})"), field.optional)
        for field in type_.fields
    }
    required_fields = [(field.name, type_label(field.type)) for field in type_.fields if not field.optional]

    def make(value: Value) -> Value:
        if not isinstance(value, dict):
            raise _mismatch("object", value, called=called)
        for name, label in required_fields:
            if value.get(name) is None and lenient:
                raise SqlppError(NULL_FIELD, f"Closed field {name} has null value")
            if value.get(name, MISSING) is None:
                raise SqlppError(NOT_PROMOTED, f"Field type null cannot be promoted to type {label}")
        for name, label in required_fields:
            if value.get(name, MISSING) is MISSING:
                raise SqlppError(MISMATCH, f"Type mismatch: missing a required field {name}: {label}")
        fields: dict[str, Value] = {name: MISSING for name in shapes if name in value}  # in the order of the type
        for name, item in value.items():
            shape = shapes.get(name)
            if shape is None and not type_.open:
                raise SqlppError(CLOSED, f"This record is closed, you can not add extra fields! new field name: {name}")
            fields[name] = item if shape is None or item is None else shape[0](item)
        return fields

    return make


def _items_shape(type_: ArrayType | BagType, *, lenient: bool, called: str) -> Callable[[Value], Value]:
    is_bag = isinstance(type_, BagType)
    item = _shape(type_.item, lenient=lenient, called=called)

    def make(value: Value) -> Value:
        fits = isinstance(value, Bag) is is_bag or lenient
        if not fits or not isinstance(value, tuple) or type_name(value) not in ("array", "multiset"):
            raise _mismatch(type_label(type_), value, called=called)
        elements = [one if one is None or one is MISSING else item(one) for one in value]
        return Bag(elements) if is_bag else tuple(elements)

    return make


def _mismatch(expected: str, value: Value, *, called: str = "") -> SqlppError:
    return SqlppError(
        MISMATCH,
        f"Type mismatch: expected value of type {expected}, but got the value of type {type_name(value)}{called}",
    )


def _cast(value: Value, name: ScalarName, *, lenient: bool) -> Value:
    """Convert a value to a scalar type; MISSING if it does not fit."""
    kind = type_name(value)
    if kind == name:
        return value
    if name in _WHOLE:
        return _convert_integer(value, name, lenient=lenient)
    if name in ("double", "float") and isinstance(value, (int, float)) and not isinstance(value, bool):
        return Float(value) if name == "float" else float(value)
    if not lenient or not isinstance(value, str):
        return MISSING
    from_text = _from_text(value, name)
    return MISSING if from_text is None else from_text


def _convert_integer(value: Value, name: ScalarName, *, lenient: bool) -> Value:
    if lenient and isinstance(value, str):
        result = convert_to_integer(value, name)
        return MISSING if result is None else result
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return MISSING
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        return MISSING
    edge = 1 << (WIDTHS[name] - 1)
    return _WHOLE[name](int(value)) if -edge <= value < edge else MISSING


def _from_text(text: str, name: ScalarName) -> Value:
    if name in ("double", "float"):
        real = real_of(text)
        return Float(real) if real is not None and name == "float" else real
    if name == "boolean":
        return {"true": True, "false": False}.get(text.strip().lower())
    if name in WITHOUT_COLUMN:
        return None
    if name in ("binary", "uuid"):
        try:
            return bytes.fromhex(text) if name == "binary" else uuid.UUID(text)
        except ValueError:
            return None
    return time_texts.read_time_text(text.strip(), name)


# Rows.


def _writer(type_: RecordType, *, variant: bool = False) -> Callable[[Mapping[str, Value]], Row]:
    entries = [(field.name, _plain_of(field.type)) for field in columns(type_)]
    own_names = frozenset(name for name, _ in entries)
    opened = has_open(type_)

    def write(value: Mapping[str, Value]) -> Row:
        row: Row = {}
        for name, plain in entries:
            result = value.get(name)
            row[name] = None if result is None else plain(result)
        if type_.foreign and not own_names.issuperset(value):
            (lost, *_) = (name for name in value if name not in own_names)
            raise compilation(f"The table has no column {lost} that SQL++ can write")
        if opened:
            rest = {name: entry for name, entry in value.items() if entry is None or name not in own_names}
            row[OPEN] = open_part.write_json_text(rest, variant=variant) if rest else None
        return row

    return write


def _plain_of(type_: DeclaredType) -> Callable[..., Plain]:
    if isinstance(type_, RecordType):
        return _writer(type_)
    if isinstance(type_, (ArrayType, BagType)):
        item = _plain_of(type_.item)
        return lambda value: [None if one is None or one is MISSING else item(one) for one in value]
    if not isinstance(type_, Scalar):
        raise TypeError(f"{type_} has no column")
    return _PLAINS.get(type_.name, _identity)


def _identity(value: SameRow) -> SameRow:
    return value


_PLAINS: Mapping[ScalarName, Callable[..., Plain]] = {
    "date": lambda value: value.days,
    "datetime": lambda value: value.ms * 1000,
    "uuid": str,
    "float": float,
    **dict.fromkeys(_WHOLE, int),
    **dict.fromkeys(_TIMES, time_texts.write_time_text),
}


# Objects.


def _reader(type_: RecordType) -> Callable[[Mapping[str, Plain]], dict[str, Value]]:
    elements = [(field.name, _value_of(field.type)) for field in columns(type_)]
    declared = [field.name for field in type_.fields]

    def read(row: Mapping[str, Plain]) -> dict[str, Value]:
        fields: dict[str, Value] = {}
        for name, value in elements:
            result = row.get(name)
            if result is not None:
                fields[name] = value(result)
        text = row.get(OPEN)
        if not isinstance(text, str):
            return fields
        rest = open_part.read_json_text(text)
        if not isinstance(rest, dict):
            return fields
        all_fields = {**rest, **fields}
        return {**{name: all_fields[name] for name in declared if name in all_fields}, **all_fields}

    return read


def _value_of(type_: DeclaredType) -> Callable[..., Value]:
    if isinstance(type_, RecordType):
        return _reader(type_)
    if isinstance(type_, (ArrayType, BagType)):
        item, make = _value_of(type_.item), Bag if isinstance(type_, BagType) else tuple
        return lambda value: make([None if one is None else item(one) for one in value])
    if isinstance(type_, Scalar) and type_.name in _TIMES:
        return partial(time_texts.read_time_text, kind=type_.name)
    return _VALUES.get(type_.name, _identity) if isinstance(type_, Scalar) else _identity


_VALUES: Mapping[ScalarName, Callable[..., Value]] = {
    "date": Date,
    "datetime": lambda us: DateTime(us // 1000),
    "uuid": uuid.UUID,
    "float": Float,
    "double": float,
    **_WHOLE,
}
