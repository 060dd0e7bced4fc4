# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.duckdb.data URI TOKEN`: makes the tables of DuckDB's suite by Spark, in the working directory.

Job: run the suite's own statements in a session of ours, and print the tables that could not be made. May import the
suite's package `scripts`, which lies before ours on the path, and PySpark.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import SimpleNamespace

from pyspark.sql import SparkSession

import duckdb
from conformance.kit.jars import cache_directory
from limnos.spark.jars import ensure_runtime
from limnos.spark.java import find_java

ENVIRONMENT = "LIMNOS_DUCKDB_TPCH"
"""The variable with the path of DuckDB's extension tpch, which makes rows of some tables."""
LARGE = frozenset({"lineitem_sf1_deletes"})
"""Tables that are not made: six million rows."""


def main(uri: str, token: str) -> None:
    """Make the tables. A table whose statements fail is left as it is then."""
    connect = duckdb.connect

    def with_tpch(*arguments: object, **options: object) -> duckdb.DuckDBPyConnection:
        connection = connect(*arguments, **options)
        connection.load_extension(os.environ[ENVIRONMENT])
        return connection

    duckdb.connect = with_tpch
    spark = _session(uri, token)
    spark.sql("USE main")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS default")
    connection = SimpleNamespace(con=spark, name="spark-rest")
    connections = importlib.import_module("scripts.data_generators.connections.base")
    connections.IcebergConnection.get_class = lambda _name: lambda **_: connection
    tests = importlib.import_module("scripts.data_generators.tests").IcebergTest
    tests.close_connection = lambda *_: None
    for test in tests.registry:
        name = test.__module__.rpartition(".")[2]
        if name not in LARGE:
            try:
                test().generate("spark-rest")
            except Exception as error:
                print(f"{name}: {' '.join(str(error).split())[:300]}", flush=True)
    spark.stop()


def _session(uri: str, token: str) -> SparkSession:
    """Return a session with the catalog `main`; without a token that of the reference server."""
    os.environ["JAVA_HOME"] = str(find_java(cache=cache_directory()).home)
    settings = {
        "spark.jars": str(ensure_runtime()),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.main": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.main.type": "rest",
        "spark.sql.catalog.main.uri": uri,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
    }
    if token:
        settings |= {"spark.sql.catalog.main.token": token, "spark.sql.catalog.main.warehouse": "main"}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    main(*sys.argv[1:])
