# SPDX-License-Identifier: Apache-2.0
"""Rewrites a data file to a restricted file, with its deletes, row filter and masks applied.

Must not know users or stores. Pure: takes and returns bytes. The result has the table's current columns, by field id;
other columns of the file are omitted. Errors reveal neither content nor the file's name, which may contain values.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile
from pyiceberg.io.pyarrow import (
    ArrowScan,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.typedef import Record

from limnos.formats.restricting.masking import evaluate_filter, mask_column
from limnos.model.errors import LimnosError, UnsupportedOperation

Json = dict[str, Any]
ROWS_AT_ONCE: Final = 64 << 10
_CONTENT: Final = {
    "data": DataFileContent.DATA,
    "position-deletes": DataFileContent.POSITION_DELETES,
    "equality-deletes": DataFileContent.EQUALITY_DELETES,
}
_FAILED: Final = (
    "A file of the table cannot be served to restricted readers: its format is not supported, its columns have no field"
    " ids, or it is damaged. The table's owner should check the server's log and compact the table"
)


class ReadShape(msgspec.Struct, frozen=True):
    """The parts of a table that are needed to read a file (names, ids, partitions), and the restrictions of the
    user.
    """

    metadata: Json
    row_filter: Json | None
    masks: dict[int, str]
    salt: str = ""


class RewrittenFile(NamedTuple):
    """A restricted file, with its rows, counts and bounds by field id. It has no bytes if no row remains."""

    data: bytes
    file_entry: Json


def rewrite_file(shape: ReadShape, task: Json, *, deletes: list[Json], files: Mapping[str, bytes]) -> RewrittenFile:
    """Return the restricted form of a data file. Raises UnsupportedOperation if the file cannot be read.

    Args:
        shape: The table's schema and specs for reading it, and the restrictions.
        task: The scan task of the file.
        deletes: The delete files of the task.
        files: The bytes of the data file and its delete files, by path.
    """
    with hide_error_details():
        table = ReadTable(shape)
        sink = io.BytesIO()
        rows = 0
        with pq.ParquetWriter(sink, table.target, compression="zstd", store_schema=False) as writer:
            for batch in table.batches(task, deletes=deletes, io=MemoryFileIO(dict(files))):
                seen = table.seen(batch)
                rows += seen.num_rows
                if seen.num_rows:
                    writer.write_table(seen)
        if not rows:
            return RewrittenFile(b"", {"record-count": 0})
        return RewrittenFile(sink.getvalue(), {"record-count": rows, **table.statistics(sink)})


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
            "A file of the table is too large for restricted readers: compact the table into smaller files"
        ) from None
    except Exception as error:
        raise UnsupportedOperation(_FAILED) from error


class ReadTable:
    """Reads data files of a table with its current columns: all of them, or only those with the field ids in `only`."""

    def __init__(self, shape: ReadShape, *, only: frozenset[int] | None = None) -> None:
        self._shape = shape
        self._metadata = TableMetadataUtil.parse_obj(shape.metadata)
        self._schema: Schema = self._metadata.schema()
        if only is not None:
            needed = [each for each in self._schema.fields if each.field_id in only]
            self._schema = Schema(*needed, schema_id=self._schema.schema_id)
        nulls = {field_id for field_id, action in shape.masks.items() if action == "replace-with-null"}
        fields = [
            each.model_copy(update={"required": False}) if each.field_id in nulls else each
            for each in self._schema.fields
        ]
        self._seen = Schema(*fields, schema_id=self._schema.schema_id)
        self.target: pa.Schema = schema_to_pyarrow(self._seen)

    @property
    def names(self) -> dict[int, str]:
        """The names of the columns by field id."""
        return {each.field_id: each.name for each in self._schema.fields}

    def batches(self, task: Json, *, deletes: list[Json], io: MemoryFileIO) -> Iterator[pa.RecordBatch]:
        """Yield the live rows of a scan task, with its deletes applied, as batches with the table's current columns.

        Raises UnsupportedOperation for a data file or equality delete file that is not Parquet, and for equality
        deletes by a dropped column.
        """
        positions: list[Json] = []
        equal: list[Json] = []
        for each in deletes:
            (equal if each["content"] == "equality-deletes" else positions).append(each)
        file_scan_task = FileScanTask(_file_of(task["data-file"]), {_file_of(each) for each in positions})
        removed = [self._deleted(each, io) for each in equal]
        for batch in ArrowScan(self._metadata, io, self._schema, AlwaysTrue()).to_record_batches([file_scan_task]):
            for at in range(0, batch.num_rows, ROWS_AT_ONCE):
                yield self._alive(batch.slice(at, ROWS_AT_ONCE), removed)

    def _deleted(self, fields: Json, io: MemoryFileIO) -> tuple[list[str], frozenset[tuple[object, ...]]]:
        """Read an equality delete file. Returns its columns, and the rows of values to delete.

        Raises UnsupportedOperation if the table no longer has a column.
        """
        by_id = {field.field_id: field for field in self._schema.fields}
        if not by_id.keys() >= set(fields["equality-ids"]):
            raise UnsupportedOperation(
                "The table has deletes by a column that it no longer has: compact it, so that restricted readers can"
                " read it"
            )
        columns = Schema(*(by_id[each] for each in fields["equality-ids"]))
        task = FileScanTask(_file_of({**fields, "content": "data"}), set())
        results: set[tuple[object, ...]] = set()
        for batch in ArrowScan(self._metadata, io, columns, AlwaysTrue()).to_record_batches([task]):
            results.update(_rows_of(batch, columns.column_names))
        return columns.column_names, frozenset(results)

    @staticmethod
    def _alive(batch: pa.RecordBatch, removed: list[tuple[list[str], frozenset[tuple[object, ...]]]]) -> pa.RecordBatch:
        for names, values in removed:
            keep = [row not in values for row in _rows_of(batch, names)]
            batch = batch.filter(pa.array(keep, pa.bool_()))
        return batch

    def seen(self, batch: pa.RecordBatch) -> pa.Table:
        """Return the rows visible to the user: filters first, on the stored values, then masks."""
        shape, names = self._shape, self.names
        if shape.row_filter is not None:
            batch = batch.filter(
                evaluate_filter(
                    shape.row_filter, rows=batch.num_rows, column=lambda field_id: batch.column(names[field_id])
                )
            )
        columns = []
        for field in self._schema.fields:
            values = batch.column(field.name)
            action = shape.masks.get(field.field_id)
            columns.append(values if action is None else mask_column(values, action, salt=shape.salt.encode()))
        return pa.table(columns, names=[field.name for field in self._schema.fields]).cast(self.target)

    def statistics(self, sink: io.BytesIO) -> Json:
        """Return sizes, counts and bounds of the written file, without values hidden from the user."""
        to_serialized_dict = data_file_statistics_from_parquet_metadata(
            parquet_metadata=pq.read_metadata(io.BytesIO(sink.getvalue())),
            stats_columns=compute_statistics_plan(self._seen, {}),
            parquet_column_mapping=parquet_path_to_id_mapping(self._seen),
        ).to_serialized_dict()
        fields: Json = {}
        for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
            values = to_serialized_dict.get(name) or {}
            spelled = [each.hex().upper() if isinstance(each, bytes) else each for each in values.values()]
            if values:
                fields[name.replace("_", "-")] = {"keys": list(values), "values": spelled}
        return fields


def _rows_of(batch: pa.RecordBatch, names: list[str]) -> list[tuple[object, ...]]:
    """Return rows as comparable tuples, in which null equals null and NaN equals NaN."""
    columns = [batch.column(name).to_pylist() for name in names]
    return [tuple("nan" if value != value else value for value in row) for row in zip(*columns, strict=True)]  # noqa: PLR0124 - a NaN


def _file_of(fields: Json) -> DataFile:
    """Convert a file of a scan plan to pyiceberg's DataFile.

    Raises UnsupportedOperation for a data file or equality delete file that is not Parquet.
    """
    if fields["content"] != "position-deletes" and fields["file-format"] != "parquet":
        raise UnsupportedOperation(
            f"The table has files of format {fields['file-format']}, which restricted readers cannot read: rewrite them"
            " as parquet"
        )
    file = DataFile.from_args(
        content=_CONTENT[fields["content"]],
        file_path=fields["file-path"],
        file_format=FileFormat[str(fields["file-format"]).upper()],
        partition=Record(*fields["partition"]),
        record_count=fields["record-count"],
        file_size_in_bytes=fields["file-size-in-bytes"],
    )
    file.spec_id = fields["spec-id"]
    return file


class MemoryFileIO(FileIO):
    """A FileIO over bytes in memory."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__()
        self._files = files

    def new_input(self, location: str) -> InputFile:
        return _MemoryInputFile(location, self._files[location])

    def new_output(self, location: str) -> OutputFile:
        raise UnsupportedOperation(f"Writes to {location} are refused")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise UnsupportedOperation(f"Deletion of {location} is refused")


class _MemoryInputFile(InputFile):
    def __init__(self, location: str, data: bytes) -> None:
        super().__init__(location)
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: FBT001, FBT002 - the library's
        return cast("InputStream", pa.BufferReader(self._data))
