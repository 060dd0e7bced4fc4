# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of several nodes: two nodes on one store, for each database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.store_integrity import complaints
from tests.nodes.stores import PostgresCluster
from tests.nodes.world import NodesWorld


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodesWorld]:
    """Two nodes on one store, started concurrently on an empty store. At the end the store's integrity is checked."""
    cluster = PostgresCluster() if request.param == "postgresql" else None
    try:
        with NodesWorld(tmp_path_factory.mktemp(request.param), cluster.database() if cluster else None) as running:
            yield running
            running.stop_writing()
            assert complaints(running.database) == []
    finally:
        if cluster is not None:
            cluster.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the results of load tests, also after a success."""
    reports = [each for outcome in ("passed", "failed") for each in terminalreporter.getreports(outcome)]
    lines = [
        str(value) for each in reports if each.when == "call" for name, value in each.user_properties if name == "crowd"
    ]
    if lines:
        terminalreporter.section("crowds")
        for line in sorted(lines):
            terminalreporter.write_line(line)
