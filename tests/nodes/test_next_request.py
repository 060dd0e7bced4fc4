"""What one node has acknowledged, the other knows at its next request: two nodes over one store, with writers active."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.faults.whole import complaints
from tests.nodes.stores import Cluster
from tests.nodes.turns import STORIES, Turn
from tests.nodes.world import World

ROUNDS = int(os.environ.get("LIMNOS_TEST_ROUNDS", "20"))
"""Mutations per kind; 100 of each of the ten kinds make the thousand of the full run."""
WRITTEN_MIN = 100
"""Turns of each writing client during the whole module, at least."""
SHOWN_MAX = 5


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two nodes over one store, and a client on each that writes during all tests of this module."""
    directory = tmp_path_factory.mktemp(request.param)
    cluster = Cluster(directory / "postgres") if request.param == "postgresql" else None
    with World(directory, cluster.database() if cluster else None) as running:
        running.write_all_the_while()
        yield running
        assert min(running.written()) >= WRITTEN_MIN, "a writing client hardly wrote"
        assert complaints_when_quiet(running) == []
    if cluster is not None:
        cluster.stop()


def complaints_when_quiet(running: World) -> list[str]:
    """Look at the store after the writers have ended."""
    running.stop_writing()
    return complaints(running.database)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_next_request_elsewhere_is_decided_right(world: World, story: Callable[[World], Iterator[Turn]]) -> None:
    """After a mutation that one node acknowledged, the very next request on the other is told the right status."""
    before = world.written()
    wrong: list[str] = []
    asked = 0

    for number, turn in zip(range(ROUNDS), story(world), strict=False):
        here = number // 2 % 2
        turn.mutate(world.admin(here))
        for ask in turn.asks:
            answer = world.wire(1 - here, ask.who).ask(ask.method, ask.path, ask.body)
            asked += 1
            if answer.status != ask.status:
                wrong.append(
                    f"round {number}: after '{turn.does}' on node {here}, {ask.method} {ask.path} by {ask.who} on node "
                    f"{1 - here} was answered {answer.status}, not {ask.status}: {answer.body.get('error')}"
                )

    after = world.written()
    assert not wrong, f"{len(wrong)} of {asked} decided wrong:\n" + "\n".join(wrong[:SHOWN_MAX])
    assert asked >= ROUNDS
    assert sum(after) > sum(before), "the writers stood still"
