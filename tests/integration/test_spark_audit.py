# SPDX-License-Identifier: Apache-2.0
"""Exported audit files read by Spark: the records of each day, equal to the server's answers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.formats.audit_files import DAY_MS
from tests.integration.live import serving

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def written(client: Client, task: int) -> str:
    """Wait until a task is done; returns its result."""
    while (current_task := client.tasks.load(task)).state == "waiting":
        pass
    assert current_task.state == "done", current_task
    return str(current_task.result)


def test_spark_reads_the_audit(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads the audit lines of yesterday, written by a task of the server; they equal the records of the admin
    API, including a refusal.
    """
    data = tmp_path / "data"
    with serving(data) as server, Client(server.uri, token=server.token) as client:
        client.namespaces.create("main.told")
        client.audit.read(limit=1)
        with closing(sqlite3.connect(data / "limnos.db", timeout=30)) as connection, connection:
            connection.execute(f"UPDATE audit SET at = at - {DAY_MS}")
        audit_lines = client.audit.read(server=True, after=0, limit=1000).lines
        place = f"file://{data}/warehouse/audit"

        result = written(client, client.audit.export(location=place))

    rows = spark.read.parquet(f"{place}").where("day < current_date()").collect()
    own = {
        (line.id, line.user, line.change, line.object.path)
        for line in audit_lines
        if line.object and line.at[:10] == str(rows[0].day)
    }
    assert "in 1 files" in result
    assert {(row.id, row.user, row.change, row.path) for row in rows if row.kind} == own
    assert ("admin", "create", "main.told") in {(row.user, row.change, row.path) for row in rows}
