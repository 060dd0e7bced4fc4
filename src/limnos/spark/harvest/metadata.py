# SPDX-License-Identifier: Apache-2.0
"""The newest metadata of a table, read on an executor: identity, columns, rows and bytes, as far as it states them.

Must not know listings. What is read and kept of a file is bounded, because strangers wrote it; the fields that a row
does not need are skipped, not built.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from pyarrow import parquet

from limnos.formats.delta_logs import metadata_of as delta_metadata_of
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.errors import InvalidTable, LimnosError
from limnos.model.harvest_formats import DELTA, ICEBERG, LANCE
from limnos.model.table_states import TableState, plain, table_state
from limnos.spark.harvest.listing import reason
from limnos.spark.harvest.stores import LOCAL, METASTORE, HarvestStore, store_of
from limnos.spark.verification.findings import in_parts
from limnos.spark.verification.storage import location_key

METADATA_BYTES_MAX: Final = 64 << 20
"""The maximum size of a metadata file, also unpacked."""
COLUMNS_BYTES_MAX: Final = 256 << 10
"""The maximum size of the columns of a table as JSON; larger ones are left out of the row."""
ROWS_AT_ONCE: Final = 500
_DELTA_BYTES_MAX: Final = 16 << 20
_SUMMARY_BYTES_MAX: Final = 20
INPUT: Final = ("directory", "format", "metadata_location", "version")
"""The columns that a task needs of a listed table."""
SCHEMA: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("format_version", pa.int32()),
        pa.field("uuid", pa.string()),
        pa.field("location", pa.string()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("columns", pa.string()),
        pa.field("row_count", pa.int64()),
        pa.field("byte_count", pa.int64()),
        pa.field("read_problem", pa.string()),
    ]
)
"""The columns of rows, one for each table."""


_ABSENT: Final = msgspec.Raw(b"null")
_Long = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A number that fits a column."""
_Text = Annotated[str, msgspec.Meta(max_length=2_000)]


class _SnapshotSummary(msgspec.Struct, rename="kebab"):
    snapshot_id: _Long
    summary: msgspec.Raw = _ABSENT


class _Schema(msgspec.Struct, rename="kebab"):
    schema_id: int | None = None


class _IcebergMetadata(msgspec.Struct, rename="kebab", kw_only=True):
    """What a row needs of a table's metadata; the schemas stay encoded."""

    format_version: _Long
    location: _Text
    table_uuid: _Text | None = None
    current_snapshot_id: _Long | None = None
    current_schema_id: _Long | None = None
    schema: msgspec.Raw = _ABSENT
    schemas: list[msgspec.Raw] = []
    snapshots: list[_SnapshotSummary] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """What the newest metadata of a table states. `location` is where the metadata says that the table is."""

    format_version: int | None = None
    uuid: str | None = None
    location: str | None = None
    snapshot_id: int | None = None
    columns: str | None = None
    row_count: int | None = None
    byte_count: int | None = None
    read_problem: str | None = None


class MetadataReader:
    """Reads the newest metadata of tables of one store."""

    def __init__(self, store: HarvestStore) -> None:
        self._store = store

    def read(self, format_: str, *, directory: str, file: str) -> TableMetadata:
        """Read a table's metadata. A table that cannot be read has a problem."""
        read = {ICEBERG: self._iceberg, LANCE: self._lance, DELTA: self._delta}.get(format_, self._parquet)
        try:
            return read(directory, file)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except (OSError, LimnosError, ValueError) as error:
            return TableMetadata(read_problem=f"its metadata cannot be read: {reason(error)}")
        except BaseException as error:  # noqa: BLE001 - a library's panic about hostile files concerns this table alone
            return TableMetadata(
                read_problem=f"its metadata cannot be read: {type(error).__name__}: {str(error)[:200]}"
            )

    def _iceberg(self, directory: str, file: str) -> TableMetadata:
        data = iceberg_metadata.unpack(
            self._store.read(file, bytes_max=METADATA_BYTES_MAX), bytes_max=METADATA_BYTES_MAX
        )
        metadata = msgspec.json.decode(data, type=_IcebergMetadata)
        if metadata.format_version not in iceberg_metadata.VERSIONS:
            raise InvalidTable(f"it has format version {metadata.format_version}, and there are 1, 2 and 3")
        snapshot = next((s for s in metadata.snapshots if s.snapshot_id == metadata.current_snapshot_id), None)
        summary = _summary_of(snapshot)
        location = plain(metadata.location)
        elsewhere = None
        if not directory.startswith(METASTORE) and _key(location) != _key(directory):
            elsewhere = f"its metadata says that the table is at {location[:300]}"
        return TableMetadata(
            format_version=metadata.format_version,
            uuid=metadata.table_uuid,
            location=location,
            snapshot_id=None if snapshot is None else snapshot.snapshot_id,
            columns=_short(_current_schema(metadata)),
            row_count=_count(summary.get("total-records")),
            byte_count=_count(summary.get("total-files-size")),
            read_problem=elsewhere,
        )

    def _lance(self, directory: str, file: str) -> TableMetadata:
        try:
            import lance  # noqa: PLC0415 - an optional library
        except ImportError:
            raise InvalidTable("the library pylance is not installed on the executors") from None
        del file
        dataset: Any = lance.dataset(directory.removeprefix("file://"))
        return TableMetadata(
            location=directory,
            snapshot_id=dataset.version,
            columns=_short(_arrow_columns(dataset.schema)),
            row_count=dataset.count_rows(),
        )

    def _delta(self, directory: str, file: str) -> TableMetadata:
        """Read the columns that the newest entries of the log state; older entries may be in checkpoints only."""
        entry = delta_metadata_of(self._store.read(file, bytes_max=_DELTA_BYTES_MAX))
        return TableMetadata(
            location=directory,
            uuid=None if entry is None else entry.id,
            columns=None if entry is None else _short(entry.columns),
        )

    def _parquet(self, directory: str, file: str) -> TableMetadata:
        """Read the columns of the newest file."""
        with self._store.open_input(file) as opened:
            schema = parquet.read_schema(opened)
        return TableMetadata(location=directory, columns=_short(_arrow_columns(schema)))

    def state(self, file: str) -> TableState:
        """Return the state of an Iceberg table, with its log. Raises OSError, LimnosError."""
        data = iceberg_metadata.unpack(
            self._store.read(file, bytes_max=METADATA_BYTES_MAX), bytes_max=METADATA_BYTES_MAX
        )
        return table_state(file, iceberg_metadata.decode(data))


@dataclass(frozen=True, slots=True)
class MetadataTask:
    """The function of a task, from batches of listed tables to batches of their metadata."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read tables, and yield rows of `SCHEMA`."""
        tables = (row for batch in batches for row in batch.select(INPUT).to_pylist())
        for some in in_parts(tables, ROWS_AT_ONCE):
            yield pa.RecordBatch.from_pylist([_row(each) for each in some], schema=SCHEMA)


def _row(table: Mapping[str, Any]) -> dict[str, object]:
    reader = MetadataReader(store_of(table["metadata_location"]))
    metadata = reader.read(table["format"], directory=table["directory"], file=table["metadata_location"])
    values = {name: getattr(metadata, name) for name in SCHEMA.names if name != "directory"}
    return {"directory": table["directory"], **values}


def _key(location: str) -> str:
    """Return a form of a location in which that of a table and that of its directory are equal."""
    key = location_key(location)
    return f"{LOCAL}{os.path.realpath(key.removeprefix(LOCAL))}" if key.startswith(LOCAL) else key


def _current_schema(metadata: _IcebergMetadata) -> str | None:
    for each in metadata.schemas:
        if msgspec.json.decode(each, type=_Schema).schema_id == metadata.current_schema_id:
            return bytes(each).decode()
    return None if bytes(metadata.schema) == bytes(_ABSENT) else bytes(metadata.schema).decode()


def _summary_of(snapshot: _SnapshotSummary | None) -> Mapping[str, object]:
    if snapshot is None:
        return {}
    return msgspec.json.decode(snapshot.summary, type=dict[str, object] | None) or {}


def _count(value: object) -> int | None:
    """Return the number in a summary; None if there is none that a column can have."""
    text = value if isinstance(value, str) else ""
    is_number = text.isascii() and text.isdigit() and len(text) <= _SUMMARY_BYTES_MAX
    return int(text) if is_number and int(text) < 1 << 63 else None


def _arrow_columns(schema: pa.Schema) -> str:
    fields = [{"name": each.name, "type": str(each.type), "nullable": each.nullable} for each in schema]
    return msgspec.json.encode(fields).decode()


def _short(text: str | None) -> str | None:
    return None if text is None or len(text) > COLUMNS_BYTES_MAX else text
