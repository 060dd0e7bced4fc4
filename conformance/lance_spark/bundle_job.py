# SPDX-License-Identifier: Apache-2.0
"""A job with Lance's own connector for Spark, run by a PySpark of the connector's time: `bundle_job.py CATALOG_CLASS
URI TOKEN EXTRA_JSON FOLDER`.

May import PySpark only: it knows nothing of this product but an address. The outcome of each step is printed as a line
of JSON; after a failed step the next ones run.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = (
    "CREATE NAMESPACE old.{s}",
    "CREATE NAMESPACE old.{s}.deep",
    "SHOW NAMESPACES IN old",
    "SHOW NAMESPACES IN old.{s}",
)
TABLES = ("old.{s}.t", "old.{s}.deep.t")


def opened(catalog: str, uri: str, token: str, extra: dict[str, str]) -> SparkSession:
    """Return a session whose catalog `old` is the server's Lance catalog."""
    settings = {
        "spark.sql.catalog.old": catalog,
        "spark.sql.catalog.old.impl": "rest",
        "spark.sql.catalog.old.uri": f"{uri}/lance",
        "spark.sql.catalog.old.headers.Authorization": f"Bearer {token}",
        "spark.sql.catalog.old.header.Authorization": f"Bearer {token}",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        **extra,
    }
    builder = SparkSession.builder.master("local[2]").appName("bundle")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def run_step(step: str, do: Callable[[], object]) -> None:
    """Run a step, and print its outcome."""
    try:
        outcome: dict[str, object] = {"step": step, "found": do()}
    except Exception as error:
        outcome = {"step": step, "error": " ".join(str(error).split())[:600]}
    print("STEP " + json.dumps(outcome, default=str), flush=True)


def main(catalog: str, uri: str, token: str, extra: str, space: str) -> None:
    """Run each step."""
    spark = opened(catalog, uri, token, json.loads(extra))

    def rows(text: str) -> list[list[object]]:
        return [list(row) for row in spark.sql(text.format(s=space)).collect()]

    for step in STEPS:
        run_step(step, lambda step=step: rows(step))
    for table in TABLES:
        run_step(f"CREATE TABLE {table}", lambda table=table: rows(f"CREATE TABLE {table} (id BIGINT, name STRING)"))
        run_step(
            f"INSERT INTO {table}", lambda table=table: rows(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        )
        run_step(
            f"SELECT FROM {table}", lambda table=table: rows(f"SELECT id, name FROM {table} WHERE id > 1 ORDER BY id")
        )
    run_step("SHOW TABLES IN old.{s}", lambda: [row[1] for row in rows("SHOW TABLES IN old.{s}")])
    run_step("DROP TABLE old.{s}.deep.t", lambda: rows("DROP TABLE old.{s}.deep.t"))
    run_step("SHOW TABLES IN old.{s}.deep", lambda: rows("SHOW TABLES IN old.{s}.deep"))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
