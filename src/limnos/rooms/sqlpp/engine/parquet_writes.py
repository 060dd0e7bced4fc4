# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of an INSERT as one Parquet file of a local table, without Spark.

Must not know Iceberg's library or Spark: the caller commits the file. Columns get the field ids of the table.
Unsupported tables and types raise `UnsupportedFile`, and Spark writes the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limnos.rooms.sqlpp.engine.parquet_lookups import (
    CACHE,
    FIELD_ID,
    FileCache,
    FileLookup,
    FileWithDeletes,
    ReadAllowance,
    UnsupportedFile,
)
from limnos.rooms.sqlpp.language.conditions import Condition

if TYPE_CHECKING:
    from limnos.rooms.sqlpp.language.lookups import KeyConditions

_STORED: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamptz": pa.timestamp("us", "UTC"),
}
"""The Arrow type of each column type that is written here."""


def with_field_ids(schema: pa.Schema, fields: Sequence[Any]) -> pa.Schema:
    """Return the schema of a new file: the table's columns with their field ids. Raises UnsupportedFile for other
    columns or types.
    """
    if [field.name for field in schema] != [field["name"] for field in fields]:
        raise UnsupportedFile("other columns than the dataset's")
    if not all(
        isinstance(field["type"], str) and _STORED.get(field["type"]) == own_field.type
        for own_field, field in zip(schema, fields, strict=True)
    ):
        raise UnsupportedFile("a column of another type")
    return pa.schema(
        [
            pa.field(
                field["name"],
                _STORED[field["type"]],
                nullable=not field.get("required"),
                metadata={FIELD_ID: str(field["id"])},
            )
            for field in fields
        ]
    )


def key_range(rows: pa.Table, keys: Sequence[tuple[str, ...]]) -> KeyConditions:
    """Return conditions that bound the first key column of all rows. Raises UnsupportedFile for nested key fields, and
    for keys that are not integers or strings.
    """
    if any(len(path) > 1 for path in keys):
        raise UnsupportedFile("a primary key that is a nested field")
    bounds = pc.min_max(rows.column(keys[0][0])).as_py()
    if not all(type(bound) in (int, str) for bound in bounds.values()):
        raise UnsupportedFile("a key that is not an integer or string")
    return Condition(keys[0], ">=", bounds["min"]), Condition(keys[0], "<=", bounds["max"])


def has_key(
    files: Sequence[FileWithDeletes],
    fields: Sequence[Any],
    *,
    rows: pa.Table,
    keys: Sequence[tuple[str, ...]],
    cache: FileCache = CACHE,
) -> bool:
    """Return whether one of the files has a row with the key of a new row. Raises UnsupportedFile for a key of several
    fields, and as `FileLookup.has_value`.
    """
    if not files:
        return False
    if len(keys) > 1:
        raise UnsupportedFile("a key of several fields")
    new, reading = rows.column(keys[0][0]).combine_chunks(), ReadAllowance()
    try:
        return any(FileLookup(file, fields, cache=cache, reading=reading).has_value(keys[0][0], new) for file in files)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise UnsupportedFile(str(error)) from error


def write_rows(rows: pa.Table, path: Path) -> None:
    """Write rows to a new Parquet file, and its directory if it is missing. After an error, delete the file and
    re-raise.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        pq.write_table(rows, path, compression="zstd", store_schema=False)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
