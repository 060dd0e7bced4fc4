# SPDX-License-Identifier: Apache-2.0
"""Pipelines on a server without the room: they and their runs are jobs, and no page speaks of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.http.driver import API, OWN, DriverNode, node_at
from tests.rooms.console.http.conftest import ICEBERG, add_table
from tests.rooms.console.http.visitor import ConsoleVisitor
from tests.rooms.pipelines.console.test_lineage_graph import tell
from tests.rooms.pipelines.http.test_runs import finish, started

pytestmark = [pytest.mark.room("gravitino", "console"), pytest.mark.slow]

LAKE = f"{OWN}/metalakes/lake"
JOBS = f"{API}/lake/jobs/runs"
DROP = "/console/drop/table/lake/main/raw/flights"


@pytest.fixture
def data(fresh: Callable[[str], Path]) -> Path:
    """The data of a server on which a run failed, another one is running, and a table is read by another one."""
    directory = fresh("data")
    with node_at(directory) as node:
        node.done("POST", f"{ICEBERG}/namespaces", {"namespace": ["raw"], "properties": {}})
        for name in ("flights", "clean"):
            add_table(node, "raw", name)
        tell(node, ("flights", "clean"))
        finish(node, started(node), "failed")
        started(node)
        page = ConsoleVisitor(node).sign_in()
        assert "2 runs in 14 days, 1 failed" in page.read("/console/").text
        assert "main.raw.clean" in page.read(DROP).text
    return directory


def states(node: DriverNode) -> list[str]:
    """Return the states of the jobs of the metalake, the newest first."""
    return [each["status"] for each in node.done("GET", JOBS)["jobs"]]


def test_runs_are_listed_and_cancelled_as_jobs(data: Path) -> None:
    """Without the room runs are jobs of their templates; a running one is cancelled. The room has them afterwards."""
    with node_at(data, off=("pipelines",)) as node:
        running = str(node.done("GET", JOBS)["jobs"][0]["jobId"])
        before = states(node)
        node.done("POST", f"{JOBS}/{running}", {})
        assert node.get(f"{LAKE}/runs").status == 404
        assert [before, states(node)] == [["started", "failed"], ["cancelling", "failed"]]

    with node_at(data) as node:
        assert [each["state"] for each in node.done("GET", f"{LAKE}/runs")["runs"]] == ["cancelling", "failed"]


def test_pages_of_the_console_leave_out_runs_and_readers(data: Path) -> None:
    """The first page has neither runs nor their picture, and the page that drops a table works without its readers."""
    with node_at(data, off=("pipelines",)) as node:
        visitor = ConsoleVisitor(node).sign_in()
        home, drop = visitor.read("/console/"), visitor.read(DROP)

    assert "14 days" not in home.text
    assert not [href for href in home.hrefs if href.startswith(("/console/run?", "/console/pipelines"))]
    assert ("post", DROP) in drop.actions
    assert "Objects that read it" not in drop.text


@pytest.mark.parametrize("word", ["pipeline", "schedule", "lineage", "__pipeline-helper__"])
def test_commands_of_the_room_are_absent(word: str) -> None:
    """With the room off by the environment its commands and its process do not exist; others do."""
    program = "import sys; from limnos.cli.main import main; sys.exit(main())"
    environment = {**os.environ, "LIMNOS__ROOMS__OFF": "pipelines"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert run(word, "x", "1").returncode == 2
    assert run("reports", "--help").returncode == 0
