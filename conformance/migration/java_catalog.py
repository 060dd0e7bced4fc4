# SPDX-License-Identifier: Apache-2.0
"""Moves tables and a view in that Spark makes in a JDBC catalog of Iceberg's Java library, over SQLite.

Job: a directory in; what went wrong out. The catalog has version V1 of the schema, which has views. After the cut-over
Spark must fail to write by the old name, while the server has all rows.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from conformance.kit.jars import cache_directory, class_path
from conformance.kit.reference import LOCK
from examples.demo.server import running_server
from limnos.spark.jars import cache_directory as spark_cache
from limnos.spark.jars import ensure_runtime, installed_pyspark
from limnos.spark.java import find_java

LIMNOS: Final = (sys.executable, "-c", "import sys; from limnos.cli.main import main; sys.exit(main())")
OLD: Final = "spark.sql.catalog.old"


class CommandResult(NamedTuple):
    """What the command printed: its exit code, the counts, its other lines, and errors."""

    code: int
    counts: dict[str, int]
    lines: list[dict[str, Any]]
    errors: str


@contextmanager
def spark_over_jdbc(folder: Path) -> Iterator[SparkSession]:
    """Start Spark with the catalog `old`, a JDBC catalog in `names.db` of a folder."""
    driver = next(each for each in class_path(cache_directory(), LOCK) if "sqlite-jdbc" in each.name)
    runtime = ensure_runtime(installed_pyspark(), cache=spark_cache())
    os.environ["JAVA_HOME"] = str(find_java(cache=spark_cache()).home)
    settings = {
        "spark.jars": f"{runtime},{driver}",
        "spark.driver.extraClassPath": f"{runtime}:{driver}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.ui.enabled": "false",
        OLD: "org.apache.iceberg.spark.SparkCatalog",
        f"{OLD}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{OLD}.uri": f"jdbc:sqlite:file:{folder}/names.db",
        f"{OLD}.jdbc.schema-version": "V1",
        f"{OLD}.clients": "1",
        f"{OLD}.warehouse": f"file://{folder}/warehouse",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def fill(spark: SparkSession) -> None:
    """Create namespaces, tables and a view."""
    for statement in (
        "CREATE NAMESPACE old.shop WITH DBPROPERTIES ('team' = 'sales')",
        "CREATE NAMESPACE old.shop.eu",
        "CREATE TABLE old.shop.orders (id BIGINT, day DATE) USING iceberg PARTITIONED BY (day)",
        "INSERT INTO old.shop.orders VALUES (1, DATE '2026-01-01'), (2, DATE '2026-01-02')",
        "CREATE TABLE old.shop.eu.returns (id BIGINT) USING iceberg TBLPROPERTIES ('owner.team' = 'x')",
        "CREATE VIEW old.shop.recent AS SELECT id FROM old.shop.orders",
    ):
        spark.sql(statement)


def run_java_catalog(folder: Path) -> list[str]:
    """Fill the catalog, move it in with every step, and return what went wrong."""
    root = f"file://{folder}/warehouse"
    with (
        spark_over_jdbc(folder) as spark,
        running_server(folder / "limnos", log=folder / "limnos.log", flags=("--allow-root", root)) as target,
    ):
        fill(spark)
        token = (folder / "limnos" / "admin.token").read_text().strip()
        where = ("--uri", target.uri, "--token", token)

        def run(*flags: str) -> CommandResult:
            uri = f"jdbc:sqlite:file:{folder}/names.db"
            words = [*LIMNOS, "migrate", "from", "jdbc-catalog", uri, "--to", "main", *flags, *where]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            *lines, last = [json.loads(line) for line in done.stdout.splitlines()] or [{}]
            print(f"jdbc-catalog {' '.join(flags) or 'run'}: {last.get('counts', {})}")
            return CommandResult(done.returncode, last.get("counts", {}), lines, done.stderr)

        plan = run("--plan")
        command = next(line for line in plan.errors.splitlines() if line.startswith("  limnos set "))
        subprocess.run([*LIMNOS, *shlex.split(command)[1:], *where], check=True, stdout=subprocess.DEVNULL)
        first, again = run(), run()
        spark.sql("INSERT INTO old.shop.orders VALUES (3, DATE '2026-01-03')")
        later, check, cut_over = run(), run("--check"), run("--cut-over", "rename")
        is_stopped = _fails(spark, "INSERT INTO old.shop.orders VALUES (4, DATE '2026-01-04')")
        new = load_catalog("main", type="rest", uri=f"{target.uri}/iceberg", warehouse="main", token=token)
        rows = new.load_table("shop.orders").scan().to_arrow().num_rows
        views = new.list_views("shop")
        properties = new.load_namespace_properties("shop")
    expectations = {
        "the plan": plan.counts.get("new") == 2 and plan.counts.get("view") == 1,
        "the run": first.code == 0 and first.counts.get("new") == 2 and first.counts.get("new-view") == 1,
        "the second run": again.code == 0 and again.counts.get("same") == 3,
        "the run after a commit": later.counts.get("changed") == 1,
        "the check": check.code == 0 and check.counts.get("same") == 2,
        "the cut-over": cut_over.code == 0 and cut_over.counts.get("cut-over") == 2,
        "Spark wrote after the cut-over": is_stopped,
        "rows": rows == 3,
        "the view": views == [("shop", "recent")],
        "properties": properties.get("team") == "sales",
    }
    return [f"jdbc-catalog: {what}" for what, holds in expectations.items() if not holds]


def _fails(spark: SparkSession, statement: str) -> bool:
    try:
        spark.sql(statement)
    except Exception as error:  # of Spark or Iceberg, by its class
        print(f"Spark after the cut-over: {type(error).__name__}")
        return True
    return False
