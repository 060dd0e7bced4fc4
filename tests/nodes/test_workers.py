# SPDX-License-Identifier: Apache-2.0
"""A change that one worker has acknowledged takes effect at the other's next request: the scenarios of two nodes, with
two workers of one server.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.faults.store_integrity import complaints
from tests.nodes.change_stories import STORIES, ChangeTurn, follow
from tests.nodes.process import Process
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import Wire
from tests.nodes.world import NodesWorld

ROUNDS = int(os.environ.get("LIMNOS_TEST_ROUNDS", "10"))
SHOWN_MAX = 5
TRIES = 500
PROCESS_LETTERS = 12
"""The number of characters of a request id that identify the process."""


class Workers(NodesWorld):
    """Two workers of one server. A caller of a node is one whose connection that worker has accepted."""

    def __init__(self, directory: Path, database: str | None) -> None:
        super().__init__(directory, database)
        one = Process(
            directory / "data", log=directory / "server.log", database=database, env={"LIMNOS__SERVER__WORKERS": "2"}
        )
        self.nodes = [one, one]
        self.processes: list[str] = []

    def __enter__(self) -> Self:
        self.nodes[0].start()
        return self

    def wire(self, node: int, who: str) -> Wire:
        """Return a caller whose connection a given worker has accepted."""
        user_wire = self._wires.get((node, who))
        if user_wire is None:
            user_wire = self._wires[node, who] = self._connected(node, who)
        return user_wire

    def _connected(self, node: int, who: str) -> Wire:
        for _ in range(TRIES):
            uri = self.nodes[0].uri
            wire = Wire(uri, token=who) if who.startswith("lim_") else Wire(uri, user=who)
            process = wire.ask("GET", "/health/live").headers["x-request-id"][:PROCESS_LETTERS]
            if process not in self.processes:
                self.processes.append(process)
            if self.processes.index(process) == node:
                return wire
            wire.close()
        raise AssertionError(f"no connection came to worker {node}")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def workers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Two workers, and clients that write continuously. At the end the store's integrity is checked."""
    cluster = PostgresCluster() if request.param == "postgresql" else None
    try:
        with Workers(tmp_path_factory.mktemp(request.param), cluster.database() if cluster else None) as running:
            running.write_all_the_while()
            yield running
            running.stop_writing()
            assert len(running.processes) == 2
            assert complaints(running.database) == []
    finally:
        if cluster is not None:
            cluster.stop()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_mutation_binds_next_request_at_other_worker(
    workers: Workers, story: Callable[[NodesWorld], Iterator[ChangeTurn]]
) -> None:
    """After one worker has acknowledged a mutation, the next request to the other worker has the correct status."""
    request_count, wrong = follow(workers, story, ROUNDS)

    assert not wrong, f"{len(wrong)} of {request_count} decided wrong:\n" + "\n".join(wrong[:SHOWN_MAX])
    assert request_count >= ROUNDS
