# SPDX-License-Identifier: Apache-2.0
"""Maintenance with real Spark: an executor leases operations from a server and rewrites tables of every kind of
writer.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from tests.integration.live import LIMNOS, LiveServer

pytestmark = [
    pytest.mark.room("maintenance"),
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SECRETS = ("lim_",)


@pytest.fixture
def admin(server: LiveServer) -> Iterator[Client]:
    """A client with the administrator's token."""
    with Client(server.uri, token=server.token) as client:
        yield client


def work(server: LiveServer, *flags: str) -> dict[str, int]:
    """Run an executor until it is idle. Returns the count of operations by outcome."""
    command = [*LIMNOS, "maintenance", "work", "--uri", server.uri, "--idle", "1", "--output", "json", *flags]
    environment = {**os.environ, "LIMNOS_TOKEN": server.token}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert not [each for each in SECRETS if each in done.stdout + done.stderr]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def make_files(spark: SparkSession, name: str, count: int, *, version: int = 2) -> None:
    """Create a table of the given number of small files."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name.rpartition('.')[0]}")
    properties = f"'format-version'='{version}', 'write.delete.mode'='merge-on-read'"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, word STRING) USING iceberg TBLPROPERTIES ({properties})")
    for number in range(count):
        spark.createDataFrame([(number, "a"), (number + 1000, "b")], "id BIGINT, word STRING").coalesce(1).writeTo(
            name
        ).append()


def files(spark: SparkSession, name: str, content: str = "= 0") -> int:
    """Count the files of the current snapshot, by default the data files."""
    (row,) = spark.sql(f"SELECT count(*) FROM {name}.files WHERE content {content}").collect()
    return int(row[0])


def sum_of(spark: SparkSession, name: str) -> list[Any]:
    """The number and the sum of a table's rows."""
    return [tuple(row) for row in spark.sql(f"SELECT count(*), sum(id) FROM {name}").collect()]


def ended(admin: Client, operations: Sequence[int]) -> list[tuple[str, str | None]]:
    """Return state and result of operations."""
    rows = {each.id: each for each in admin.maintenance.status("main").operations}
    return [(rows[each].state, rows[each].result) for each in operations]


def test_executor_runs_every_kind_of_operation(server: LiveServer, spark: SparkSession, admin: Client) -> None:
    """One executor compacts small files, rewrites manifests and computes statistics; the rows are unchanged, and the
    status reports the operations.
    """
    name = "main.care.small"
    make_files(spark, name, 7)
    before = sum_of(spark, name)
    operations = [admin.maintenance.run(name, operation=each) for each in ("manifests", "compact", "statistics")]
    done = work(server)

    assert (done, ended(admin, operations)) == (
        {"done": 3},
        [("done", "7 manifests became 1"), ("done", "7 files became 1"), ("done", "statistics of all columns")],
    )
    assert (files(spark, name), sum_of(spark, name)) == (1, before)
    last = spark.sql(f"SELECT operation, summary['limnos.operation'] FROM {name}.snapshots ORDER BY committed_at DESC")
    assert tuple(last.collect()[0]) == ("replace", str(operations[1]))


@pytest.mark.parametrize("version", [2, 3])
def test_rewrite_removes_delete_files_and_keeps_rows_deleted(
    server: LiveServer, spark: SparkSession, admin: Client, version: int
) -> None:
    """Rows that delete files deleted remain deleted, and the delete files are removed."""
    name = f"main.care.deletes_v{version}"
    make_files(spark, name, 6, version=version)
    spark.sql(f"DELETE FROM {name} WHERE word = 'b'")
    before, deletes = sum_of(spark, name), files(spark, name, "> 0")
    operation = admin.maintenance.run(name, operation="deletes")
    work(server)

    assert deletes > 0
    assert ended(admin, [operation])[0][0] == "done", ended(admin, [operation])
    assert (sum_of(spark, name), files(spark, name, "> 0")) == (before, 0)


def test_file_groups_are_rewritten_in_separate_commits(server: LiveServer, spark: SparkSession, admin: Client) -> None:
    """Each group of files is rewritten in its own commit, under one lease. Delete files of rewritten data files are
    removed, although older data files of the target size remain.
    """
    name = "main.care.parts"
    make_files(spark, name, 8)
    (size,) = spark.sql(f"SELECT max(file_size_in_bytes) FROM {name}.files").collect()[0]
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.target-file-size-bytes'='{size}')")
    spark.sql(f"DELETE FROM {name} WHERE id % 1000 < 6")
    before, deletes = sum_of(spark, name), files(spark, name, "> 0")
    groups = {"partial-progress.enabled": "true", "max-file-group-input-files": "2"}
    admin.policies.create("parts", policy_type="system_iceberg_compaction", content={"rewriteOptions": groups})
    admin.policies.change(name, kind="table", adds=["parts"])
    operation = admin.maintenance.run(name, operation="deletes")
    work(server)

    assert deletes > 0
    assert ended(admin, [operation])[0][0] == "done", ended(admin, [operation])
    assert (sum_of(spark, name), files(spark, name), files(spark, name, "> 0")) == (before, 2, 0)
    mark = f"summary['limnos.operation'] = '{operation}'"
    assert spark.sql(f"SELECT * FROM {name}.snapshots WHERE operation = 'replace' AND {mark}").count() > 2


def test_executor_without_work_does_not_start_spark(server: LiveServer) -> None:
    """An executor without work does not start Spark, with any master."""
    assert work(server, "--master", "spark://127.0.0.1:1") == {"done": 0}


@pytest.mark.parametrize("column, mode", [("at", "copy-on-write"), ("day", "merge-on-read"), ("wall", "copy-on-write")])
def test_rows_older_than_the_policy_limit_are_deleted(
    server: LiveServer, spark: SparkSession, admin: Client, column: str, mode: str
) -> None:
    """Rows older than a policy's limit are deleted by their date or timestamp, once; rows with NULL there remain."""
    name = f"main.care.old_{column}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS main.care")
    layout = "PARTITIONED BY (days(at))" if column == "at" else ""
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, at TIMESTAMP, day DATE, wall TIMESTAMP_NTZ) USING iceberg {layout}"
        f" TBLPROPERTIES ('write.delete.mode'='{mode}')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, at, cast(at AS DATE), cast(at AS TIMESTAMP_NTZ) FROM"
        " (SELECT id, current_timestamp() - make_interval(0, 0, 0, cast(id * 3 AS INT)) AS at FROM range(0, 10))"
    )
    spark.sql(f"INSERT INTO {name} VALUES (100, NULL, NULL, NULL)")
    content = {"column": column, "olderThanDays": 10}
    admin.policies.create(f"keep_{column}", policy_type="limnos-row-retention", content=content)
    admin.policies.change(name, kind="table", adds=[f"keep_{column}"])
    first = admin.maintenance.run(name, operation="retention")
    work(server)
    snapshots = spark.sql(f"SELECT * FROM {name}.snapshots").count()
    second = admin.maintenance.run(name, operation="retention")
    work(server)

    results = [text for _, text in ended(admin, [first, second])]
    assert [state for state, _ in ended(admin, [first, second])] == ["done", "done"], results
    assert str(results[0]).startswith("deleted 6 rows with ")
    assert str(results[1]).startswith("no rows have ")
    assert [row[0] for row in spark.sql(f"SELECT id FROM {name} ORDER BY id").collect()] == [0, 1, 2, 3, 100]
    assert spark.sql(f"SELECT * FROM {name}.snapshots").count() == snapshots
