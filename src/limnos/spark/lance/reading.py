# SPDX-License-Identifier: Apache-2.0
"""Reading of a Lance table in Spark: each task reads some fragments of one version.

A task receives the table's location, not the caller's credential. The version may be one that no reader sees yet: then
the task receives the path of its manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import lance
from lance_namespace import LanceNamespace
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType

from limnos.model.errors import BadRequest, InvalidTable, NotFound
from limnos.names.hidden_segments import has_foreign_path
from limnos.spark.lance.filters import condition_of, sql_of
from limnos.spark.lance.types import as_schema, spark_schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from limnos.spark.lance.server_access import LanceOptions, ServerAccess

_TASKS_MAX: Final = 1000
_TABLE: Final = ("table",)
ADDRESS: Final = "_rowaddr"
"""The column with the address of a row: the number of its fragment, and in the lower 32 bits its place there."""
_ROWS: Final = 8192


@dataclass(frozen=True)
class LanceTableFiles:
    """A table's location and version, and the storage options that reach it. `manifest` is the path in the store of a
    version that is not committed.
    """

    location: str
    version: int
    options: dict[str, str]
    manifest: str | None = None

    def open(self) -> lance.LanceDataset:
        """Open the dataset at this version with Lance's library. Raises InvalidTable, see `without_foreign_bases`."""
        if self.manifest is not None:
            return without_foreign_bases(self._open_manifest(self.manifest), self.location)
        dataset = lance.dataset(self.location, version=self.version, storage_options=self.options or None)
        return without_foreign_bases(dataset, self.location)

    def _open_manifest(self, manifest: str) -> lance.LanceDataset:
        return lance.LanceDataset(
            self.location,
            version=self.version,
            storage_options=self.options or None,
            namespace_client=SingleVersionNamespace(self, manifest=manifest),
            table_id=list(_TABLE),
            namespace_client_managed_versioning=True,
        )


class SingleVersionNamespace(LanceNamespace):
    """A namespace of one table with one version, whose manifest is at a given path."""

    def __init__(self, files: LanceTableFiles, *, manifest: str) -> None:
        self._files = files
        self._manifest = manifest

    def namespace_id(self) -> str:
        """Return the identity of the namespace, which Lance's library uses for its caches."""
        return f"limnos version {self._manifest}"

    def describe_table(self, request: Any) -> Any:  # noqa: ANN401 - mappings of Lance's library
        """Return the location with the storage options of the task."""
        files = self._files
        return {"location": files.location, "storage_options": files.options or None, "managed_versioning": True}

    def list_table_versions(self, request: Any) -> Any:  # noqa: ANN401
        """Return the version."""
        return {"versions": [self._describe_version()]}

    def describe_table_version(self, request: Any) -> Any:  # noqa: ANN401
        """Return the version. Raises RuntimeError for another one."""
        if request.get("version") != self._files.version:
            raise RuntimeError(f"there is only version {self._files.version}")
        return {"version": self._describe_version()}

    def _describe_version(self) -> dict[str, object]:
        return {"version": self._files.version, "manifest_path": self._manifest}


def without_foreign_bases(dataset: lance.LanceDataset, location: str) -> lance.LanceDataset:
    """Return a dataset all of whose base paths lie below the table's location.

    Raises InvalidTable otherwise: the process may open files that the table's writers may not.
    """
    if has_foreign_path(location, [str(each.path) for each in dataset.base_paths().values()]):
        raise InvalidTable(
            "The table has files in other places than its location: copy the whole table to one location, and register"
            " that"
        )
    return dataset


@dataclass
class FragmentShare(InputPartition):
    """The input partition of one task: the ids of the fragments that it reads."""

    fragments: tuple[int, ...]


def files_of(home: ServerAccess, options: LanceOptions) -> LanceTableFiles:
    """Load a table's location, version and storage options from the server. Raises NotFound for a table without data,
    and the client's errors.
    """
    with home.client() as client:
        table = options.load(client)
    if options.manifest is not None and options.staged is not None:
        return LanceTableFiles(table.location, options.staged, table.storage_options, options.manifest)
    if table.version is None:
        raise NotFound(f"{options.name} was declared, but has no data yet: write to it first", kind="version")
    return LanceTableFiles(table.location, table.version, table.storage_options)


def columns_of(files: LanceTableFiles, options: LanceOptions) -> StructType:
    """Return the Spark schema of a read: the columns in the options, by default all. Raises BadRequest for a column
    that the table lacks.
    """
    schema = files.open().schema
    for name in options.columns or ():
        if name not in schema.names:
            raise BadRequest(f"{options.name} has no column {name}: it has {', '.join(schema.names)}")
    requested = [schema.field(name) for name in options.columns] if options.columns is not None else list(schema)
    result = spark_schema_of(requested)
    return result.add(ADDRESS, LongType(), nullable=False) if options.addresses else result


class LanceReader(DataSourceReader):
    """The Spark data source reader for one version of a Lance table, or for some of its fragments."""

    def __init__(self, files: LanceTableFiles, schema: StructType, *, fragments: frozenset[int] | None = None) -> None:
        self._files = files
        self._fragments = fragments
        self._addresses = ADDRESS in schema.fieldNames()
        self._names = [each for each in schema.fieldNames() if each != ADDRESS]
        self._schema = to_arrow_schema(schema, timestamp_utc=True)
        self._filters: list[str] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - PySpark's name
        """Accept the filters that Lance evaluates like Spark; return all other filters, which Spark then evaluates."""
        for each in filters:
            sql = sql_of(each)
            if sql is None:
                yield each
            else:
                self._filters.append(sql)

    def partitions(self) -> list[FragmentShare]:
        """Divide the table's fragments into at most `_TASKS_MAX` input partitions."""
        fragments = self._fragments
        numbers = [fragment.fragment_id for fragment in self._files.open().get_fragments()]
        if fragments is not None and not fragments <= frozenset(numbers):
            raise NotFound("The version lacks some of the fragments to read", kind="version")
        results = [each for each in numbers if fragments is None or each in fragments]
        size = -(-len(results) // _TASKS_MAX) or 1
        return [FragmentShare(tuple(results[start : start + size])) for start in range(0, len(results), size)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition's fragments that pass the pushed filters, as Arrow batches."""
        if not isinstance(partition, FragmentShare):
            return
        dataset = self._files.open()
        fragments = [each for number in partition.fragments if (each := dataset.get_fragment(number)) is not None]
        scanner = dataset.scanner(
            columns=self._names,
            filter=condition_of(self._filters),
            fragments=fragments,
            batch_size=_ROWS,
            prefilter=True,
            with_row_address=self._addresses,
        )
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield as_schema(batch, self._schema)
