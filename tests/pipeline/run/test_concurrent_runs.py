# SPDX-License-Identifier: Apache-2.0
"""Two runs of one pipeline from two processes: the second is refused, or waits and continues from the published result
of the first.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.project import load
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.result import EndReason, RunResult
from tests.integration.live import LiveServer
from tests.pipeline.run.test_kills import Driver

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PIPELINE = """
pipeline: twice
catalog: main
parameters: {gate: string}
steps:
  twice.a: {python: "twice:waited", write: append}
  twice.b: {sql: SELECT count(*) AS n FROM twice.a}
"""
FUNCTION = """
import time
from pathlib import Path


def waited(spark, gate):
    while not Path(gate).exists():
        time.sleep(0.05)
    return spark.range(3)
"""


@pytest.fixture
def file(admin: Client, tmp_path: Path) -> Path:
    """A pipeline whose step waits until a file exists."""
    admin.namespaces.create("main.twice")
    (tmp_path / "twice.py").write_text(FUNCTION)
    path = tmp_path / "twice.yaml"
    path.write_text(PIPELINE)
    return path


@pytest.fixture
def first(server: LiveServer, file: Path, tmp_path: Path) -> Iterator[tuple[Driver, str]]:
    """A process with a run whose step waits, and the run's id."""
    driver = Driver(server, "run", str(file), "--param", f"gate={tmp_path / 'gate'}")
    try:
        run = next(str(event["run"]) for event in driver.events() if event["state"] == "running")
        yield driver, run
    finally:
        driver.process.kill()
        driver.process.communicate()


def test_second_run_is_refused_or_waits_for_first(
    spark: SparkSession, admin: Client, file: Path, *, first: tuple[Driver, str], tmp_path: Path
) -> None:
    """Without waiting, the second run is refused with the id, user, host and advice of the first; with waiting it runs
    afterwards. Each writes its rows once.
    """
    driver, run = first
    gate, waited = tmp_path / "gate", list[RunResult]()
    project, parameters = load(file), {"gate": str(gate)}

    refused = project.run(spark, parameters=parameters)
    options = RunOptions(wait_s=120)
    waiting = threading.Thread(target=lambda: waited.append(project.run(spark, parameters=parameters, options=options)))
    waiting.start()
    waiting.join(timeout=3)
    still = waiting.is_alive()
    gate.touch()
    ended = driver.ended()
    waiting.join(timeout=120)

    assert (refused.state, refused.why, refused.exit_code) == ("refused", EndReason.BUSY, 5), refused.message
    for word in (run, admin.whoami(), f"{socket.gethostname()}:{driver.process.pid}", f"limnos pipeline cancel {run}"):
        assert word in refused.message
    assert still
    assert (ended["state"], [each.state for each in waited]) == ("published", ["published"]), waited
    assert spark.table("main.twice.a").count() == 6
    assert [row.n for row in spark.table("main.twice.b").collect()] == [6]
    assert {each.state for each in admin.runs.list(pipeline="twice")} == {"published"}
