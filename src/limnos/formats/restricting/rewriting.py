# SPDX-License-Identifier: Apache-2.0
"""Rewrites a data file, or a span of it, to restricted files, with its deletes, row filter and masks applied.

Must not know users or stores: files are opened by a function of the caller. The results have the table's current
columns, by field id; other columns of the file are omitted. Errors reveal neither content nor the file's name, which
may contain values. The server and the executors of maintenance call the same function.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)

from limnos.formats.restricting.reading import OpenFile, ReadShape, ReadTable
from limnos.formats.restricting.spans import FileSpan
from limnos.model.errors import LimnosError, UnsupportedOperation

Json = dict[str, Any]
WRITTEN_BYTES: Final = 128 << 20
"""The approximate size of a written file, in bytes; further rows go into another file."""
_GROUP_BYTES: Final = 32 << 20
_GROUP_ROWS: Final = 1 << 20
"""The sizes at which rows are written as a row group: in bytes before compression, and in rows."""
_FAILED: Final = (
    "A file of the table cannot be served to restricted readers: its format is not supported, its columns have no field"
    " ids, or it is damaged. The table's owner should check the server's log and compact the table"
)


class RewrittenFile(NamedTuple):
    """A restricted file, with its rows, counts and bounds by field id."""

    data: bytes
    file_entry: Json


def rewrite_file(
    shape: ReadShape, task: Json, *, deletes: list[Json], open_file: OpenFile, span: FileSpan | None = None
) -> Iterator[RewrittenFile]:
    """Yield the restricted files of a data file, each with at least one row and of about `WRITTEN_BYTES` at most.

    Raises UnsupportedOperation if the file cannot be read, and LimnosErrors of `open_file`.

    Args:
        shape: The table's schema and specs for reading it, and the restrictions.
        task: The scan task of the file.
        deletes: The delete files of the task.
        open_file: Opens the data file and its delete files by path.
        span: The part of the data file to rewrite; None for the whole file.
    """
    with hide_error_details():
        table = ReadTable(shape)
        writer = _RestrictedWriter(table)
        for batch in table.batches(task, deletes=deletes, open_file=open_file, span=span):
            writer.add(table.visible_rows(batch))
            if writer.size >= WRITTEN_BYTES:
                yield writer.close()
                writer = _RestrictedWriter(table)
        if writer.rows:
            yield writer.close()


class _RestrictedWriter:
    """Writes visible rows to one Parquet file in memory, in row groups of limited size."""

    def __init__(self, table: ReadTable) -> None:
        self._table = table
        self._sink = io.BytesIO()
        self._writer = pq.ParquetWriter(self._sink, table.target, compression="zstd", store_schema=False)
        self._pending: list[pa.Table] = []
        self._pending_bytes = self._pending_rows = 0
        self.rows = 0

    @property
    def size(self) -> int:
        """The number of bytes written so far, without pending rows."""
        return self._sink.tell()

    def add(self, rows: pa.Table) -> None:
        """Add rows to the file."""
        if not rows.num_rows:
            return
        self.rows += rows.num_rows
        self._pending.append(rows)
        self._pending_bytes += rows.nbytes
        self._pending_rows += rows.num_rows
        if self._pending_bytes >= _GROUP_BYTES or self._pending_rows >= _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._writer.write_table(pa.concat_tables(self._pending), row_group_size=self._pending_rows)
        self._pending, self._pending_bytes, self._pending_rows = [], 0, 0

    def close(self) -> RewrittenFile:
        """Finish the file and return it."""
        self._flush()
        self._writer.close()
        metadata = pq.read_metadata(self._sink)
        return RewrittenFile(
            self._sink.getvalue(), {"record-count": self.rows, **file_statistics(self._table, metadata)}
        )


def file_statistics(table: ReadTable, metadata: pq.FileMetaData) -> Json:
    """Return sizes, counts and bounds of a restricted file from its footer, as fields of a scan task."""
    to_serialized_dict = data_file_statistics_from_parquet_metadata(
        parquet_metadata=metadata,
        stats_columns=compute_statistics_plan(table.visible, {}),
        parquet_column_mapping=parquet_path_to_id_mapping(table.visible),
    ).to_serialized_dict()
    fields: Json = {}
    for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
        values = to_serialized_dict.get(name) or {}
        encoded_values = [each.hex().upper() if isinstance(each, bytes) else each for each in values.values()]
        if values:
            fields[name.replace("_", "-")] = {"keys": list(values), "values": encoded_values}
    return fields


@contextmanager
def hide_error_details() -> Iterator[None]:
    """Replace errors in the body by UnsupportedOperation with a message that reveals no data.

    The original error is chained as the cause, for the log.
    """
    try:
        yield
    except LimnosError:
        raise
    except MemoryError:
        raise UnsupportedOperation(
            "A file of the table needs too much memory for restricted readers, for its number of columns, the size of"
            " single values, or its deletes: compact the table"
        ) from None
    except Exception as error:
        raise UnsupportedOperation(_FAILED) from error
