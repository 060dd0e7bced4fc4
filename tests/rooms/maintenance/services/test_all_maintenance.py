# SPDX-License-Identifier: Apache-2.0
"""Random sequences of all maintenance operations together lose nothing: neither a file that a reader opens nor a
required snapshot.
"""

from __future__ import annotations

import os
import time
from typing import Final

import pytest

from tests.http.driver import DriverNode
from tests.rooms.maintenance.services.orphans.histories import no_wait
from tests.rooms.maintenance.services.whole_story import WholeStory

pytestmark = pytest.mark.heavy
STEPS: Final = int(os.environ.get("LIMNOS_TEST_MAINTENANCE", "300"))
"""Steps on each database; `make test-maintenance` runs 10,000."""
SEED: Final = int(os.environ.get("LIMNOS_TEST_MAINTENANCE_SEED", "71"))
LONG: Final = 2_000
"""Steps after which snapshots have expired and orphan files were deleted, for every seed."""
KILLS_OF_WHOLE: Final = 200
"""The minimal number of crashes of the node in 10,000 steps."""


def test_nothing_is_lost_under_concurrent_writers_and_crashes(
    lake: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever writers, readers, executors, clocks and crashes of the node do concurrently, nothing is lost."""
    no_wait(monkeypatch)
    story = WholeStory(lake, seed=SEED)
    began = time.process_time()
    for number in range(STEPS):
        act = story.step()
        assert not (lost := story.check()), f"step {number} ({act}): {lost}"
    print(
        f"\n{STEPS} steps with seed {SEED}: {story.kills} kills, {story.gone} snapshots expired, {story.deleted} orphan"
        f" files deleted of {story.orphans} left, {story.files} metadata files, {story.compacted} compactions and"
        f" {story.yielded} refused, {story.branched} commits to branches, {story.refused} late commits refused,"
        f" {time.process_time() - began:.0f} s CPU"
    )
    assert min(story.kills, story.files, story.compacted) > 0
    assert STEPS < LONG or min(story.gone, story.deleted) > 0
    assert story.kills >= KILLS_OF_WHOLE * STEPS // 10_000
