# SPDX-License-Identifier: Apache-2.0
"""Iceberg's Java library in Spark's JVM, reached through PySpark's gateway.

Must not know statements. Classes and functions are looked up once for each JVM, because each step of a dotted name is a
call to the JVM.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark.sql import SparkSession


class IcebergLibrary:
    """References to functions and classes of Iceberg's Java library in one JVM."""

    def __init__(self, machine: JVMView) -> None:
        iceberg = machine.org.apache.iceberg
        self.text = machine.java.lang.String
        self.current_thread = machine.java.lang.Thread.currentThread
        self.identifier = machine.org.apache.spark.sql.connector.catalog.Identifier.of
        self.make_active = machine.org.apache.spark.sql.SparkSession.setActiveSession
        self.read = iceberg.data.IcebergGenerics.read
        self.wrapper = iceberg.data.InternalRecordWrapper
        self.write = iceberg.InternalData.write
        self.writer_factory = iceberg.data.GenericFileWriterFactory.Builder
        self.position_delete = iceberg.deletes.PositionDelete.create
        self.as_encrypted = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput
        self.format_version = iceberg.TableUtil.formatVersion
        self.file_metrics = iceberg.parquet.ParquetUtil.fileMetrics
        self.metrics_of = iceberg.MetricsConfig.forTable
        self.strings = machine.java.util.ArrayList
        self.parquet: JavaObject = iceberg.FileFormat.PARQUET
        self.data_file = iceberg.DataFiles.builder
        self.expression = iceberg.expressions.ExpressionParser.fromJson
        self.task_text = iceberg.ScanTaskParser.toJson
        self.schema_text = iceberg.SchemaParser.toJson
        self.schema_at = iceberg.util.SnapshotUtil.schemaFor
        self.value_text = iceberg.SingleValueParser.toJson
        self.value = iceberg.SingleValueParser.fromJson


def library_of(spark: SparkSession) -> IcebergLibrary:
    """Return the library in the JVM of a session. Raises RuntimeError if Spark has been stopped."""
    machine = spark._jvm  # noqa: SLF001 - PySpark has no other way to it
    if machine is None:
        raise RuntimeError("Spark has been stopped")
    return _library(machine)


@lru_cache(1)
def _library(machine: JVMView) -> IcebergLibrary:
    return IcebergLibrary(machine)
