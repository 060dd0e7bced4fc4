# SPDX-License-Identifier: Apache-2.0
"""Reads the live rows of data files in batches, by field id, with deletes, the row filter and the masks applied.

Must not know users or stores: files are opened by a function of the caller. A large file is read in spans of its bytes,
each of whole row groups. The memory for a span depends on the columns, not on the size of the file: one buffer for each
column, and one batch of rows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.orc import ORCFile
from pyiceberg.io.pyarrow import ArrowAccessor, ArrowProjectionVisitor, pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.schema import Schema, build_position_accessors, prune_columns, visit_with_partner
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import ListType, MapType

from limnos.formats.restricting.masking import evaluate_filter, mask_column
from limnos.formats.restricting.spans import FileSpan
from limnos.model.errors import UnsupportedOperation

Json = dict[str, Any]
ROWS_AT_ONCE: Final = 16 << 10
_ROWS_AT_LEAST: Final = 64
_BATCH_BYTES: Final = 16 << 20
"""The approximate maximum size of a batch as the file stores it, in bytes."""
_BUFFERS_BYTES: Final = 64 << 20
"""The size of the buffers of all columns together, in bytes."""


class OpenedFile(Protocol):
    """A file opened for reading parts of it."""

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""

    def read(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Set the position of the next read, and return it."""

    def close(self) -> None:
        """Close the file."""


OpenFile = Callable[[str], OpenedFile]


class ReadShape(msgspec.Struct, frozen=True):
    """The parts of a table that are needed to read a file (names, ids, partitions), and the restrictions of the
    user.
    """

    metadata: Json
    row_filter: Json | None
    masks: dict[int, str]
    salt: str = ""


class ReadTable:
    """Reads data files of a table with its current columns: all of them, or only those with the field ids in `only`."""

    def __init__(self, shape: ReadShape, *, only: frozenset[int] | None = None) -> None:
        self._shape = shape
        self._metadata = TableMetadataUtil.parse_obj(shape.metadata)
        self._schema: Schema = self._metadata.schema()
        if only is not None:
            needed_fields = [each for each in self._schema.fields if each.field_id in only]
            self._schema = Schema(*needed_fields, schema_id=self._schema.schema_id)
        nulls = {field_id for field_id, action in shape.masks.items() if action == "replace-with-null"}
        fields = [
            each.model_copy(update={"required": False}) if each.field_id in nulls else each
            for each in self._schema.fields
        ]
        self.visible = Schema(*fields, schema_id=self._schema.schema_id)
        """The columns of the visible rows: those masked with null are optional."""
        self.target: pa.Schema = schema_to_pyarrow(self.visible)

    @property
    def names(self) -> dict[int, str]:
        """The names of the columns by field id."""
        return {each.field_id: each.name for each in self._schema.fields}

    def batches(
        self, task: Json, *, deletes: list[Json], open_file: OpenFile, span: FileSpan | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the live rows of a scan task, with its deletes applied, as batches with the table's current columns.

        Args:
            task: The scan task of the file.
            deletes: The delete files of the task; each is read as a whole.
            open_file: Opens a file by its path.
            span: The part of the data file to read; None for the whole file.

        Raises:
            UnsupportedOperation: The data file or an equality delete file is not Parquet, or an equality delete uses a
                dropped column.
        """
        path = task["data-file"]["file-path"]
        equality_deletes = [
            self._read_equality_deletes(each, open_file) for each in deletes if each["content"] == "equality-deletes"
        ]
        positions = _positions(
            [each for each in deletes if each["content"] != "equality-deletes"], path=path, open_file=open_file
        )
        for start, batch in self._rows(task["data-file"], self._schema, open_file=open_file, span=span):
            yield self._alive(_without(batch, positions, start=start), equality_deletes)

    def _rows(
        self, file: Json, schema: Schema, *, open_file: OpenFile, span: FileSpan | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of a data file with the columns of `schema`, as batches with the position of the first row.

        Raises UnsupportedOperation for a file that is not Parquet.
        """
        _require_parquet(file)
        source = open_file(file["file-path"])
        try:
            reader = _parquet(source)
            version = self._metadata.format_version
            found_schema = pyarrow_to_schema(
                reader.schema_arrow,
                self._metadata.name_mapping(),
                downcast_ns_timestamp_to_us=version <= 2,
                format_version=version,
            )
            ids = {each for each in schema.field_ids if not isinstance(schema.find_type(each), (MapType, ListType))}
            read = prune_columns(found_schema, ids, select_full_types=False)
            projection = ArrowProjectionVisitor(
                read,
                version <= 2,
                projected_missing_fields=self._partition_values(file, schema, known=found_schema.field_ids),
                allow_timestamp_tz_mismatch=True,
            )
            names = [each.name for each in read.columns]
            groups, position = _row_groups(reader, span)
            batches = reader.iter_batches(_batch_rows(reader), row_groups=groups, columns=names, use_threads=False)
            for batch in batches if groups else ():
                rows = visit_with_partner(schema, batch.select(names), projection, ArrowAccessor(read))
                yield position, pa.RecordBatch.from_struct_array(rows)
                position += batch.num_rows
        finally:
            source.close()

    def _partition_values(self, file: Json, schema: Schema, *, known: set[int]) -> dict[int, Any]:
        """Return the values of identity partitions by field id, for columns that the file itself does not have."""
        missing = schema.field_ids - known
        spec = self._metadata.specs().get(file["spec-id"]) if missing else None
        if spec is None:
            return {}
        accessors = build_position_accessors(spec.partition_type(self._metadata.schema()))
        partition = Record(*file["partition"])
        values = {}
        for field_id in missing:
            for each in spec.fields_by_source_id(field_id):
                if isinstance(each.transform, IdentityTransform):
                    values[field_id] = accessors[each.field_id].get(partition)
        return {field_id: value for field_id, value in values.items() if value is not None}

    def _read_equality_deletes(
        self, fields: Json, open_file: OpenFile
    ) -> tuple[list[str], frozenset[tuple[object, ...]]]:
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
        results: set[tuple[object, ...]] = set()
        for _, batch in self._rows(fields, columns, open_file=open_file, span=None):
            results.update(_rows_of(batch, columns.column_names))
        return columns.column_names, frozenset(results)

    @staticmethod
    def _alive(batch: pa.RecordBatch, removed: list[tuple[list[str], frozenset[tuple[object, ...]]]]) -> pa.RecordBatch:
        for names, values in removed:
            keep = [row not in values for row in _rows_of(batch, names)]
            batch = batch.filter(pa.array(keep, pa.bool_()))
        return batch

    def visible_rows(self, batch: pa.RecordBatch) -> pa.Table:
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


def _parquet(source: OpenedFile) -> pq.ParquetFile:
    """Open a Parquet file so that each column is read through a buffer of limited size."""
    footer = pq.ParquetFile(pa.PythonFile(source, mode="r"), pre_buffer=False)
    size = max(64 << 10, min(2 << 20, _BUFFERS_BYTES // max(1, footer.metadata.num_columns)))
    return pq.ParquetFile(pa.PythonFile(source, mode="r"), metadata=footer.metadata, buffer_size=size, pre_buffer=False)


def _row_groups(reader: pq.ParquetFile, span: FileSpan | None) -> tuple[list[int], int]:
    """Return the row groups of a span, and the number of rows before them.

    A row group belongs to the span with its middle, by the sizes of the row groups in their order. So every row group
    belongs to exactly one span, whatever offsets a footer claims.
    """
    metadata = reader.metadata
    groups: list[int] = []
    earlier_bytes = size = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        group_bytes = sum(max(0, group.column(each).total_compressed_size) for each in range(group.num_columns))
        if span is None or span.start <= size + group_bytes // 2 < span.end:
            groups.append(number)
        elif not groups:
            earlier_bytes += group.num_rows
        size += group_bytes
    return groups, earlier_bytes


def count_span_rows(source: OpenedFile, span: FileSpan | None) -> int:
    """Return the number of rows of a span of a data file, without deletes and filter, by the file's footer."""
    reader = pq.ParquetFile(pa.PythonFile(source, mode="r"), pre_buffer=False)
    groups, _ = _row_groups(reader, span)
    return sum(reader.metadata.row_group(each).num_rows for each in groups)


def _batch_rows(reader: pq.ParquetFile) -> int:
    """Return the number of rows to read at once, from the average size of a row in the file."""
    metadata = reader.metadata
    size = sum(max(0, metadata.row_group(each).total_byte_size) for each in range(metadata.num_row_groups))
    rows: int = _BATCH_BYTES * max(1, metadata.num_rows) // max(1, size)
    return max(_ROWS_AT_LEAST, min(ROWS_AT_ONCE, rows))


def _positions(deletes: list[Json], *, path: str, open_file: OpenFile) -> array[int]:
    """Return the sorted positions of a data file's rows that position deletes or deletion vectors remove."""
    chunks = [chunk for each in deletes for chunk in _positions_of(each, path=path, open_file=open_file)]
    positions = array("q")
    if chunks:
        values = pc.unique(pa.chunked_array(chunks, pa.int64()))
        positions.extend(values.take(pc.array_sort_indices(values)).to_pylist())
    return positions


def _positions_of(delete: Json, *, path: str, open_file: OpenFile) -> list[pa.Array]:
    source = open_file(delete["file-path"])
    try:
        data = source.read()
    finally:
        source.close()
    kind = delete["file-format"]
    if kind == "puffin":
        vectors = deletion_vectors_from_puffin_file(PuffinFile(data))
        arrays = [each.to_vector() for each in vectors if each.referenced_data_file == path]
        return [chunk for each in arrays for chunk in each.chunks]
    if kind not in ("parquet", "orc"):
        raise UnsupportedOperation(
            f"The table has delete files of format {kind}, which restricted readers cannot read: compact it"
        )
    rows = _delete_rows(data, kind)
    file_rows = rows.filter(pc.equal(rows.column("file_path"), path))
    chunks: list[pa.Array] = file_rows.column("pos").cast(pa.int64()).drop_null().chunks
    return chunks


def _delete_rows(data: bytes, kind: str) -> pa.Table:
    """Read the paths and positions of a position delete file."""
    columns = ["file_path", "pos"]
    if kind == "orc":
        return ORCFile(pa.BufferReader(data)).read(columns=columns)
    return pq.read_table(pa.BufferReader(data), columns=columns, use_threads=False)


def _without(batch: pa.RecordBatch, positions: array[int], *, start: int) -> pa.RecordBatch:
    """Return a batch without the rows at some positions of the file; `start` is the position of its first row."""
    low, high = bisect_left(positions, start), bisect_left(positions, start + batch.num_rows)
    if low == high:
        return batch
    rows = pa.array(range(start, start + batch.num_rows), pa.int64())
    removed_positions = pa.array(positions[low:high].tolist(), pa.int64())
    return batch.filter(pc.invert(pc.is_in(rows, value_set=removed_positions)))


def _rows_of(batch: pa.RecordBatch, names: list[str]) -> list[tuple[object, ...]]:
    """Return rows as comparable tuples, in which null equals null and NaN equals NaN."""
    columns = [batch.column(name).to_pylist() for name in names]
    return [tuple("nan" if value != value else value for value in row) for row in zip(*columns, strict=True)]  # noqa: PLR0124 - a NaN


def _require_parquet(fields: Json) -> None:
    """Raise UnsupportedOperation for a data file or equality delete file that is not Parquet."""
    if fields["file-format"] != "parquet":
        raise UnsupportedOperation(
            f"The table has files of format {fields['file-format']}, which restricted readers cannot read: rewrite them"
            " as parquet"
        )
