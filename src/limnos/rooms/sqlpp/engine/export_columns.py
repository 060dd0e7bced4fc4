# SPDX-License-Identifier: Apache-2.0
"""Columns of exported Parquet files: SQL++ types as Arrow's, and values as Python's.

Must not know files.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING, Final, cast

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.functions.types import text_of
from limnos.rooms.sqlpp.language.stored import ArrayType, BagType, RecordType, Scalar
from limnos.rooms.sqlpp.language.values.model import MISSING, Bag, Date, DateTime, Time, type_name

if TYPE_CHECKING:
    import pyarrow as pa

    from limnos.rooms.sqlpp.language.stored import DeclaredType
    from limnos.rooms.sqlpp.language.values.model import Value

UNSUPPORTED: Final = 1204
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_UNSTORED: Final = ("interval", "point", "point3d", "line", "rectangle", "circle", "polygon", "geometry")


def to_arrow_value(value: Value) -> object:
    """Convert a SQL++ value to a Python value that Arrow accepts; a duration or UUID becomes a string.

    Raises SqlppError for a shape, an interval, or a date outside of the years 1 to 9999.
    """
    if value is None or isinstance(value, (bool, str, bytes)):
        return value
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, dict):
        return {name: to_arrow_value(item) for name, item in value.items() if item is not MISSING}
    if isinstance(value, Bag) or type_name(value) == "array":
        return [to_arrow_value(item) for item in cast("tuple[Value, ...]", value)]
    try:
        if isinstance(value, Date):
            return _EPOCH.date() + dt.timedelta(days=value.days)
        if isinstance(value, DateTime):
            return (_EPOCH + dt.timedelta(milliseconds=value.ms)).replace(tzinfo=None)
        if isinstance(value, Time):
            return (_EPOCH + dt.timedelta(milliseconds=value.ms)).time()
    except OverflowError:
        raise SqlppError(1245, f"Parquet writer error: {text_of(value)} is not between the years 1 and 9999") from None
    if type_name(value) in _UNSTORED:
        raise SqlppError(UNSUPPORTED, f"'{type_name(value)}' type not supported in parquet format")
    return None if value is MISSING else str(value) if isinstance(value, uuid.UUID) else text_of(value)


def columns_of(record: RecordType) -> pa.Schema:
    """Return the Arrow schema for a record type. Raises SqlppError for a type that Parquet cannot represent."""
    import pyarrow as pa  # noqa: PLC0415 - heavy

    return pa.schema([pa.field(field.name, _arrow_type(field.type), field.optional) for field in record.fields])


def _arrow_type(type_: DeclaredType) -> pa.DataType:
    import pyarrow as pa  # noqa: PLC0415 - heavy

    if isinstance(type_, Scalar):
        words = {
            "boolean": pa.bool_(),
            "tinyint": pa.int8(),
            "smallint": pa.int16(),
            "integer": pa.int32(),
            "bigint": pa.int64(),
            "float": pa.float32(),
            "double": pa.float64(),
            "date": pa.date32(),
            "time": pa.time32("ms"),
            "datetime": pa.timestamp("ms"),
        }
        if type_.name in (*_UNSTORED, "binary"):
            raise SqlppError(UNSUPPORTED, f"'{type_.name}' type not supported in parquet format")
        return words.get(type_.name, pa.string())
    if isinstance(type_, (ArrayType, BagType)):
        return pa.list_(_arrow_type(type_.item))
    if isinstance(type_, RecordType):
        return pa.struct([pa.field(field.name, _arrow_type(field.type), field.optional) for field in type_.fields])
    raise SqlppError(UNSUPPORTED, "'any' type not supported in parquet format")
