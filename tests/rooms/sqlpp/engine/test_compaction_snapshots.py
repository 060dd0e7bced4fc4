# SPDX-License-Identifier: Apache-2.0
"""The snapshots that a compaction of a dataset removes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from limnos.rooms.sqlpp.engine.compaction import expires_before
from limnos.rooms.sqlpp.language.jobs import CompactionOptions


@dataclass
class State:
    """A snapshot with a timestamp."""

    ms: int

    def timestampMillis(self) -> int:  # noqa: N802 - as Iceberg calls it
        """Return the timestamp."""
        return self.ms


class Table:
    """A table of snapshots that are one second apart."""

    def __init__(self, count: int) -> None:
        self._states = [State(1000 * number) for number in range(1, count + 1)]

    def snapshots(self) -> list[State]:
        """Return all snapshots, unordered."""
        return self._states[::-1]


@pytest.mark.parametrize(
    "count,expires,keeps_after,expected",
    [
        (3, 0, 3000, 0),  # few and recent: all are kept
        (3, 2500, 3000, 2500),  # by age
        (10, 0, 10_000, 6000),  # too many: those before the fifth from the end
        (10, 7000, 10_000, 7000),  # the age removes more
        (10, 0, 4000, 4000),  # too many, but current until a moment ago
    ],
)
def test_old_and_excess_snapshots_expire_unless_recently_current(
    count: int, expires: int, keeps_after: int, expected: int
) -> None:
    """Snapshots expire by age and beyond a maximal number, but not those that were current until a moment ago, because
    a reader may use them.
    """
    options = CompactionOptions(
        target_bytes=1, expires_before_ms=expires, retained_after_ms=keeps_after, states_max=5, debris_before_ms=None
    )

    assert expires_before(Table(count), options) == expected
