# SPDX-License-Identifier: Apache-2.0
"""Spark's connector for Kafka on the class path of a Java machine that already runs.

Spark looks data sources up in the class loader of the calling thread, which `ADD JAR` does not change. So the archives
are added to the loader that all threads share, and for executors by `ADD JAR`, in each session, because sessions have
class paths of their own. Steps that begin at the same time wait for each other. Must not know topics.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from limnos.model.errors import UnsupportedOperation
from limnos.pipeline.engine.sources.databases import add_archive
from limnos.spark.jars import ensure, installed_pyspark, kafka_archives

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCK: Final = threading.Lock()
_OWN: Final[set[Path]] = set()
"""The archives that this process has added, which each session needs."""
_SHARED = "org.apache.spark.util.MutableURLClassLoader"
_CONNECTOR = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_AVRO = "org.apache.spark.sql.avro.AvroDataToCatalyst"


def add_connector(spark: SparkSession, *, avro: bool) -> None:
    """Add the connector, with `avro` also Spark's functions for Avro, to a running Spark, unless it was started with
    them.

    Raises UnsupportedOperation if this Spark takes no further archives, ServiceUnavailable if they cannot be fetched.
    """
    with _LOCK:
        _OWN.update(_add_to_loader(spark, avro=avro))
        for path in sorted(_OWN):
            add_archive(spark, path)


def _add_to_loader(spark: SparkSession, *, avro: bool) -> list[Path]:
    """Add the archives to the loader that all threads share, unless it has them. Returns those that were added."""
    machine: Any = spark._jvm  # noqa: SLF001 - PySpark has no call for class loaders
    loader = machine.java.lang.Thread.currentThread().getContextClassLoader()
    if all(_has(loader, each) for each in (_CONNECTOR, *([_AVRO] if avro else []))):
        return []
    paths = [ensure(artifact) for artifact in kafka_archives(installed_pyspark(), avro=avro)]
    while loader is not None and loader.getClass().getName() != _SHARED:
        loader = loader.getParent()
    if loader is None:
        raise UnsupportedOperation(
            "this Spark takes no further archives: start it with spark-sql-kafka-0-10_2.13 and spark-avro_2.13 of its"
            " own version (`spark.jars.packages`)."
        )
    for path in paths:
        loader.addURL(machine.java.io.File(str(path)).toURI().toURL())
    return paths


def _has(loader: Any, name: str) -> bool:  # noqa: ANN401 - a Java object
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None
