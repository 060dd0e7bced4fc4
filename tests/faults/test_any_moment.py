# SPDX-License-Identifier: Apache-2.0
"""Kill -9 of a busy node at a random moment: every acknowledged change exists, and the store is consistent."""

from __future__ import annotations

import random
import time

import pytest

from tests.faults.rig import FULL, Rig
from tests.faults.store_integrity import complaints
from tests.faults.traffic import Traffic

pytestmark = pytest.mark.heavy

ROUNDS = 20 if FULL else 2
BUSY_S = (0.1, 0.8)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_kill_at_any_moment_loses_no_acknowledged_change(rig: Rig, number: int) -> None:
    """After a kill at any moment no acknowledged change is lost, and none is committed partially."""
    traffic = Traffic(rig)

    with traffic.running():
        time.sleep(random.Random(number).uniform(*BUSY_S))
        rig.node.kill()

    assert complaints(rig.database) == []
    rig.start()
    assert traffic.untrue() == []
    assert any(one.status == 200 for one in traffic.answers())
    assert complaints(rig.database) == []
