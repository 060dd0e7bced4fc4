# SPDX-License-Identifier: Apache-2.0
"""Changes of a table's columns that a DataFrame needs, and the conversion of the DataFrame to the table's columns.

Compares two Spark schemas, and builds the expressions that convert a DataFrame. Must not know tables, branches or the
allowed changes.

A column's path is its name, followed by the names of nested fields; `element`, `key` and `value` stand for the parts of
lists and maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from limnos.model.errors import BadRequest
from limnos.names import engine
from limnos.names.columns import case_twins, is_reserved, reserved_column_message

Route = tuple[str, ...]
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
_DECIMAL_DIGITS_MAX = 38


class AddedColumn(NamedTuple):
    """A column or nested field that the table lacks."""

    path: Route
    type: DataType


class WidenedColumn(NamedTuple):
    """A column whose type must be widened."""

    path: Route
    old: DataType
    new: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChanges:
    """Differences between a table's columns and a DataFrame's.

    The DataFrame lacks the `missing` columns, and its values may not fit into the `lossy` columns.
    """

    added: tuple[AddedColumn, ...] = ()
    widened: tuple[WidenedColumn, ...] = ()
    missing: tuple[Route, ...] = ()
    lossy: tuple[WidenedColumn, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened or self.missing or self.lossy)


def dotted_path(path: Route) -> str:
    """Join a column's path by dots, as in a declaration: `address.city`."""
    return ".".join(path)


def changes_between(table: StructType, frame: StructType, *, above: Route = ()) -> ColumnChanges:
    """Return the differences between a table's columns and a DataFrame's, matched by name, ignoring case. `above` is
    the path of the enclosing column.

    Raises BadRequest for a new column without a type (NULL).
    """
    return _together(_struct_changes(table, frame, above=above))


def storable(schema: StructType) -> StructType:
    """Return the columns of a new table for a DataFrame's schema: all nullable, with TINYINT and SMALLINT as INT.

    Raises BadRequest for a column without a type (NULL).
    """
    return StructType([_stored_field(each, (each.name,)) for each in schema.fields])


def require_single_names(schema: StructType) -> None:
    """Raise BadRequest if two columns have the same name, ignoring case."""
    for earlier, name in case_twins(schema.names):
        other = "" if earlier == name else f", which differ by case alone ({earlier!r} is the other)"
        raise BadRequest(f"The query has two columns {name!r}{other}: rename one with AS.")


def require_free_names(step: str, names: Iterable[str]) -> None:
    """Raise BadRequest for a column with a name that Iceberg reserves: its table, or the table's changes, could not be
    read.
    """
    for name in names:
        if is_reserved(name):
            raise BadRequest(f"Step {step}: {reserved_column_message(name)}")


def ddl(kind: DataType) -> str:
    """Return a type as SQL, with quoted names."""
    if isinstance(kind, StructType):
        return f"struct<{', '.join(f'{quote_column(each.name)}: {ddl(each.dataType)}' for each in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"array<{ddl(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{ddl(kind.keyType)}, {ddl(kind.valueType)}>"
    return kind.simpleString()


def quote_column(name: str) -> str:
    """Quote a column's name with back quotes, so that Spark takes dots in it literally."""
    return engine.render_spark((name,))


def fit_frame(frame: DataFrame, schema: StructType) -> DataFrame:
    """Convert a DataFrame to a table's columns: their order and types, with NULL for missing columns."""
    return frame.select(*fitted_columns(frame, schema))


def fitted_columns(frame: DataFrame, schema: StructType) -> list[Column]:
    """Return the expressions that `fit_frame` selects: one for all columns if they fit already, because each expression
    costs several calls of the Java machine.
    """
    if [(each.name, each.dataType) for each in frame.schema.fields] == [(each.name, each.dataType) for each in schema]:
        return [f.col("*")]
    frame_fields = {each.name.lower(): each for each in frame.schema.fields}
    return [_fitted_column(frame_fields.get(each.name.lower()), each) for each in schema.fields]


def fits(old: DataType, new: DataType) -> bool:
    """Return whether a column of the type `old` can store every value of the type `new`."""
    if old == new or isinstance(new, NullType):
        return True
    if isinstance(old, DecimalType):
        return _decimal_holds(old, new)
    if type(new) in _DIGITS and type(old) in _DIGITS:
        return _DIGITS[type(new)] <= _DIGITS[type(old)]
    if isinstance(old, DoubleType):
        return isinstance(new, (FloatType, ByteType, ShortType, IntegerType))
    if isinstance(old, FloatType):
        return isinstance(new, (ByteType, ShortType))
    if isinstance(old, StringType):
        return isinstance(new, StringType)
    return isinstance(new, DateType) and isinstance(old, (TimestampType, TimestampNTZType))


def widening(old: DataType, new: DataType) -> DataType | None:
    """Return the type to which Iceberg can widen `old` so that values of `new` fit; None if there is none."""
    if isinstance(old, IntegerType) and isinstance(new, LongType):
        return LongType()
    if isinstance(old, FloatType) and isinstance(new, (DoubleType, IntegerType)):
        return DoubleType()
    if isinstance(old, DecimalType):
        return _wider_decimal(old, new)
    return None


def _wider_decimal(old: DecimalType, new: DataType) -> DecimalType | None:
    if isinstance(new, DecimalType):
        if new.scale > old.scale:
            return None
        whole = new.precision - new.scale
    elif type(new) in _DIGITS:
        whole = _DIGITS[type(new)]
    else:
        return None
    precision = max(old.precision, whole + old.scale)
    return DecimalType(precision, old.scale) if precision <= _DECIMAL_DIGITS_MAX else None


def _decimal_holds(old: DecimalType, new: DataType) -> bool:
    if isinstance(new, DecimalType):
        return new.scale <= old.scale and new.precision - new.scale <= old.precision - old.scale
    return type(new) in _DIGITS and _DIGITS[type(new)] <= old.precision - old.scale


def _struct_changes(table: StructType, frame: StructType, *, above: Route) -> Iterator[ColumnChanges]:
    theirs = {each.name.lower(): each for each in frame.fields}
    for column in table.fields:
        path = (*above, column.name)
        field = theirs.pop(column.name.lower(), None)
        if field is None:
            yield ColumnChanges(missing=(path,))
        else:
            yield _type_changes(column.dataType, field.dataType, path=path)
    for column in frame.fields:
        if column.name.lower() in theirs:
            path = (*above, column.name)
            yield ColumnChanges(added=(AddedColumn(path, _stored_type(column.dataType, path)),))


def _type_changes(old: DataType, new: DataType, *, path: Route) -> ColumnChanges:
    if isinstance(old, StructType) and isinstance(new, StructType):
        return _together(_struct_changes(old, new, above=path))
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return _type_changes(old.elementType, new.elementType, path=(*path, "element"))
    if isinstance(old, MapType) and isinstance(new, MapType):
        keys = _type_changes(old.keyType, new.keyType, path=(*path, "key"))
        if keys:
            return ColumnChanges(lossy=(WidenedColumn((*path, "key"), old.keyType, new.keyType),))
        return _type_changes(old.valueType, new.valueType, path=(*path, "value"))
    if fits(old, new):
        return ColumnChanges()
    wider = widening(old, new)
    if wider is None:
        return ColumnChanges(lossy=(WidenedColumn(path, old, new),))
    return ColumnChanges(widened=(WidenedColumn(path, old, wider),))


def _together(several: Iterator[ColumnChanges] | Sequence[ColumnChanges]) -> ColumnChanges:
    every = tuple(several)
    return ColumnChanges(
        added=tuple(each for part in every for each in part.added),
        widened=tuple(each for part in every for each in part.widened),
        missing=tuple(each for part in every for each in part.missing),
        lossy=tuple(each for part in every for each in part.lossy),
    )


def _stored_field(column: StructField, path: Route) -> StructField:
    return StructField(column.name, _stored_type(column.dataType, path), nullable=True)


def _stored_type(kind: DataType, path: Route) -> DataType:
    """Return the type of a new column for a Spark type: nullable fields, INT for TINYINT and SMALLINT, STRING for CHAR
    and VARCHAR.

    Raises BadRequest for NullType, with the column's path.
    """
    if isinstance(kind, StructType):
        return StructType([_stored_field(each, (*path, each.name)) for each in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_stored_type(kind.elementType, (*path, "element")), containsNull=True)
    if isinstance(kind, MapType):
        value = _stored_type(kind.valueType, (*path, "value"))
        return MapType(_stored_type(kind.keyType, (*path, "key")), value, valueContainsNull=True)
    if isinstance(kind, NullType):
        name = dotted_path(path)
        raise BadRequest(
            f"Column {name!r} is always NULL and so has no type: write CAST(NULL AS string) or another type."
        )
    if isinstance(kind, (ByteType, ShortType)):
        return IntegerType()
    return StringType() if isinstance(kind, StringType) else kind


def _fitted_column(own: StructField | None, field: StructField) -> Column:
    if own is None:
        return f.lit(None).cast(ddl(field.dataType)).alias(field.name)
    return _fit_column_value(f.col(quote_column(own.name)), own=own.dataType, data_type=field.dataType).alias(
        field.name
    )


def _fit_column_value(value: Column, *, own: DataType, data_type: DataType) -> Column:
    if own == data_type:
        return value
    if isinstance(own, StructType) and isinstance(data_type, StructType):
        inner = {each.name.lower(): each for each in own.fields}
        fields = [_fitted_field(value, inner.get(each.name.lower()), target=each) for each in data_type.fields]
        return f.when(value.isNotNull(), f.struct(*fields))
    if isinstance(own, ArrayType) and isinstance(data_type, ArrayType):
        item, target = own.elementType, data_type.elementType
        return f.transform(value, lambda each: _fit_column_value(each, own=item, data_type=target))
    if isinstance(own, MapType) and isinstance(data_type, MapType):
        value_type, target = own.valueType, data_type.valueType
        return f.transform_values(value, lambda _, each: _fit_column_value(each, own=value_type, data_type=target))
    return value.cast(ddl(data_type))


def _fitted_field(value: Column, own: StructField | None, *, target: StructField) -> Column:
    if own is None:
        return f.lit(None).cast(ddl(target.dataType)).alias(target.name)
    return _fit_column_value(value.getField(own.name), own=own.dataType, data_type=target.dataType).alias(target.name)
