"""Iceberg's own library, and what leads to it, in Spark's Java machine, as PySpark's gateway has it.

May import PySpark's gateway. Must not know statements. What is used of it is looked up once for each machine, since each step of a name is a question to that machine.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark.sql import SparkSession


class IcebergLibrary:
    """Functions and classes of one machine."""

    def __init__(self, machine: JVMView) -> None:
        iceberg = machine.org.apache.iceberg
        self.text = machine.java.lang.String
        self.identifier = machine.org.apache.spark.sql.connector.catalog.Identifier.of
        self.make_active = machine.org.apache.spark.sql.SparkSession.setActiveSession
        self.read = iceberg.data.IcebergGenerics.read
        self.wrapper = iceberg.data.InternalRecordWrapper
        self.write = iceberg.InternalData.write
        self.parquet: JavaObject = iceberg.FileFormat.PARQUET
        self.data_file = iceberg.DataFiles.builder
        self.expression = iceberg.expressions.ExpressionParser.fromJson
        self.schema_text = iceberg.SchemaParser.toJson
        self.schema_at = iceberg.util.SnapshotUtil.schemaFor
        self.value_text = iceberg.SingleValueParser.toJson
        self.value = iceberg.SingleValueParser.fromJson


def library_of(spark: SparkSession) -> IcebergLibrary:
    """The library of the machine that a session is of."""
    machine = spark._jvm  # noqa: SLF001 - PySpark has no other way to it
    if machine is None:
        raise RuntimeError("Spark has been stopped")
    return _library(machine)


@lru_cache(1)
def _library(machine: JVMView) -> IcebergLibrary:
    return IcebergLibrary(machine)
