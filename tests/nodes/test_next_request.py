# SPDX-License-Identifier: Apache-2.0
"""A change that one node has acknowledged takes effect at the other's next request: two nodes on one store, with active
writers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.nodes.change_stories import STORIES, ChangeTurn, follow
from tests.nodes.lance_change_stories import LANCE_STORIES
from tests.nodes.world import NodesWorld

ROUNDS = int(os.environ.get("LIMNOS_TEST_ROUNDS", "100"))
"""Mutations per kind. A complete check has a thousand for the ten kinds, on each database."""
LANCE_ROUNDS = int(os.environ.get("LIMNOS_TEST_ROUNDS", "30"))
SHOWN_MAX = 5


@pytest.fixture(scope="module")
def busy_world(world: NodesWorld) -> Iterator[NodesWorld]:
    """Two nodes, and a client on each that writes during all tests of this module."""
    world.write_all_the_while()
    yield world
    assert min(world.written()) >= ROUNDS // 10, "a writing client made too little progress"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_mutation_binds_next_request_on_other_node(
    busy_world: NodesWorld, story: Callable[[NodesWorld], Iterator[ChangeTurn]]
) -> None:
    """After one node has acknowledged a mutation, the next request on the other node has the correct status."""
    decided_right(busy_world, story, ROUNDS)


@pytest.mark.parametrize("story", LANCE_STORIES, ids=lambda story: story.__name__)
def test_lance_table_change_binds_next_request_on_other_node(
    busy_world: NodesWorld, story: Callable[[NodesWorld], Iterator[ChangeTurn]]
) -> None:
    """After one node has acknowledged a change of a Lance table, the next request on the other node has the correct
    status: revokes, transfers, renames, moves, drops, new tables, commits.
    """
    decided_right(busy_world, story, LANCE_ROUNDS)


def decided_right(world: NodesWorld, story: Callable[[NodesWorld], Iterator[ChangeTurn]], rounds: int) -> None:
    """Run a scenario while other clients write, and check all decisions."""
    before = world.written()

    request_count, wrong = follow(world, story, rounds)

    assert not wrong, f"{len(wrong)} of {request_count} decided wrong:\n" + "\n".join(wrong[:SHOWN_MAX])
    assert request_count >= rounds
    world.wait_for_progress(before)
