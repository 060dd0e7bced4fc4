# SPDX-License-Identifier: Apache-2.0
"""Tables of datasets in Spark, at the snapshot that a statement reads.

Must not know plans. Names are passed to Spark as quoted parts, never as a user's text. Each table that the catalog
returns is checked, so that a name of one of Iceberg's metadata tables is rejected, and a property that names a class.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from limnos.rooms.sqlpp.engine.iceberg_library import library_of
from limnos.rooms.sqlpp.engine.names import quote_name
from limnos.rooms.sqlpp.language.errors import SnapshotMoved, SqlppError, compilation
from limnos.rooms.sqlpp.language.jobs import form_of as made_form
from limnos.rooms.sqlpp.language.stored import OPEN, StorageForm, columns, form_of, has_open, open_paths
from limnos.spark.allowed_classes import check_table

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

    from limnos.rooms.sqlpp.language.jobs import DatasetRef

NO_DATASET = 1050
_METADATA = ".BaseMetadataTable"


class DatasetTable(NamedTuple):
    """A dataset's table at the snapshot that a statement reads; `snapshot` is None before the first commit."""

    quoted: str
    form: StorageForm
    snapshot: int | None
    loaded: JavaObject
    """The table as an object of Iceberg's Java library."""
    ref: DatasetRef

    def require_current(self) -> None:
        """Check that the table's current snapshot is still the pinned one, before Spark reads the current one. Raises
        SnapshotMoved.
        """
        require_pinned(self.loaded, self.ref)

    def frame(self, spark: SparkSession) -> DataFrame | None:
        """Return the table's rows as a DataFrame; None before the first commit."""
        if self.snapshot is None:
            return None
        frame = spark.read.option("versionAsOf", str(self.snapshot)).table(self.quoted)
        return frame.selectExpr(*self.columns) if self.columns else frame

    @property
    def source(self) -> str:
        """The FROM item that reads the table. Without a snapshot it has no rows, even after a concurrent commit."""
        if self.snapshot is None:
            return f"(SELECT {', '.join(self.columns) or '*'} FROM {self.quoted} WHERE FALSE)"
        rows = f"{self.quoted} VERSION AS OF {self.snapshot}"
        return f"(SELECT {', '.join(self.columns)} FROM {rows})" if self.columns else rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The SELECT list if the open part is stored as VARIANT, which the list converts to JSON text.

        Empty if all columns are read as stored.
        """
        if not (self.form.variant and has_open(self.form.type)):
            return ()
        return *(
            quote_name(field.name) for field in columns(self.form.type)
        ), f"to_json({quote_name(OPEN)}) AS {quote_name(OPEN)}"


def table_of(spark: SparkSession, ref: DatasetRef) -> DatasetTable:
    """Load a dataset's table at the snapshot whose files the server has checked. Raises as `load_iceberg_table`,
    SnapshotMoved.
    """
    table = load_iceberg_table(spark, ref)
    snapshot = pinned_snapshot(table, ref)
    if ref.type:
        form = made_form(ref)
        _refuse_unreadable_columns(table, form, ref=ref)
        return DatasetTable(quoted=quote_name(*ref.path), form=form, snapshot=snapshot, loaded=table, ref=ref)
    form = form_of(json.loads(_schema_json(spark, table, snapshot=snapshot)))
    return DatasetTable(quoted=quote_name(*ref.path), form=form, snapshot=snapshot, loaded=table, ref=ref)


def load_iceberg_table(spark: SparkSession, ref: DatasetRef) -> JavaObject:
    """Load the table as an object of Iceberg's Java library. Raises SqlppError for a metadata table, UnsafeTable for a
    property that names a class, RuntimeError if Spark has been stopped, and Spark's errors, such as for a table that
    was dropped.
    """
    library = library_of(spark)
    manager = spark._jsparkSession.sessionState().catalogManager()  # noqa: SLF001 - PySpark has no other way to a catalog's own tables
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    if gateway is None:
        raise RuntimeError("Spark has been stopped")
    parts = gateway.new_array(library.text, len(ref.path) - 2)
    for at, part in enumerate(ref.path[1:-1]):
        parts[at] = part
    java_table = manager.catalog(ref.path[0]).loadTable(library.identifier(parts, ref.path[-1]))
    table = java_table.table()
    if _is_metadata(table):
        raise SqlppError(NO_DATASET, f"Cannot find dataset with name {ref.name} in dataverse {'.'.join(ref.dataverse)}")
    check_table(table)
    return table


def pinned_snapshot(table: JavaObject, ref: DatasetRef) -> int | None:
    """Return the id of the snapshot that the server has checked; None for a table without one.

    Raises SnapshotMoved if the table has no such snapshot, or if it has another manifest list.
    """
    if ref.pin is None:
        raise SqlppError(NO_DATASET, f"The server has not checked the files of dataset {ref.name}")
    if ref.pin.snapshot_id is None:
        return None
    snapshot = table.snapshot(ref.pin.snapshot_id)
    listed = None if snapshot is None else snapshot.manifestListLocation()
    if snapshot is None or (None if listed is None else str(listed)) != ref.pin.manifest_list:
        raise SnapshotMoved
    return ref.pin.snapshot_id


def require_pinned(table: JavaObject, ref: DatasetRef) -> None:
    """Check that the current snapshot of a table is the one that the server has checked, before work that reads the
    current one. Raises SnapshotMoved.
    """
    current = table.currentSnapshot()
    if (None if current is None else int(current.snapshotId())) != pinned_snapshot(table, ref):
        raise SnapshotMoved


def _refuse_unreadable_columns(table: JavaObject, form: StorageForm, *, ref: DatasetRef) -> None:
    """Check that fields which are stored in the open part have one, and no column. Raises SqlppError.

    Former releases made columns for them, which Iceberg's Java library does not read.
    """
    for path in open_paths(form.type):
        above = path.rpartition(".")[0]
        column, open_part = (table.schema().findField(name) for name in (path, f"{above}.{OPEN}".lstrip(".")))
        if column is not None or open_part is None:
            raise compilation(
                f"Dataset {ref.name} was made by an older release with a column for the field {path}, and a column of "
                "this name cannot be read. Make a new dataset with the same type, which stores the field in another "
                "way, and load the objects again. To read the old ones, rename the column with an Iceberg client "
                "(ALTER TABLE … RENAME COLUMN)"
            )


def _is_metadata(table: JavaObject) -> bool:
    kind = table.getClass()
    while kind is not None:
        if str(kind.getName()).endswith(_METADATA):
            return True
        kind = kind.getSuperclass()
    return False


def _schema_json(spark: SparkSession, table: JavaObject, *, snapshot: int | None) -> str:
    """Return the schema of the snapshot, which may be older than the table's current one."""
    iceberg = library_of(spark)
    schema = table.schema() if snapshot is None else iceberg.schema_at(table, snapshot)
    return str(iceberg.schema_text(schema))
