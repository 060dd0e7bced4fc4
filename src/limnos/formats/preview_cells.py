# SPDX-License-Identifier: Apache-2.0
"""Converts values of Arrow tables to JSON values for previews.

Long values are truncated; of vectors only the first items are included. Pure: must not know files or users.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

CELL_CHARACTERS_MAX: Final = 512
VECTOR_NUMBERS: Final = 4
"""The number of leading numbers of a vector that are shown."""
UNSHOWN: Final = "(a value that cannot be shown)"
_ROWS_AT_ONCE: Final = 200
_NOT_IN_PYTHON: Final = (OverflowError, ValueError, LookupError)
"""Errors of the conversion of a value to Python; `LookupError` is that of an unknown time zone."""


def rows_of(table: pa.Table) -> Iterator[list[object]]:
    """Yield the rows of a table as lists of cells."""
    for at in range(0, table.num_rows, _ROWS_AT_ONCE):
        part = table.slice(at, _ROWS_AT_ONCE)
        columns = [_values_of(_to_plain_column(column)) for column in part.columns]
        for row in zip(*columns, strict=True):
            yield [cell_of(value) for value in row]


def _values_of(column: pa.ChunkedArray) -> list[object]:
    """Return the values of a column.

    Values that Python cannot represent become strings: times after the year 9999, for example, or with an unknown time
    zone.
    """
    try:
        return cast("list[object]", column.to_pylist())
    except _NOT_IN_PYTHON:
        return [_value_of(scalar) for chunk in column.chunks for scalar in chunk]


def _value_of(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except _NOT_IN_PYTHON:
        pass
    try:
        return str(scalar.cast(pa.string()).as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return UNSHOWN


def _to_plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with values that Python can represent: timestamps in nanoseconds become strings, and vectors are
    truncated to their first items.
    """
    kind = column.type
    if is_vector(kind):
        return _shorten_vectors(column)
    is_nano = (pa.types.is_timestamp(kind) or pa.types.is_time(kind)) and kind.unit == "ns"
    return column.cast(pa.string()) if is_nano else column


def is_vector(kind: pa.DataType) -> bool:
    """Return whether a type is a vector: a fixed-size list of numbers."""
    if not pa.types.is_fixed_size_list(kind) or kind.list_size <= VECTOR_NUMBERS:
        return False
    return bool(pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _shorten_vectors(column: pa.ChunkedArray) -> pa.ChunkedArray:
    size = column.type.list_size
    chunks = [pc.list_slice(chunk, 0, VECTOR_NUMBERS) for chunk in column.chunks]
    texts = [None if vector is None else _vector_text(vector, size) for chunk in chunks for vector in chunk.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _vector_text(numbers: list[float | None], size: int) -> str:
    beginning = ", ".join("null" if each is None else f"{float(each):.4g}" for each in numbers)
    return f"[{beginning}, … {size} numbers]"


def cell_of(value: object) -> object:
    """Return a value for JSON. Strings and nested values longer than `CELL_CHARACTERS_MAX` become truncated strings."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return cut_text(f"0x{value[:CELL_CHARACTERS_MAX].hex()}")
    if isinstance(value, str):
        return cut_text(value)
    if isinstance(value, list | tuple | dict):
        nested = _to_json_value(value)
        text = msgspec.json.encode(nested).decode()
        return nested if len(text) <= CELL_CHARACTERS_MAX else cut_text(text)
    isoformat = getattr(value, "isoformat", None)
    return cut_text(str(value) if isoformat is None else isoformat())


def _to_json_value(value: object) -> object:
    if isinstance(value, list):
        return [_to_json_value(each) for each in value]
    if isinstance(value, tuple):  # an entry of a map
        return [_to_json_value(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _to_json_value(each) for name, each in value.items()}
    return cell_of(value)


def cut_text(text: str) -> str:
    """Truncate a string to `CELL_CHARACTERS_MAX` characters."""
    return text if len(text) <= CELL_CHARACTERS_MAX else f"{text[:CELL_CHARACTERS_MAX]}…"
