# SPDX-License-Identifier: Apache-2.0
"""The caller disconnects during a mutation: the store is consistent, the node keeps serving, and nothing is executed
twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.faults.mutations import MUTATIONS, Case
from tests.faults.rig import Rig
from tests.faults.store_integrity import complaints
from tests.nodes.wire import Wire

DONE_WITHIN_S = 300
REVISIONS = "SELECT sum(revision) FROM clock"


@pytest.mark.parametrize("point", ["locked", "before-commit", "after-commit"])
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_mutation_of_disconnected_caller_is_executed_once(
    rig: Rig, mutation: Callable[[Rig], Case], point: str
) -> None:
    """A mutation whose caller disconnects while it runs is executed once and completely. A repetition is answered
    accordingly.
    """
    case = mutation(rig)
    leaver = Wire(rig.node.uri, user="admin")
    before = rig.rows(REVISIONS)
    rig.arm(point, stop=True)

    leaver.send(case.method, case.path, case.body)
    rig.node.wait_paused()
    leaver.close()
    rig.node.go_on()
    until = time.monotonic() + DONE_WITHIN_S
    while rig.rows(REVISIONS) == before:
        assert time.monotonic() < until, "the mutation was aborted with its caller"
        time.sleep(0.005)
    again = rig.admin.ask(case.method, case.path, case.body)

    assert again.status in case.again, f"the repetition was answered as if the mutation was not done: {again}"
    assert case.is_done()
    assert complaints(rig.database) == []
