# SPDX-License-Identifier: Apache-2.0
"""Metadata of an Iceberg table: UUID, refs, snapshots with summaries, schemas, layout.

One type of value for tables of any catalog of a session. Must not know steps. In a classic session the JSON comes from
the JVM's loaded table; over Spark Connect the newest metadata file is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from limnos.model.errors import NotFound
from limnos.names import engine
from limnos.pipeline.declared_values import Parts
from limnos.spark.gateway import Java, java_class

MAIN = "main"
_ABSENT = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "NO_SUCH_TABLE_EXCEPTION"})


class TableSnapshot(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    """A snapshot of a table. Its summary has the operation and the checkpoints of runs."""

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int = 0
    schema_id: int | None = None
    first_row_id: int | None = None
    """In format v3, the first row id of the snapshot's new rows."""
    summary: Mapping[str, str] = {}

    @property
    def operation(self) -> str:
        """The operation: append, replace, overwrite or delete."""
        return self.summary.get("operation", "append")


class TableReference(msgspec.Struct, frozen=True, rename="kebab"):
    """A branch or tag: its type, and the id of its snapshot."""

    snapshot_id: int
    type: str = "branch"
    max_ref_age_ms: int | None = None


class TableField(msgspec.Struct, frozen=True, kw_only=True):
    """A column. A nested type is in Iceberg's JSON form."""

    id: int
    name: str
    type: object
    required: bool = False
    doc: str | None = None


class TableSchema(msgspec.Struct, frozen=True, rename="kebab"):
    """An Iceberg schema, with its id and its columns."""

    fields: tuple[TableField, ...]
    schema_id: int = 0


class PartitionField(msgspec.Struct, frozen=True, rename="kebab"):
    """A partition field: a transform of the column `source_id`."""

    name: str
    transform: str
    source_id: int = 0


class SortField(msgspec.Struct, frozen=True, rename="kebab"):
    """One field of a sort order: the column, its transform and the direction."""

    transform: str
    source_id: int = 0
    direction: str = "asc"
    null_order: str = "nulls-first"


class PartitionSpec(msgspec.Struct, frozen=True, rename="kebab"):
    """An Iceberg partition spec: its id, and its fields with source column and transform."""

    spec_id: int = 0
    fields: tuple[PartitionField, ...] = ()


class TableSortOrder(msgspec.Struct, frozen=True, rename="kebab"):
    """An Iceberg sort order: its id, and its fields in order."""

    order_id: int = 0
    fields: tuple[SortField, ...] = ()


class TableMetadata(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    """A table's metadata. The names are those of the Iceberg specification."""

    table_uuid: str
    format_version: int
    current_schema_id: int
    schemas: tuple[TableSchema, ...]
    location: str = ""
    partition_specs: tuple[PartitionSpec, ...] = ()
    default_spec_id: int = 0
    sort_orders: tuple[TableSortOrder, ...] = ()
    default_sort_order_id: int = 0
    properties: Mapping[str, str] = {}
    snapshots: tuple[TableSnapshot, ...] = ()
    refs: Mapping[str, TableReference] = {}

    @property
    def schema(self) -> TableSchema:
        """The schema whose id is `current-schema-id`."""
        return next(each for each in self.schemas if each.schema_id == self.current_schema_id)

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec whose id is `default-spec-id`."""
        return next((each for each in self.partition_specs if each.spec_id == self.default_spec_id), PartitionSpec())

    @property
    def order(self) -> TableSortOrder:
        """The sort order whose id is `default-sort-order-id`."""
        return next(
            (each for each in self.sort_orders if each.order_id == self.default_sort_order_id), TableSortOrder()
        )

    def head(self, ref: str = MAIN) -> int | None:
        """Return the newest snapshot's id of a branch; None if the branch does not exist."""
        reference = self.refs.get(ref)
        return None if reference is None else reference.snapshot_id

    def snapshot(self, number: int | None) -> TableSnapshot | None:
        """Return a snapshot by its id; None if it has expired or does not exist."""
        return next((each for each in self.snapshots if each.snapshot_id == number), None)

    def ancestors(self, number: int | None) -> Iterator[TableSnapshot]:
        """Yield a snapshot and its ancestors, newest first, up to the first expired one, each of them once."""
        snapshots_by_id = {each.snapshot_id: each for each in self.snapshots}
        snapshot = snapshots_by_id.pop(number, None) if number is not None else None
        while snapshot is not None:
            yield snapshot
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else snapshots_by_id.pop(parent, None)


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as it was when it was loaded: its metadata, and in a classic session the JVM's object, which saves
    requests of the server that another load would need.
    """

    metadata: TableMetadata
    java: Java | None = None
    """An `org.apache.iceberg.Table`."""

    def columns(self, spark: SparkSession, table: Parts) -> StructType:
        """Return the table's columns in Spark's types. `table` is its path."""
        if self.java is None:
            return spark.table(engine.render_spark(table)).schema
        converter = java_class(spark._jvm, "org.apache.iceberg.spark.SparkSchemaUtil")  # noqa: SLF001
        converted = converter.convert(self.java.schema())
        return StructType.fromJson(json.loads(converted.json()))


def load_table(spark: SparkSession, table: Parts) -> LoadedTable | None:
    """Load `table` (catalog first); None if it does not exist or the caller may not see it."""
    name = engine.render_spark(table)
    try:
        if is_classic(spark):
            return loaded_from(spark, _load_in_machine(spark, name, catalog=table[0]))
        return LoadedTable(_decode(_from_file(spark, name)))
    except AnalysisException as error:
        if error.getCondition() in _ABSENT:
            return None
        raise


def loaded_from(spark: SparkSession, java: Java) -> LoadedTable:
    """Return the state that the JVM's `org.apache.iceberg.Table` has, without a request."""
    writer = java_class(spark._jvm, "org.apache.iceberg.TableMetadataParser")  # noqa: SLF001
    text: str = writer.toJson(java.operations().current())
    return LoadedTable(_decode(text.encode()), java)


def metadata_of(spark: SparkSession, table: Parts) -> TableMetadata | None:
    """Return the metadata of `table` (catalog first); None if it does not exist or the caller may not see it."""
    loaded = load_table(spark, table)
    return None if loaded is None else loaded.metadata


def require_metadata(spark: SparkSession, table: Parts) -> TableMetadata:
    """Return the metadata of `table`. Raises NotFound if it does not exist or the caller may not see it."""
    return require_table(spark, table).metadata


def require_table(spark: SparkSession, table: Parts) -> LoadedTable:
    """Load `table` (catalog first). Raises NotFound if it does not exist or the caller may not see it."""
    loaded = load_table(spark, table)
    if loaded is None:
        raise NotFound(
            f"Table {engine.render_spark(table)} does not exist (any more), or you may not see it. If it was dropped or"
            " renamed during the run: run the pipeline again.",
            kind="table",
        )
    return loaded


def is_classic(spark: SparkSession) -> bool:
    """Return whether Spark runs in a JVM of this process. False with Spark Connect."""
    try:
        return spark._jsparkSession is not None  # noqa: SLF001 - the way to Spark's own parser and plans
    except AttributeError:
        return False


def _decode(text: bytes) -> TableMetadata:
    return msgspec.json.decode(text, type=TableMetadata)


def _load_in_machine(spark: SparkSession, name: str, *, catalog: str) -> Java:
    # Load the catalog first, so that an unreachable one raises its own error. Iceberg's helper would take its name for
    # a namespace.
    spark._jsparkSession.sessionState().catalogManager().catalog(catalog)  # noqa: SLF001
    loader = java_class(spark._jvm, "org.apache.iceberg.spark.Spark3Util")  # noqa: SLF001
    table: Java = loader.loadIcebergTable(spark._jsparkSession, name)  # noqa: SLF001
    if spark.conf.get(f"spark.sql.catalog.{catalog}.cache-enabled", "true") != "false":
        table.refresh()  # without the catalog's cache the table has just been loaded
    return table


def _from_file(spark: SparkSession, name: str) -> bytes:
    log = spark.sql(
        f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp DESC, latest_sequence_number DESC"
    )
    newest = log.limit(1).collect()[0]["file"]
    text: str = spark.read.text(newest, wholetext=True).collect()[0][0]
    return text.encode()
