"""A change that one node has acknowledged counts at the other's next request: two nodes over one store, with writers
active.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.nodes.change_stories import STORIES, ChangeTurn, follow
from tests.nodes.lance_change_stories import LANCE_STORIES
from tests.nodes.world import NodesWorld

ROUNDS = int(os.environ.get("LIMNOS_TEST_ROUNDS", "100"))
"""Mutations per kind: a thousand for the ten kinds, on each backend."""
LANCE_ROUNDS = int(os.environ.get("LIMNOS_TEST_ROUNDS", "30"))
SHOWN_MAX = 5


@pytest.fixture(scope="module")
def busy_world(world: NodesWorld) -> Iterator[NodesWorld]:
    """Two nodes, and a client on each that writes during all tests of this module, of which a sample may run."""
    world.write_all_the_while()
    yield world
    assert min(world.written()) >= ROUNDS // 10, "a writing client hardly wrote"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_next_request_elsewhere_is_decided_right(
    busy_world: NodesWorld, story: Callable[[NodesWorld], Iterator[ChangeTurn]]
) -> None:
    """After a mutation that one node acknowledged, the very next request on the other is told the right status."""
    decided_right(busy_world, story, ROUNDS)


@pytest.mark.parametrize("story", LANCE_STORIES, ids=lambda story: story.__name__)
def test_next_request_about_lance_tables(
    busy_world: NodesWorld, story: Callable[[NodesWorld], Iterator[ChangeTurn]]
) -> None:
    """The same of Lance tables: revoked, handed on, renamed, moved, dropped, made again, committed."""
    decided_right(busy_world, story, LANCE_ROUNDS)


def decided_right(world: NodesWorld, story: Callable[[NodesWorld], Iterator[ChangeTurn]], rounds: int) -> None:
    """Follow a story while others write."""
    before = world.written()

    asked, wrong = follow(world, story, rounds)

    after = world.written()
    assert not wrong, f"{len(wrong)} of {asked} decided wrong:\n" + "\n".join(wrong[:SHOWN_MAX])
    assert asked >= rounds
    assert sum(after) > sum(before), "the writers stood still"
