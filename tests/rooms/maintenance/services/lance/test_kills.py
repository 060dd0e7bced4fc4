# SPDX-License-Identifier: Apache-2.0
"""Crashes of the node at each transaction of a maintenance round for a Lance table: no row, tag or version is lost."""

from __future__ import annotations

import time
from typing import Final

import lance
import pytest

from tests.http.driver import DriverNode
from tests.rooms.lance.http.wire import table
from tests.rooms.maintenance.services.crashes import NodeDeath, mortal
from tests.rooms.maintenance.services.histories import DAY_MS, MovedClock, add_policy, set_clock
from tests.rooms.maintenance.services.lance.test_task import (
    EXPIRATION,
    ROWS,
    TABLE_MAINTENANCE,
    fill,
    findings,
    node,
    run_round,
)

COMMITS: Final = 8
DEATHS_MIN: Final = 5
STEPS_MAX: Final = 60
__all__ = ["node"]


def next_day(clock: MovedClock) -> None:
    """Advance the time beyond the leases of a crashed node and the pause of the table."""
    clock.at_ms += DAY_MS


@pytest.mark.heavy
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_round_loses_no_rows_and_completes_later(node: DriverNode, moment: str) -> None:
    """After each crash all rows and the tagged version can be read. At the end, all due operations are done."""
    location = fill(node, "s", "t", commits=COMMITS).removeprefix("file://")
    node.done("POST", f"{table('lance', 's', 't')}/tags/create", {"tag": "keep", "version": 4})
    add_policy(node, "tend", TABLE_MAINTENANCE, {}, on="lance", kind="catalog")
    add_policy(node, "forget", EXPIRATION, {"olderThanDays": 2, "retainLast": 1}, on="lance", kind="catalog")
    clock = set_clock(node, time.time_ns() // 1_000_000 + 20 * DAY_MS)
    deaths = 0
    for steps in range(1, STEPS_MAX):
        death = NodeDeath(steps, moment)
        with mortal(node, death):
            run_round(node)
        dataset = lance.dataset(location)
        assert dataset.count_rows() == COMMITS * ROWS
        assert dataset.checkout_version("keep").count_rows() == 3 * ROWS
        deaths += death.happened
        next_day(clock)
        if not death.happened:
            break
    for _ in range(3):
        run_round(node)
        next_day(clock)
    assert deaths >= DEATHS_MIN
    assert findings(node) == {}
    assert len(lance.dataset(location).get_fragments()) < COMMITS
    assert next(each["version"] for each in lance.dataset(location).versions()) == 4
