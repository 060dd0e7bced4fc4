# SPDX-License-Identifier: Apache-2.0
"""Conversion of types between Arrow, as in Lance tables, and Spark.

Pure. A vector is a fixed-size list, which Spark lacks. In Spark it is an array whose column metadata has the size,
under the key that lance-spark also uses, so that a column that was read is written as a vector.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.types as kinds
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_type

from limnos.model.errors import BadRequest

FIXED_SIZE: Final = "arrow.fixed-size-list.size"
_PLAIN: Final = (
    (kinds.is_boolean, spark.BooleanType),
    (kinds.is_int8, spark.ByteType),
    (kinds.is_int16, spark.ShortType),
    (kinds.is_int32, spark.IntegerType),
    (kinds.is_int64, spark.LongType),
    (kinds.is_uint8, spark.ShortType),
    (kinds.is_uint16, spark.IntegerType),
    (kinds.is_uint32, spark.LongType),
    (kinds.is_float16, spark.FloatType),
    (kinds.is_float32, spark.FloatType),
    (kinds.is_float64, spark.DoubleType),
    (kinds.is_string, spark.StringType),
    (kinds.is_large_string, spark.StringType),
    (kinds.is_binary, spark.BinaryType),
    (kinds.is_large_binary, spark.BinaryType),
    (kinds.is_fixed_size_binary, spark.BinaryType),
    (kinds.is_date, spark.DateType),
    (kinds.is_duration, spark.DayTimeIntervalType),
    (kinds.is_null, spark.NullType),
)
_FAMILIES: Final = (
    (kinds.is_integer, kinds.is_floating, kinds.is_decimal),
    (kinds.is_string, kinds.is_large_string),
    (kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary),
    (kinds.is_date,),
    (kinds.is_timestamp,),
    (kinds.is_duration,),
    (kinds.is_boolean,),
)
"""Families of types that are cast to each other on writing. A value that does not fit fails."""


def spark_schema_of(schema: pa.Schema) -> spark.StructType:
    """Return the Spark columns of a table. Raises BadRequest for a type that Spark lacks."""
    return spark.StructType([_field(field) for field in schema])


def _field(field: pa.Field) -> spark.StructField:
    kind = field.type
    metadata = {FIXED_SIZE: kind.list_size} if kinds.is_fixed_size_list(kind) else None
    return spark.StructField(field.name, _spark_type(kind, field.name), field.nullable, metadata)


def _spark_type(kind: pa.DataType, column: str) -> spark.DataType:
    for is_kind, result in _PLAIN:
        if is_kind(kind):
            return result()
    if kinds.is_uint64(kind):
        return spark.DecimalType(20, 0)
    if kinds.is_decimal128(kind):
        return spark.DecimalType(kind.precision, kind.scale)
    if kinds.is_timestamp(kind):
        return spark.TimestampType() if kind.tz else spark.TimestampNTZType()
    if kinds.is_dictionary(kind):
        return _spark_type(kind.value_type, column)
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return spark.ArrayType(_spark_type(kind.value_type, column), kind.value_field.nullable)
    if kinds.is_struct(kind):
        return spark.StructType([_field(kind.field(index)) for index in range(kind.num_fields)])
    if kinds.is_map(kind):
        return spark.MapType(
            _spark_type(kind.key_type, column), _spark_type(kind.item_type, column), kind.item_field.nullable
        )
    raise BadRequest(
        f"Column {column} is of type {kind}, which Spark does not have: name only the other columns in the option"
        " columns"
    )


def arrow_schema_of(schema: spark.StructType, *, vectors: dict[str, int]) -> pa.Schema:
    """Return a new table's schema for Spark's columns. Raises BadRequest for a type that Lance lacks.

    `vectors` maps array columns to their fixed sizes.
    """
    unknown = [name for name in vectors if name not in schema.fieldNames()]
    if unknown:
        raise BadRequest(f"The option vectors names {unknown[0]}, which is not a written column")
    return pa.schema([_arrow_field(field, size=vectors.get(field.name, _size_of(field))) for field in schema.fields])


def _size_of(field: spark.StructField) -> int | None:
    size = (field.metadata or {}).get(FIXED_SIZE)
    return int(size) if size is not None else None


def _arrow_field(field: spark.StructField, *, size: int | None) -> pa.Field:
    kind = to_arrow_type(field.dataType, timestamp_utc=True)
    if size is None:
        return pa.field(field.name, kind, field.nullable)
    if not isinstance(field.dataType, spark.ArrayType):
        raise BadRequest(f"Column {field.name} is not an array, so it cannot be a vector of {size}")
    return pa.field(
        field.name, pa.list_(pa.field("item", kind.value_type, kind.value_field.nullable), size), field.nullable
    )


def check_append(schema: spark.StructType, table: pa.Schema) -> pa.Schema:
    """Return the table's schema if Spark's columns can be appended.

    Raises BadRequest, which names the first wrong column.
    """
    sent_types = {field.name: to_arrow_type(field.dataType, timestamp_utc=True) for field in schema.fields}
    for name, kind in sent_types.items():
        if name not in table.names:
            raise BadRequest(
                f"The table has no column {name}: leave it out, or write with mode overwrite. It has"
                f" {', '.join(table.names)}"
            )
        if not fits(kind, table.field(name).type):
            raise BadRequest(f"Column {name} is {kind}, and the table's is {table.field(name).type}: cast it first")
    for field in table:
        if field.name not in sent_types and not field.nullable:
            raise BadRequest(f"Column {field.name} of the table is required, and is not written: add it")
    return table


def fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether Arrow can cast the type `source` to `target`. A cast may still fail for a value out of range."""
    if source == target or kinds.is_null(source):
        return True
    if kinds.is_dictionary(target):
        return fits(source, target.value_type)
    if _is_list(source) and _is_list(target):
        return fits(source.value_type, target.value_type)
    if kinds.is_struct(source) and kinds.is_struct(target):
        return _names(source) == _names(target) and all(
            fits(source.field(index).type, target.field(index).type) for index in range(source.num_fields)
        )
    if kinds.is_map(source) and kinds.is_map(target):
        return fits(source.key_type, target.key_type) and fits(source.item_type, target.item_type)
    if kinds.is_timestamp(source) and kinds.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)
    return any(_is_one(source, family) and _is_one(target, family) for family in _FAMILIES)


def _is_list(kind: pa.DataType) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _names(kind: pa.DataType) -> list[str]:
    return [kind.field(index).name for index in range(kind.num_fields)]


def _is_one(kind: pa.DataType, family: tuple[object, ...]) -> bool:
    return any(is_kind(kind) for is_kind in family if callable(is_kind))


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to a schema: its columns, order and types, with NULL for missing columns.

    Raises BadRequest for a value that does not fit.
    """
    columns = [_as_field(batch, field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _as_field(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    if column.null_count and not field.nullable:
        raise BadRequest(f"Column {field.name} of the table is required, and a row has no value for it")
    try:
        return column if column.type == field.type else column.cast(field.type, safe=not kinds.is_timestamp(field.type))
    except pa.ArrowInvalid as error:
        raise BadRequest(f"Column {field.name} has a value that does not fit {field.type}: {error}") from error
