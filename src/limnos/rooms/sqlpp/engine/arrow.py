# SPDX-License-Identifier: Apache-2.0
"""Conversion between SQL++ objects and Arrow tables, for reads and writes with Spark.

Must not know tables or statements. Dates and timestamps are handled as integers, because Python's own dates have no
year 0 and end with the year 9999. They become Arrow dates and timestamps in the last step before Spark, and integers in
the first step after it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from limnos.rooms.sqlpp.language.stored import (
    OPEN,
    ArrayType,
    BagType,
    DeclaredType,
    RecordType,
    Scalar,
    StorageForm,
    columns,
    has_open,
    to_object,
    to_row,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.rooms.sqlpp.language.values.model import ScalarName, Value

BATCH_ROWS = 8192
AHEAD_MAX = 2
"""The maximum number of streamed results whose next partition Spark computes in advance."""
_AHEAD = threading.Semaphore(AHEAD_MAX)

_TYPES: Mapping[ScalarName, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int32(),
    "smallint": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us", "UTC"),
}
_PLAIN: Mapping[ScalarName, pa.DataType] = {**_TYPES, "date": pa.int32(), "datetime": pa.int64()}


def schema_of(record: RecordType, *, keys: frozenset[tuple[str, ...]] = frozenset(), plain: bool = False) -> pa.Schema:
    """Return the Arrow schema for objects of a type.

    Args:
        record: The type of the objects.
        keys: Paths of the primary key's fields; their columns are not nullable.
        plain: Whether dates and timestamps are integers (days and microseconds since 1970).
    """
    return pa.schema(_fields(record, path=(), keys=keys, plain=plain))


def table_of(form: StorageForm, objects: Iterable[Mapping[str, Value]]) -> pa.Table:
    """Convert objects that already have the dataset's type to an Arrow table. Raises SqlppError as `to_row`."""
    row = to_row(form)
    plain = schema_of(form.type, plain=True)
    rows = [row(each) for each in objects]
    batch = pa.Table.from_pylist(rows, schema=plain)
    return batch.cast(schema_of(form.type))


def objects_of(form: StorageForm, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Value]]:
    """Convert Arrow batches from Spark to SQL++ objects. Columns that the batches lack are MISSING."""
    make = to_object(form)
    plain = schema_of(form.type, plain=True)
    for batch in batches:
        schema = pa.schema([_narrow_field(field, plain.field(field.name)) for field in batch.schema])
        for part in range(0, batch.num_rows, BATCH_ROWS):
            cast = _cast(batch.slice(part, BATCH_ROWS), schema)
            for row in cast.to_pylist():
                yield make(row)


def plain_type(type_: DeclaredType) -> pa.DataType:
    """Return the Arrow type to which a column from Spark is cast before its values are read: integers for dates and
    timestamps.
    """
    return _type(type_, path=(), keys=frozenset(), plain=True)


def stream_batches(spark: SparkSession, frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a DataFrame in order, as record batches, partition by partition.

    Of `AHEAD_MAX` results at once, Spark computes the next partition while the caller reads the current one, and has
    both in memory; of others only one. Raises RuntimeError if Spark has been stopped.
    """
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415 - heavy
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415
    from pyspark.util import _local_iterator_from_socket  # noqa: PLC0415

    machine = spark._jvm  # noqa: SLF001 - PySpark's own iterators give rows one by one, pickled
    if machine is None:
        raise RuntimeError("Spark has been stopped")
    schema = to_arrow_schema(frame.schema, error_on_duplicated_field_names_in_struct=True)
    batches = frame._jdf.toArrowBatchRdd()  # noqa: SLF001
    is_ahead = _AHEAD.acquire(blocking=False)
    try:
        served = machine.PythonRDD.toLocalIteratorAndServe(batches, is_ahead)
        for message in _local_iterator_from_socket(served, NoOpSerializer()):
            yield pa.ipc.read_record_batch(pa.py_buffer(message), schema)
    finally:
        if is_ahead:
            _AHEAD.release()


def _cast(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    arrays = [column.cast(field.type) for column, field in zip(batch.columns, target, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def _narrow_field(result: pa.Field, target: pa.Field) -> pa.Field:
    return pa.field(result.name, target.type)


def _fields(
    record: RecordType, *, path: tuple[str, ...], keys: frozenset[tuple[str, ...]], plain: bool
) -> list[pa.Field]:
    results = []
    for field in columns(record):
        here = (*path, field.name)
        empty = not any(key[: len(here)] == here for key in keys)
        results.append(pa.field(field.name, _type(field.type, path=here, keys=keys, plain=plain), nullable=empty))
    return [*results, pa.field(OPEN, pa.string())] if has_open(record) else results


def _type(type_: DeclaredType, *, path: tuple[str, ...], keys: frozenset[tuple[str, ...]], plain: bool) -> pa.DataType:
    if isinstance(type_, RecordType):
        return pa.struct(_fields(type_, path=path, keys=keys, plain=plain))
    if isinstance(type_, (ArrayType, BagType)):
        return pa.list_(_type(type_.item, path=path, keys=frozenset(), plain=plain))
    if not isinstance(type_, Scalar):
        raise TypeError(f"{type_} has no column")
    return (_PLAIN if plain else _TYPES).get(type_.name, pa.string())
