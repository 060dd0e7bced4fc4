# SPDX-License-Identifier: Apache-2.0
"""Statistics of the columns of tables in a task: loads tables from the server, adds up their manifests, and yields rows
in Arrow.

A table that cannot be read has a row with the problem, and the others are still read. What is read of a table is
bounded: metadata may be hostile. Must not know Spark's sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from limnos.client.catalog.tables import LOADED_AT_ONCE
from limnos.client.errors import ClientError, NotFoundError, UnavailableError
from limnos.formats.avro import BadAvro, values_of
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.file_lists import read_manifest_list, snapshots_of
from limnos.formats.iceberg.schema import columns as columns_of
from limnos.model.errors import InvalidTable, LimnosError, TooLarge
from limnos.spark.batch_loads import load_batch
from limnos.spark.statistics.bounds import BoundValue, bound_of, bound_text
from limnos.spark.verification.findings import in_parts
from limnos.spark.verification.storage import TableStorage, files_for, location_key
from limnos.spark.verification.tables import FILES_MAX, MANIFEST_BYTES_MAX, MANIFESTS_MAX, places_of

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.client.values import IcebergTableInfo, Json
    from limnos.spark.lance.server_access import ServerAccess

ROWS_AT_ONCE: Final = 1_000
CELLS_MAX: Final = 20_000_000
"""The maximum number of data files of a table times its columns: some minutes of work."""
COLUMNS: Final = ("id", "path", "format", "restricted")
"""The columns of the system table `tables` that a task needs."""
SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("path", pa.string()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("field_id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("type", pa.string()),
        pa.field("files", pa.int64()),
        pa.field("measured_files", pa.int64()),
        pa.field("row_count", pa.int64()),
        pa.field("value_count", pa.int64()),
        pa.field("null_count", pa.int64()),
        pa.field("nan_count", pa.int64()),
        pa.field("byte_count", pa.int64()),
        pa.field("lower", pa.string()),
        pa.field("upper", pa.string()),
        pa.field("has_deletes", pa.bool_()),
        pa.field("problem", pa.string()),
    ]
)
"""The columns of rows: one for each column of a primitive type, or one with a `problem` for a table."""
_ICEBERG: Final = "iceberg"
_TEXT_MAX: Final = 1_000
_DELETED: Final = 2
_LONG_MAX: Final = (1 << 63) - 1
_SUMS: Final = {
    "value_count": "value_counts",
    "null_count": "null_value_counts",
    "nan_count": "nan_value_counts",
    "byte_count": "column_sizes",
}
"""The sums of a column, and the maps of a manifest that have their parts."""
_FIELDS: Final = (
    ("data_file", "file_path"),
    ("status",),
    ("data_file", "content"),
    ("data_file", "record_count"),
    ("data_file", "lower_bounds"),
    ("data_file", "upper_bounds"),
    *[("data_file", name) for name in _SUMS.values()],
)


class MeasuredTable(NamedTuple):
    """A table to measure."""

    id: int
    path: str


@dataclass(slots=True, kw_only=True)
class _Column:
    """What the files so far say of a column. A bound is None until a file has one."""

    field_id: int
    name: str
    family: str
    type_text: str
    measured_files: int = 0
    sums: dict[str, int] = field(default_factory=dict)
    lower: BoundValue | None = None
    upper: BoundValue | None = None
    has_unbounded: bool = False
    """Whether a file may have values outside of the bounds, because it states none."""

    def add(self, counts: Mapping[str, Mapping[int, object]], *, low: object, high: object, rows: int) -> None:
        """Add a data file with some rows: its counts by name and field, and its bounds of this column."""
        numbers = {name: _number(counts[name].get(self.field_id)) for name in _SUMS}
        for name, number in numbers.items():
            if number is not None:
                self.sums[name] = self.sums.get(name, 0) + number
        values, nulls = numbers["value_count"], numbers["null_count"]
        self.measured_files += values is not None
        bounds = [
            bound_of(self.family, self.type_text, data=each) if isinstance(each, bytes) else None
            for each in (low, high)
        ]
        if bounds[0] is None or bounds[1] is None:
            has_nulls_alone = values is not None and values == nulls
            self.has_unbounded = self.has_unbounded or (rows > 0 and not has_nulls_alone)
            return
        self.lower = bounds[0] if self.lower is None else min(self.lower, bounds[0])
        self.upper = bounds[1] if self.upper is None else max(self.upper, bounds[1])

    def bounds(self) -> tuple[str | None, str | None]:
        """Return the texts of both bounds; None if a file may have other values, or none has any."""
        if self.has_unbounded or self.lower is None or self.upper is None:
            return None, None
        return bound_text(self.family, self.lower), bound_text(self.family, self.upper)


class TableStatistics:
    """The sums over the manifests of one snapshot."""

    def __init__(self, metadata: Json) -> None:
        """Begin with the columns of the current schema. Raises BadRequest for a malformed one."""
        schema = columns_of(iceberg_metadata.current_schema(metadata))
        self.columns = [
            _Column(field_id=each.id, name=each.name, family=each.primitive.family, type_text=each.primitive.text)
            for each in schema.by_id.values()
            if each.primitive is not None
        ]
        self.snapshot_id = iceberg_metadata.current_snapshot_id(metadata)
        self.files = self.row_count = 0
        self.has_deletes = False
        self._metadata = metadata

    def read(self, storage: TableStorage) -> None:
        """Add the manifests of the current snapshot. Raises MissingFile, OutsideRoots, InvalidTable, TooLarge."""
        snapshot = next((each for each in snapshots_of(self._metadata) if each.snapshot_id == self.snapshot_id), None)
        if snapshot is None:
            return
        paths = list(dict.fromkeys(snapshot.manifests))
        if snapshot.manifest_list is not None:
            manifests = read_manifest_list(storage.read(snapshot.manifest_list, bytes_max=MANIFEST_BYTES_MAX))
            paths = list(dict.fromkeys(each.path for each in manifests))
        if len(paths) > MANIFESTS_MAX:
            raise TooLarge(f"it has {len(paths):,} manifests, and at most {MANIFESTS_MAX:,} are read")
        for path in paths:
            self._add_manifest(storage.read(path, bytes_max=MANIFEST_BYTES_MAX))
        if max((self.row_count, *(sum_ for each in self.columns for sum_ in each.sums.values()))) > _LONG_MAX:
            raise InvalidTable("the counts in its manifests have more than 64 bits")

    def _add_manifest(self, data: bytes) -> None:
        try:
            for _, status, content, count, lows, highs, *maps in values_of(data, *_FIELDS, is_needed=True):
                if status == _DELETED:
                    continue
                if content:
                    self.has_deletes = True
                    continue
                rows = _number(count) or 0
                self.files, self.row_count = self.files + 1, self.row_count + rows
                if self.files > FILES_MAX:
                    raise TooLarge(f"it has more than {FILES_MAX:,} data files, the most that are read")
                if self.files * len(self.columns) > CELLS_MAX:
                    raise TooLarge(
                        f"it has more than {self.files - 1:,} data files of {len(self.columns):,} columns, and at most"
                        f" {CELLS_MAX:,} columns of files are read"
                    )
                counts = {name: _map_of(each) for name, each in zip(_SUMS, maps, strict=True)}
                low, high = _map_of(lows), _map_of(highs)
                for each in self.columns:
                    each.add(counts, low=low.get(each.field_id), high=high.get(each.field_id), rows=rows)
        except BadAvro as error:
            raise InvalidTable(f"a manifest is not readable: {str(error)[:200]}") from error

    def rows(self, table: MeasuredTable) -> Iterator[dict[str, object]]:
        """Yield the row of each column."""
        for each in self.columns:
            lower, upper = each.bounds()
            yield {
                "id": table.id,
                "path": table.path,
                "snapshot_id": self.snapshot_id,
                "field_id": each.field_id,
                "name": each.name[:_TEXT_MAX],
                "type": each.type_text,
                "files": self.files,
                "measured_files": each.measured_files,
                "row_count": self.row_count,
                **{name: each.sums.get(name) for name in _SUMS},
                "lower": lower,
                "upper": upper,
                "has_deletes": self.has_deletes,
            }


@dataclass(frozen=True, slots=True)
class StatisticsTask:
    """The function of a task, from batches of tables to batches of rows. Spark pickles it with the credential."""

    home: ServerAccess

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Measure tables, and yield their rows. Raises UnavailableError if the server is not reachable."""
        with self.home.client() as client:
            tables = (row for batch in batches for row in batch.to_pylist() if row["format"] == _ICEBERG)
            rows = chain.from_iterable(_rows_of_tables(client, some) for some in in_parts(tables, LOADED_AT_ONCE))
            for some in in_parts(rows, ROWS_AT_ONCE):
                yield pa.RecordBatch.from_pylist(some, schema=SCHEMA)


def _rows_of_tables(client: Client, rows: Sequence[Mapping[str, object]]) -> Iterator[dict[str, object]]:
    """Yield the rows of some tables, whose metadata is loaded by one request as far as possible."""
    loaded_tables = load_batch(client.tables.load_each, [str(row["path"]) for row in rows if not row["restricted"]])
    for row in rows:
        table = MeasuredTable(int(str(row["id"])), str(row["path"]))
        if row["restricted"]:
            yield from _problem(table, "your reads of it are restricted, so you get no files")
        else:
            yield from _rows_of(client, table, loaded=loaded_tables.pop(table.path, None))


def _rows_of(client: Client, table: MeasuredTable, *, loaded: IcebergTableInfo | None) -> Iterator[dict[str, object]]:
    """Return the rows of a table; none for a dropped one."""
    if loaded is not None:
        with suppress(ClientError, LimnosError, OSError):  # its files may be gone after a commit: it is loaded again
            return _sum_manifests(client, table, metadata=loaded.metadata).rows(table)
    try:
        statistics = _sum_manifests(client, table, metadata=client.tables.load(table.path, snapshots="refs").metadata)
    except NotFoundError as error:
        return iter(()) if error.code != "missing-file" else _problem(table, error.message)
    except UnavailableError as error:
        if error.status == 0:
            raise
        return _problem(table, error.message)
    except (ClientError, LimnosError) as error:
        return _problem(table, error.message)
    except Exception as error:  # noqa: BLE001 - whatever a library raises about hostile files concerns this table alone
        return _problem(table, f"{type(error).__name__}: {error}")
    return statistics.rows(table)


def _sum_manifests(client: Client, table: MeasuredTable, *, metadata: Json) -> TableStatistics:
    """Return the sums over a table's manifests. Raises ClientError, LimnosError, and what a library raises."""
    statistics = TableStatistics(metadata)
    if statistics.snapshot_id is not None:
        roots = places_of(metadata)
        is_local = location_key(roots[0]).startswith("file:")
        statistics.read(files_for(roots, {} if is_local else client.tables.credentials(table.path)))
    return statistics


def _problem(table: MeasuredTable, problem: str) -> Iterator[dict[str, object]]:
    return iter(({"id": table.id, "path": table.path, "problem": problem[:_TEXT_MAX]},))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _map_of(pairs: object) -> dict[int, object]:
    """Return a map of a manifest by field id; empty if it is absent."""
    return {each["key"]: each["value"] for each in pairs} if isinstance(pairs, list) else {}
