"""What one node has acknowledged, the other knows at its next request: two nodes over one store, with writers active."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.nodes.turns import STORIES, Turn
from tests.nodes.world import World

ROUNDS = int(os.environ.get("LIMNOS_TEST_ROUNDS", "40"))
"""Mutations per kind; 100 of each of the ten kinds make the thousand of the full run."""
SHOWN_MAX = 5


@pytest.fixture(scope="module")
def busy_world(world: World) -> Iterator[World]:
    """Two nodes, and a client on each that writes during all tests of this module."""
    world.write_all_the_while()
    yield world
    assert min(world.written()) >= ROUNDS, "a writing client hardly wrote"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_next_request_elsewhere_is_decided_right(busy_world: World, story: Callable[[World], Iterator[Turn]]) -> None:
    """After a mutation that one node acknowledged, the very next request on the other is told the right status."""
    before = busy_world.written()
    wrong: list[str] = []
    asked = 0

    for number, turn in zip(range(ROUNDS), story(busy_world), strict=False):
        here = number // 2 % 2
        turn.mutate(busy_world.admin(here))
        for ask in turn.asks:
            answer = busy_world.wire(1 - here, ask.who).ask(ask.method, ask.path, ask.body)
            asked += 1
            if answer.status != ask.status:
                wrong.append(
                    f"round {number}: after '{turn.does}' on node {here}, {ask.method} {ask.path} by {ask.who} on node "
                    f"{1 - here} was answered {answer.status}, not {ask.status}: {answer.message}"
                )

    after = busy_world.written()
    assert not wrong, f"{len(wrong)} of {asked} decided wrong:\n" + "\n".join(wrong[:SHOWN_MAX])
    assert asked >= ROUNDS
    assert sum(after) > sum(before), "the writers stood still"
