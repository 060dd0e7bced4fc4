# SPDX-License-Identifier: Apache-2.0
"""One of two nodes is killed inside a mutation: the other node's answers are true, and it can write at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.faults.mutations import Case, namespace_chain, privilege_grant, table_commit, table_rename
from tests.faults.rig import FULL, Rig
from tests.faults.store_integrity import complaints

KINDS = (namespace_chain, table_commit, table_rename, privilege_grant)
MATRIX = [(mutation, point) for mutation in KINDS for point in ("written", "before-commit", "after-commit")]
SAMPLE = MATRIX if FULL else [(table_commit, "before-commit"), (privilege_grant, "after-commit")]


@pytest.fixture(scope="module")
def victim(rig: Rig) -> Iterator[Rig]:
    """A second node on the rig's store, to be killed."""
    with rig.beside() as other:
        yield other


@pytest.mark.parametrize("mutation,point", SAMPLE, ids=lambda value: getattr(value, "__name__", value))
def test_survivor_returns_committed_mutation_of_killed_node(
    rig: Rig, victim: Rig, mutation: Callable[[Rig], Case], point: str
) -> None:
    """The other node returns the mutation completely if the kill was after its commit, and else not at all."""
    case = mutation(rig)
    assert not case.is_done()
    victim.arm(point)

    answer = victim.try_to(case.method, case.path, case.body)
    victim.node.wait_killed()
    done = case.is_done()
    again = rig.admin.ask(case.method, case.path, case.body)

    assert answer is None
    assert done == (point == "after-commit")
    assert again.status in (case.again if done else (200, 204)), f"repeated: {again}"
    assert case.is_done()
    assert complaints(rig.database) == []
    victim.start()
