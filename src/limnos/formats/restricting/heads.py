# SPDX-License-Identifier: Apache-2.0
"""The first live rows of a data file, with filter and masks applied, as values for JSON.

Must not know users or stores: files are opened by a function of the caller. Only the beginning of a large file is
decoded, and only the needed columns of any file.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from limnos.formats.preview_cells import rows_of
from limnos.formats.restricting.reading import OpenedFile, ReadShape, ReadTable
from limnos.model.errors import UnsupportedOperation

Json = dict[str, Any]
WHOLE_BYTES_MAX: Final = 4 << 20
"""The size in bytes up to which files are read completely."""
ROWS_LOOKED_AT: Final = 10_000
"""The number of rows of a large file that are examined for rows that pass filter and deletes."""
DECODED_BYTES_MAX: Final = 32 << 20
"""The approximate number of bytes of a large file's rows that are decoded."""
_BUFFER_BYTES: Final = 64 << 10
_ROWS_AT_ONCE: Final = 200
_FIELD_ID: Final = b"PARQUET:field_id"


class SizedFile(OpenedFile, Protocol):
    """A file opened for reading parts of it, with a known length."""

    def size(self) -> int:
        """Return the length in bytes."""


class FileHead(NamedTuple):
    """The first rows of a file. `is_whole` is true if the file has no other rows."""

    rows: list[list[object]]
    is_whole: bool


class HeadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the first rows of a file.

    - `shape`: the table's schema and specs for reading, with the restrictions of the reader.
    - `task`, `deletes`: the scan task of the file and its delete files.
    - `columns`: the field ids of the columns to return, in order.
    - `rows_max`, `bytes_max`: the maximum number of rows, and of their bytes as JSON.
    """

    shape: ReadShape
    task: Json
    deletes: list[Json]
    columns: list[int]
    rows_max: int
    bytes_max: int


def file_head(request: HeadRequest, *, open_file: Callable[[str], SizedFile]) -> FileHead:
    """Return the first rows of a data file, with its deletes and the filter and masks of `request.shape` applied.

    Raises UnsupportedOperation for a data file or equality delete file that is not Parquet, and for equality deletes by
    a dropped column; pyarrow's errors for a damaged file, and the errors of `open_file`.
    """
    file = request.task["data-file"]
    if file["file-format"] != "parquet":
        raise UnsupportedOperation(
            f"The table has files of format {file['file-format']}; restricted reads support only Parquet"
        )
    needed_columns = {*request.columns, *_filter_ids(request.shape.row_filter)}
    needed_columns.update(each for delete in request.deletes for each in delete.get("equality-ids") or ())
    table = ReadTable(request.shape, only=frozenset(needed_columns))
    is_plain = request.shape.row_filter is None and not request.deletes
    data, is_whole = _beginning(
        open_file(file["file-path"]), columns=needed_columns, rows=request.rows_max + 1 if is_plain else ROWS_LOOKED_AT
    )
    files = {file["file-path"]: data}
    for each in request.deletes:
        files[each["file-path"]] = open_file(each["file-path"]).read()
    names = [table.names[each] for each in request.columns]
    rows: list[list[object]] = []
    size = 0
    for batch in table.batches(request.task, deletes=request.deletes, open_file=lambda path: io.BytesIO(files[path])):
        for row in rows_of(table.visible_rows(batch).select(names)):
            size += len(msgspec.json.encode(row))
            if len(rows) >= request.rows_max or size > request.bytes_max:
                return FileHead(rows, is_whole=False)
            rows.append(row)
    return FileHead(rows, is_whole)


def _filter_ids(filter_: Json | None) -> Iterator[int]:
    """Yield the field ids that a filter refers to."""
    if filter_ is None:
        return
    for side in ("left", "right", "child"):
        inner = filter_.get(side)
        if isinstance(inner, dict):
            if isinstance(inner.get("id"), int):
                yield inner["id"]
            yield from _filter_ids(inner)


def _beginning(source: SizedFile, *, columns: Collection[int], rows: int) -> tuple[bytes, bool]:
    """Return a Parquet file with the first rows of a source file, and whether these are all rows.

    A small file is returned unchanged. Positions in the result equal those in the original, so that position deletes
    apply.
    """
    if source.size() <= WHOLE_BYTES_MAX:
        return source.read(), True
    file = pq.ParquetFile(pa.PythonFile(source, mode="r"), buffer_size=_BUFFER_BYTES, pre_buffer=False)
    schema = _needed_schema(file.schema_arrow, columns)
    sink = io.BytesIO()
    count = decoded = 0
    with pq.ParquetWriter(sink, schema, compression="none") as writer:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=schema.names, use_threads=False):
            writer.write_batch(batch.slice(0, rows - count))
            count += min(batch.num_rows, rows - count)
            decoded += batch.nbytes
            if count >= rows or decoded >= DECODED_BYTES_MAX:
                break
    return sink.getvalue(), count >= file.metadata.num_rows


def _needed_schema(schema: pa.Schema, columns: Collection[int]) -> pa.Schema:
    """Return a file's schema reduced to some columns by field id; the whole schema if the file has no field ids, or
    dots in column names.
    """
    ids = [(field.metadata or {}).get(_FIELD_ID) for field in schema]
    if None in ids or any("." in name for name in schema.names):
        return schema
    needed_fields = [field for field, number in zip(schema, ids, strict=True) if int(number or b"-1") in columns]
    return pa.schema(needed_fields or [schema.field(0)], metadata=schema.metadata)
