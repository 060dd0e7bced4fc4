"""One of two nodes is killed inside a mutation: the other node answers truly and can write at once."""

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
    """A second node over the rig's store, to be killed."""
    with rig.beside() as other:
        yield other


@pytest.mark.parametrize("mutation,point", SAMPLE, ids=lambda value: getattr(value, "__name__", value))
def test_survivor_knows_at_once(rig: Rig, victim: Rig, mutation: Callable[[Rig], Case], point: str) -> None:
    """The node that lives on tells what the dead one left: all of a mutation after its commit, else nothing."""
    case = mutation(rig)
    assert not case.is_done()
    victim.arm(point)

    answer = victim.try_to(case.method, case.path, case.body)
    victim.node.wait_killed()
    done = case.is_done()
    again = rig.admin.ask(case.method, case.path, case.body)

    assert answer is None
    assert done == (point == "after-commit")
    assert again.status in (case.again if done else (200, 204)), f"done again: {again}"
    assert case.is_done()
    assert complaints(rig.database) == []
    victim.start()
