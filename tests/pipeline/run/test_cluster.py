# SPDX-License-Identifier: Apache-2.0
"""A standalone cluster of two workers, one of which is killed: while it has staged rows, and during a whole run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from tests.integration.live import LiveServer
from tests.pipeline.run.shop import ROWS, opened
from tests.pipeline.run.test_kills import Driver
from tests.spark.cluster import SparkCluster, cluster, environment

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DEFAULTS = """
spark.driver.host 127.0.0.1
spark.driver.memory 700m
spark.executor.memory 512m
spark.sql.shuffle.partitions 4
spark.ui.enabled false
spark.eventLog.enabled true
spark.eventLog.compress false
"""
WAITS = """
pipeline: waitsoncluster
catalog: main
steps:
  waitsoncluster.a: {sql: "SELECT count(*) AS n FROM range(0, 1000, 1, 2)"}
"""
STAGED = """
import sys
from limnos.pipeline.engine.staging import stage
from limnos.spark import session
spark = session(master=sys.argv[1], catalogs=())
chance = spark.range(0, 40000, 1, 4).selectExpr("id", "rand() AS r")
held = stage(chance) if sys.argv[2] == "ours" else chance.localCheckpoint()
before = held.selectExpr("count(*)", "sum(crc32(cast(r AS string)))").collect()
print("held", flush=True)
sys.stdin.readline()
after = held.selectExpr("count(*)", "sum(crc32(cast(r AS string)))").collect()
print("same" if before == after else "other", flush=True)
"""


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[SparkCluster]:
    """Two workers of the test's own, because it kills one."""
    directory = tmp_path / "cluster"
    directory.mkdir()
    with cluster(directory) as started:
        yield started


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """The environment of a driver with a settings file, as on a cluster; Spark's event log is written to `events`."""
    directory, events = tmp_path / "conf", tmp_path / "events"
    directory.mkdir()
    events.mkdir()
    (directory / "spark-defaults.conf").write_text(f"{DEFAULTS}spark.eventLog.dir {events.as_uri()}\n")
    return environment(SPARK_CONF_DIR=str(directory))


@pytest.mark.parametrize("how, answer", [("ours", "same"), ("plain", "")])
def test_staged_rows_survive_a_killed_worker(
    workers: SparkCluster, settings: dict[str, str], *, tmp_path: Path, how: str, answer: str
) -> None:
    """Staged rows of a random query are the same after a worker was killed; Spark's own local checkpoint loses them."""
    script = tmp_path / "staged.py"
    script.write_text(STAGED)
    with subprocess.Popen(
        [sys.executable, str(script), workers.master, how],
        env=settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        assert driver.stdout.readline() == "held\n"
        assert workers.kill_worker(0) == 1
        driver.stdin.write("\n")
        driver.stdin.flush()

        assert driver.stdout.readline().strip() == answer


def test_run_with_killed_worker_has_right_rows(
    server: LiveServer,
    admin: Client,
    spark: SparkSession,
    *,
    workers: SparkCluster,
    settings: dict[str, str],
    tmp_path: Path,
) -> None:
    """A worker is killed during the first day's run, and the other one executes the second day: the rows are right, and
    the token is stored nowhere.
    """
    shop = opened(admin, tmp_path, space="oncluster")
    words = ("run", str(shop.file), "--param", "least=2")
    where = ("--master", workers.master)

    shop.deliver(0)
    first = Driver(server, *words, where=where, environment=settings)
    before = next(each for each in first.events() if each["state"] == "running" and each.get("tasks_done"))
    killed = workers.kill_worker(0)
    days = [first.ended()]
    shop.deliver(1)
    days.append(Driver(server, *words, where=where, environment=settings).ended())

    assert killed == 1, before
    assert [each["state"] for each in days] == ["published", "published"], [each.get("message") for each in days]
    assert shop.rows(spark) == ROWS
    event_logs = [each.read_text() for each in (tmp_path / "events").rglob("events_*")]
    assert len(event_logs) == 2
    assert all("spark.sql.catalog.main.header.Authorization" in each for each in event_logs)
    assert not [each for each in event_logs if server.token in each]


def test_run_without_executors_reports_its_wait(
    server: LiveServer, admin: Client, *, workers: SparkCluster, settings: dict[str, str], tmp_path: Path
) -> None:
    """While both workers are away the run says that it waits, once for its step. It is published when one is back."""
    admin.namespaces.create("main.waitsoncluster")
    file = tmp_path / "waitsoncluster.yaml"
    file.write_text(WAITS)
    for number in (0, 1):
        workers.kill_worker(number)
    where = ("--master", workers.master, "--conf", "spark.cores.max=1")

    driver = Driver(server, "run", str(file), where=where, environment=settings)
    waits, last = [], {}
    for event in driver.events():
        last = event
        if str(event.get("message", "")).startswith("waits: "):
            waits.append((event["step"], event["message"]))
            if len(waits) == 1:
                workers.start_worker(0)

    assert last["state"] == "published", last
    assert [step for step, _ in waits] == ["waitsoncluster.a"]
    assert f"the cluster at {workers.master} has no executor for the run" in str(waits[0][1])
