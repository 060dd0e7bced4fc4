# SPDX-License-Identifier: Apache-2.0
"""Kill -9 at each boundary of each kind of mutation: it is committed completely or not at all, and the store is
consistent.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from limnos.store.faults import OPERATION_POINT, POINTS
from tests.faults import access_mutations, joint_mutations, placeholder_mutations, restriction_mutations
from tests.faults.mutations import (
    MUTATIONS,
    WITH_FILE,
    WITHOUT_CHANGES,
    Case,
    lance_versions,
    run_publish,
    tables_commit,
    transaction,
)
from tests.faults.rig import BACKENDS, FULL, Rig, on_backends
from tests.faults.store_integrity import complaints
from tests.installed import has_room

EVERY = 1 if FULL else 6
"""Without the complete matrix, a run has every sixth case: all kinds and all points are among them."""
PLACEHOLDERS = placeholder_mutations.MUTATIONS if has_room("connectors") else ()
TOLD = (
    *MUTATIONS,
    *access_mutations.MUTATIONS,
    *joint_mutations.MUTATIONS,
    *PLACEHOLDERS,
    *restriction_mutations.MUTATIONS,
)
"""Mutations that leave a change in the feed."""
UNTOLD = (*WITHOUT_CHANGES, *restriction_mutations.WITHOUT_CHANGES)
KILLED = (
    *MUTATIONS,
    *access_mutations.MUTATIONS,
    *WITHOUT_CHANGES,
    *joint_mutations.MUTATIONS,
    *PLACEHOLDERS,
    *restriction_mutations.MUTATIONS,
    *restriction_mutations.WITHOUT_CHANGES,
)
MATRIX = [
    (mutation, point)
    for mutation in KILLED
    for point in POINTS
    if (point != "file-written" or mutation in WITH_FILE) and (point != "drafted" or mutation in TOLD)
]
ALWAYS = {(mutation, "file-written") for mutation in WITH_FILE} | {
    (mutation, "before-commit") for mutation in (*UNTOLD, *access_mutations.MUTATIONS)
}
SAMPLE = [
    (mutation, point)
    for point in POINTS  # ordered by point, so that each database has every point
    for mutation in KILLED
    if (mutation, point) in MATRIX
    and ((KILLED.index(mutation) + POINTS.index(point)) % EVERY == 0 or (mutation, point) in ALWAYS)
]


def test_sample_covers_every_mutation_and_point() -> None:
    """The sample of the matrix has each mutation, and on each database each point."""
    assert {mutation for mutation, _ in SAMPLE} == set(KILLED)
    for backend in BACKENDS:
        assert {point for on, _, point in on_backends(SAMPLE) if on == backend} == set(POINTS)


def named(value: object) -> str:
    """Return the name of a parameter for the test's id."""
    return str(getattr(value, "__name__", value))


@pytest.mark.parametrize("rig,mutation,point", on_backends(SAMPLE), ids=named, indirect=["rig"])
def test_killed_mutation_is_whole_or_absent(rig: Rig, mutation: Callable[[Rig], Case], point: str) -> None:
    """A mutation in which the node is killed is complete if the kill is after the commit, and absent if it is before.
    It can be repeated.
    """
    case = mutation(rig)
    rig.arm(point)

    answer = rig.try_to(case.method, case.path, case.body)

    rig.node.wait_killed()
    assert answer is None, f"a killed node answered: {answer}"
    assert complaints(rig.database) == []
    rig.start()
    done = case.is_done()
    assert done == (point == "after-commit")
    again = rig.admin.ask(case.method, case.path, case.body)
    assert again.status in (case.again if done else (200, 201, 204)), f"repeated: {again}"
    assert case.is_done()
    assert complaints(rig.database) == []


BETWEEN = [
    (mutation, f"{OPERATION_POINT}:{count}")
    for mutation in (tables_commit, transaction, run_publish, lance_versions, *joint_mutations.MUTATIONS)
    for count in (1, 2, 3)
] + [(mutation, "file-written:2") for mutation in (tables_commit, transaction, run_publish)]


@pytest.mark.parametrize("rig,mutation,point", on_backends(BETWEEN), ids=named, indirect=["rig"])
def test_kill_between_operations_commits_nothing(rig: Rig, mutation: Callable[[Rig], Case], point: str) -> None:
    """If a node is killed between the operations of one transaction, or between its files, nothing of the transaction
    is committed, and it can be repeated.
    """
    case = mutation(rig)
    name, _, count = point.partition(":")
    rig.arm(name, count=int(count))

    answer = rig.try_to(case.method, case.path, case.body)

    rig.node.wait_killed()
    assert answer is None
    rig.start()
    assert not case.is_done()
    assert rig.admin.ask(case.method, case.path, case.body).status in (200, 204)
    assert case.is_done()
    assert complaints(rig.database) == []
