# SPDX-License-Identifier: Apache-2.0
"""A whole run over a Spark Connect server, by the user's command."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from tests.integration.live import LiveServer
from tests.pipeline.run.shop import ROWS, opened
from tests.pipeline.run.test_kills import Driver
from tests.spark.cluster import SparkConnectServer, connect_server, end

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


FAILS = """
pipeline: failsoverconnect
catalog: main
steps:
  failsoverconnect.a:
    sql: SELECT 1 / id AS x FROM range(3)
    expect: [{row: x > 0, action: quarantine}]
"""


WAITS = """
pipeline: goneoverconnect
catalog: main
steps:
  goneoverconnect.a: {sql: "SELECT java_method('java.lang.Thread', 'sleep', id + 600000L) AS x FROM range(1)"}
"""


@dataclass(frozen=True)
class ConnectServer:
    """A Spark Connect server with all pages and the event log enabled."""

    server: SparkConnectServer
    events: Path

    def all(self) -> list[str]:
        """Return the pages of a statement, the environment and the sessions, and then the event log."""
        pages = [self._page(path) for path in ("/SQL/execution/?id=1", "/environment/", "/connect/")]
        return [*pages, *(each.read_text() for each in self.events.rglob("events_*"))]

    def _page(self, path: str) -> str:
        with urlopen(f"{self.server.pages}{path}") as answer:
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server that has the credential as docs/guides/run-pipelines.md says."""
    events = tmp_path_factory.mktemp("events")
    config = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.catalog.main.token": "set on each session",
    }
    with connect_server(tmp_path_factory.mktemp("connect"), config=config) as started:
        yield ConnectServer(started, events)


def test_run_over_connect_gives_right_rows(
    server: LiveServer, admin: Client, spark: SparkSession, connect: ConnectServer, tmp_path: Path
) -> None:
    """Merge, history, quarantine and Python steps over two days give the right rows; the command exits; no page has the
    token.
    """
    shop = opened(admin, tmp_path, space="overconnect")
    where = ("--connect", connect.server.address)

    for day in (0, 1):
        shop.deliver(day)
        driver = Driver(server, "run", str(shop.file), "--param", "least=2", where=where)
        ended = driver.ended()
        assert (ended["state"], driver.process.returncode) == ("published", 0), ended

    assert shop.rows(spark) == ROWS
    pages = connect.all()
    assert all("spark.sql.catalog.main.token" in each for each in (pages[0], pages[-1]))
    assert not [each for each in pages if server.token in each]


def test_failed_query_over_connect_publishes_nothing(
    server: LiveServer, admin: Client, connect: ConnectServer, tmp_path: Path
) -> None:
    """If a query fails while its rows are computed, the command reports it, publishes nothing, and exits."""
    admin.namespaces.create("main.failsoverconnect")
    file = tmp_path / "failsoverconnect.yaml"
    file.write_text(FAILS)

    driver = Driver(server, "run", str(file), where=("--connect", connect.server.address))
    ended = driver.ended()

    assert (ended["state"], driver.process.returncode) == ("failed", 11), ended
    assert "DIVIDE_BY_ZERO" in str(ended["message"])
    assert list(admin.tables.list("main.failsoverconnect")) == []


def test_command_exits_when_connect_server_hangs(
    server: LiveServer, admin: Client, connect: ConnectServer, tmp_path: Path
) -> None:
    """The Spark Connect server is stopped while a step runs, and the command is asked to end: it waits briefly for an
    answer, and exits without one.
    """
    admin.namespaces.create("main.hangsoverconnect")
    file = tmp_path / "hangsoverconnect.yaml"
    file.write_text(WAITS.replace("goneoverconnect", "hangsoverconnect"))

    driver = Driver(server, "run", str(file), where=("--connect", connect.server.address))
    run = next(str(event["run"]) for event in driver.events() if event["state"] == "running" and "tasks" in event)
    connect.server.process.send_signal(signal.SIGSTOP)
    try:
        driver.process.send_signal(signal.SIGTERM)
        assert driver.process.wait(timeout=300) == 130, "".join(driver.errors)[-2000:]
    finally:
        connect.server.process.send_signal(signal.SIGCONT)
    assert driver.ended()["state"] == "cancelled"
    assert admin.runs.load(run).state == "cancelled"
    assert list(admin.tables.list("main.hangsoverconnect")) == []


def test_command_exits_when_connect_server_is_killed(
    server: LiveServer, admin: Client, connect: ConnectServer, tmp_path: Path
) -> None:
    """The Spark Connect server is killed while a step runs, and the command is asked to end: it exits at once and
    reports the interrupt. This is the last test, because it kills the server.
    """
    admin.namespaces.create("main.goneoverconnect")
    file = tmp_path / "goneoverconnect.yaml"
    file.write_text(WAITS)

    driver = Driver(server, "run", str(file), where=("--connect", connect.server.address))
    run = next(str(event["run"]) for event in driver.events() if event["state"] == "running" and "tasks" in event)
    end(connect.server.process)
    time.sleep(1)
    driver.process.send_signal(signal.SIGTERM)

    assert driver.process.wait(timeout=300) == 130, "".join(driver.errors)[-2000:]
    assert driver.ended()["state"] == "cancelled"
    assert admin.runs.load(run).state == "cancelled"
    assert list(admin.tables.list("main.goneoverconnect")) == []
