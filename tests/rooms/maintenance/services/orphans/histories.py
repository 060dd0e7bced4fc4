# SPDX-License-Identifier: Apache-2.0
"""Tables with orphan files, and rounds of the task that removes them, for the tests."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limnos.app.task_kinds import KINDS
from limnos.rooms.maintenance.services.orphans import rounds
from limnos.rooms.maintenance.services.orphans.rounds import OrphanRound
from limnos.rooms.maintenance.services.orphans.task import REMOVE_ORPHANS
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import DAY_MS, HistoryTable, MovedClock, set_clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

POLICY = "system_iceberg_orphan_file_removal"
NOW_MS = 4_000_000_000_000
"""A time after that of all files that tests write."""


class LeasedTask:
    """A fake leased task, for rounds that a test starts directly."""

    def __init__(self) -> None:
        self.id, self.payload, self.attempts = 1, "{}", 0
        self.kind = KINDS[REMOVE_ORPHANS]


def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a removal not wait for other nodes between mark and deletion."""
    monkeypatch.setattr(rounds, "FENCE_WAIT_S", 0)


def turn_on(node: DriverNode, mode: str = "all", *, age_ms: int = 3 * DAY_MS) -> None:
    """Set the setting that enables the removal of orphan files."""
    services = node.built.services
    maintenance = services.defaults.maintenance._replace(orphans=mode, orphan_age_ms=age_ms)
    services.defaults = services.defaults._replace(maintenance=maintenance)


def run_round(node: DriverNode) -> OrphanRound:
    """Run a round of the removal task."""
    upkeep, leased = node.built.upkeep, LeasedTask()
    work = upkeep._work(leased, leased.kind)  # type: ignore[arg-type]
    round_ = OrphanRound(work, node.built.services)
    assert node.runner.run(round_.run(0)) == 0
    return round_


def run_days(node: DriverNode, clock: MovedClock, days: int) -> int:
    """Run one round on each of several days. Returns the number of deleted files."""
    deleted = 0
    for _ in range(days):
        deleted += run_round(node).files
        clock.at_ms += DAY_MS
    return deleted


def write_orphan(table: HistoryTable, name: str = "data/orphan.parquet", *, at_ms: int | None = None) -> Path:
    """Write a file that no metadata names."""
    path = wire.local(f"{table.location}/{name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"orphan")
    if at_ms is not None:
        os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))
    return path


def clock_of(node: DriverNode, now_ms: int = NOW_MS) -> MovedClock:
    """Set the store's time after the modification times of all files. Returns the clock."""
    return set_clock(node, now_ms)


def checked(node: DriverNode, table: str = "a.t") -> dict[str, Any]:
    """Return the explanation of a table's orphan files."""
    from tests.rooms.maintenance.services.histories import explained

    return explained(node, table)["orphans"]  # type: ignore[no-any-return]


@contextmanager
def planted(monkeypatch: pytest.MonkeyPatch, where: object, name: str, value: object) -> Iterator[None]:
    """Replace an attribute during a `with` block."""
    with monkeypatch.context() as patch:
        patch.setattr(where, name, value)
        yield
