# SPDX-License-Identifier: Apache-2.0
"""A full disk while Spark writes: nothing is published, the message has the cause, and the run continues when there is
space.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.project import load
from limnos.pipeline.run.events import RunEvent
from limnos.pipeline.run.result import EndReason

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PIPELINE = """
pipeline: full
catalog: main
steps:
  full.small: {sql: SELECT id FROM range(3)}
  full.large: {sql: "SELECT id, sha2(cast(id AS string), 512) AS h FROM range(0, 20000, 1, 1)", after: full.small}
"""
ROOM = 200_000
"""Maximum bytes of a file: metadata fits, the large table's rows do not."""


@contextmanager
def full(spark: SparkSession) -> Iterator[None]:
    """Limit the file size of Spark's Java process during the body, so that writes fail as on a full disk."""
    machine = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    before = resource.prlimit(machine, resource.RLIMIT_FSIZE)
    resource.prlimit(machine, resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        yield
    finally:
        resource.prlimit(machine, resource.RLIMIT_FSIZE, before)


def test_run_with_full_disk_publishes_nothing_and_can_resume(
    spark: SparkSession, admin: Client, tmp_path: Path
) -> None:
    """The step whose write failed is named; no table is visible, and earlier steps are not repeated."""
    admin.namespaces.create("main.full")
    admin.namespaces.create("main.before")
    spark.sql("CREATE TABLE main.before.t AS SELECT 1 AS id")  # the first write unpacks the library of its compression
    file = tmp_path / "full.yaml"
    file.write_text(PIPELINE)
    project, seen = load(file), list[RunEvent]()

    with full(spark):
        failed = project.run(spark, listener=seen.append)
    listed = admin.tables.list("main.full")
    resumed = project.resume(spark, run=failed.run, listener=seen.append)

    assert (failed.state, failed.why, failed.exit_code) == ("failed", EndReason.CODE, 11), failed.message
    assert "full.large" in failed.message
    assert "File too large" in failed.message
    assert "\tat " not in failed.message
    assert f"nothing was published; correct the cause, then 'limnos pipeline resume {failed.run}'" in failed.message
    assert listed == ()
    assert resumed.state == "published", resumed.message
    assert [event.step for event in seen if event.state == "running" and event.tasks is None].count("full.small") == 1
    assert [spark.table(f"main.full.{name}").count() for name in ("small", "large")] == [3, 20000]
