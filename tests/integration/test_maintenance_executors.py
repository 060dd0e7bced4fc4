# SPDX-License-Identifier: Apache-2.0
"""Executors of maintenance: on a standalone cluster, over Spark Connect, on a machine that fails, and started by the
server.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest
from pyspark.sql import SparkSession

from limnos.app.node_builder import DATABASE_FILE
from limnos.client import Client
from tests.integration.live import LiveServer, serving
from tests.integration.maintenance_executors import WITHIN_S, TokenWatch, operation_of, wait_for, working
from tests.integration.test_maintenance_spark import ended, files, make_files, sum_of
from tests.spark.cluster import cluster, command_line, connect_server, free_port

pytestmark = [
    pytest.mark.room("maintenance"),
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROWS = 1_200_000


@pytest.fixture
def admin(server: LiveServer) -> Iterator[Client]:
    """A client with the administrator's token."""
    with Client(server.uri, token=server.token) as client:
        yield client


def make_large(spark: SparkSession, name: str) -> None:
    """Create a table of six files whose rewrite takes some seconds."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name.rpartition('.')[0]}")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, word STRING) USING iceberg")
    rows = spark.range(0, ROWS, 1, 6).selectExpr("id", "sha2(cast(id AS STRING), 256) AS word")
    rows.writeTo(name).append()


def of_application(pages: str, what: str) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON of the application's page; None before the page answers."""
    try:
        with urlopen(f"{pages}/api/v1/applications", timeout=5) as answer:
            application = json.load(answer)[0]["id"]
        with urlopen(f"{pages}/api/v1/applications/{application}/{what}", timeout=5) as answer:
            return json.load(answer)
    except (OSError, IndexError, ValueError):  # not started yet, or an answer in text
        return None


def test_killed_worker_task_is_repeated_by_another_worker(
    server: LiveServer, spark: SparkSession, admin: Client, tmp_path: Path
) -> None:
    """If a worker is killed during a rewrite, the other one repeats the task and the rows are unchanged. No command
    line, page, log or event contains a token.
    """
    name = "main.care.on_cluster"
    make_large(spark, name)
    before = sum_of(spark, name)
    events = tmp_path / "events"
    events.mkdir()
    pages = f"http://127.0.0.1:{free_port()}"
    settings = {
        "spark.cores.max": "2",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "700m",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.port": pages.rpartition(":")[2],
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.log.level": "INFO",
    }
    flags = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    flags += ["--executor-wait", str(WITHIN_S)]
    place = tmp_path / "cluster"
    place.mkdir()
    with cluster(place) as spark_cluster:
        own = [f"{pages}/{each}/" for each in ("environment", "executors", "jobs", "SQL", "SQL/execution/?id=0")]
        with TokenWatch([*spark_cluster.pages, *own]) as watch:
            operation = admin.maintenance.run(name, operation="compact")
            with working(server, "--master", spark_cluster.master, *flags) as executor:
                busy = wait_for(
                    lambda: [each for each in of_application(pages, "executors") or () if each["activeTasks"]]
                )
                killed = spark_cluster.kill_worker(spark_cluster.worker_of(busy[0]["id"]))
                done = executor.ended()
                watch.read(executor.errors, "the executor's log")
        read = watch.read_files(place), watch.read_files(events)

    assert (killed, done) == (1, {"done": 1})
    assert ended(admin, [operation]) == [("done", "6 files became 1")]
    assert (files(spark, name), sum_of(spark, name)) == (1, before)
    assert watch.shown == []
    assert {spark_cluster.pages[0], own[0]} <= watch.looked
    assert "org.apache.spark.executor.CoarseGrainedExecutorBackend" in watch.looked
    assert min(read) > 0


def test_operations_return_to_the_queue_without_spark_workers(
    server: LiveServer, spark: SparkSession, admin: Client, tmp_path: Path
) -> None:
    """Without Spark workers, four operations return to the queue after one wait, and the status names the reason."""
    names = [f"main.care.none{number}" for number in range(4)]
    for name in names:
        make_files(spark, name, 2)
    with cluster(tmp_path, workers=0) as spark_cluster:
        operations = [admin.maintenance.run(name, operation="compact") for name in names]
        flags = ("--conf", "spark.driver.host=127.0.0.1", "--executor-wait", "3")
        with working(server, "--master", spark_cluster.master, *flags) as executor:
            done = executor.ended()
    current_operations = [operation_of(admin, each) for each in operations]
    with working(server) as executor:
        executor.ended()
    for name in names:
        spark.sql(f"DROP TABLE {name}")

    assert set(done) == {"yielded"}
    assert {each.state for each in current_operations} == {"waiting"}
    assert all("allocated no executor within 3 s" in (each.result or "") for each in current_operations), (
        current_operations
    )
    assert executor.errors.count("starts operation") == 0, "they wait five minutes before the next attempt"


def test_operations_run_over_spark_connect(
    server: LiveServer, spark: SparkSession, admin: Client, tmp_path: Path
) -> None:
    """The procedures do the same as the actions: each kind of operation runs, checkpoints are kept, and no page
    contains a token.
    """
    small, deletes = "main.care.by_connect", "main.care.connect_deletes"
    make_files(spark, small, 6)
    make_files(spark, deletes, 6)
    spark.sql(f"DELETE FROM {deletes} WHERE word = 'b'")
    before = sum_of(spark, small), sum_of(spark, deletes)
    kinds = [(small, each) for each in ("manifests", "compact", "statistics")] + [(deletes, "deletes")]
    events = tmp_path / "events"
    events.mkdir()
    spark_settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.catalog.maintained.token": "set on each session",
    }
    with connect_server(tmp_path, config=spark_settings) as connect:
        own = [f"{connect.pages}/{each}/" for each in ("environment", "connect", "SQL", "SQL/execution/?id=1")]
        with TokenWatch(own) as watch:
            operations = [admin.maintenance.run(name, operation=kind) for name, kind in kinds]
            with working(server, "--master", connect.address, "--executor-wait", str(WITHIN_S)) as executor:
                done = executor.ended()
                watch.read(executor.errors, "the executor's log")
            wait_for(lambda: set(own) <= watch.looked)  # the server and its pages outlive the executor
        watch.read_files(events)

    rows = ended(admin, operations)
    assert (done, rows) == (
        {"done": 4},
        [
            ("done", "6 manifests became 1"),
            ("done", "6 files became 1"),
            ("done", "statistics of all columns"),
            ("done", rows[3][1]),
        ],
    ), rows
    assert (sum_of(spark, small), sum_of(spark, deletes)) == before
    assert (files(spark, small), files(spark, deletes, "> 0")) == (1, 0)
    last = spark.sql(f"SELECT summary['limnos.operation'] FROM {small}.snapshots ORDER BY committed_at DESC")
    assert last.collect()[0][0] == str(operations[1])
    assert watch.shown == []


def test_operation_of_a_killed_executor_is_taken_over(server: LiveServer, spark: SparkSession, admin: Client) -> None:
    """If an executor is killed during a rewrite, another one does the operation after the lease has expired, and the
    rows are correct.
    """
    name = "main.care.killed"
    make_large(spark, name)
    before = sum_of(spark, name)
    operation = admin.maintenance.run(name, operation="compact")
    with working(server, "--master", "local[1]") as first:
        wait_for(lambda: operation_of(admin, operation).state == "running")
        wait_for(lambda: len(psutil.Process(first.process.pid).children(recursive=True)) > 0)
        first.kill()
    with working(server, "--master", "local[2]", idle=0) as second:
        assert second.ended() == {"done": 0}, "the lease is still valid"
    with closing(sqlite3.connect(server.data / DATABASE_FILE)) as store, store:  # simulates a minute
        assert store.execute("UPDATE maintenance_lease SET expires_at = 1").rowcount == 1
    with working(server, "--master", "local[2]") as third:
        done = third.ended()

    assert done == {"done": 1}, third.errors
    assert ended(admin, [operation]) == [("done", "6 files became 1")]
    assert (files(spark, name), sum_of(spark, name)) == (1, before)


def test_stopped_executor_loses_its_lease_and_commits_nothing(
    server: LiveServer, spark: SparkSession, admin: Client
) -> None:
    """If an executor is stopped for longer than its lease, another one does the operation. The first one then commits
    nothing and reports the lost lease.
    """
    name = "main.care.stopped"
    make_large(spark, name)
    before = sum_of(spark, name)
    operation = admin.maintenance.run(name, operation="compact")
    with working(server, "--master", "local[1]") as first:
        wait_for(lambda: operation_of(admin, operation).state == "running")
        wait_for(lambda: len(psutil.Process(first.process.pid).children(recursive=True)) > 0)
        with first.stopped():
            with closing(sqlite3.connect(server.data / DATABASE_FILE)) as store, store:  # simulates a minute
                assert store.execute("UPDATE maintenance_lease SET expires_at = 1").rowcount == 1
            with working(server, "--master", "local[1]") as second:
                done = second.ended()
        late = first.ended()

    assert (done, sum(late.values()), "done" in late) == ({"done": 1}, 1, False), first.errors
    assert "lost its lease" in first.errors or "its lease was lost" in first.errors
    assert ended(admin, [operation]) == [("done", "6 files became 1")]
    rewrites = spark.sql(f"SELECT count(*) FROM {name}.snapshots WHERE operation = 'replace'").collect()[0][0]
    assert (rewrites, files(spark, name), sum_of(spark, name)) == (1, 1, before)


def test_server_executor_starts_on_demand_without_exposed_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    """The server's executor starts when an operation waits, has no token in its command line, and ends with the
    server.
    """
    monkeypatch.setenv("LIMNOS__MAINTENANCE__EXECUTOR", "local")
    monkeypatch.setenv("LIMNOS__MAINTENANCE__EXECUTOR_MASTER", "local[2]")
    with serving(tmp_path / "data") as server, Client(server.uri, token=server.token) as admin:
        own = spark.newSession()
        for key, value in {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "rest",
            ".uri": f"{server.uri}/iceberg",
            ".warehouse": "lake/main",
            ".rest.auth.type": "none",
            ".cache-enabled": "false",
            ".header.Authorization": f"Bearer {server.token}",
        }.items():
            own.conf.set(f"spark.sql.catalog.main{key}", value)
        make_files(own, "main.care.own", 6)
        before = sum_of(own, "main.care.own")
        with TokenWatch() as watch:
            operation = admin.maintenance.run("main.care.own", operation="compact")
            row = wait_for(lambda: (current := operation_of(admin, operation)).ended_at and current)
        children = psutil.Process(server.pid).children(recursive=True)
        executors = [
            each
            for each in children
            if each.ppid() == server.pid and "limnos.rooms.maintenance.engine.child" in command_line(each)
        ]
        assert (row.state, row.result) == ("done", "6 files became 1")
        assert (len(executors), files(own, "main.care.own"), sum_of(own, "main.care.own")) == (1, 1, before)
        tokens = admin.tokens.list()
        assert not [each for each in tokens if "maintenance" in (each.name or "")], "an executor has its own tokens"
    _, alive = psutil.wait_procs(children, timeout=30)
    watch.read((tmp_path / "data.0.log").read_text(), "the server's log")
    assert (alive, watch.shown) == ([], [])
