"""Removal of orphan files: what goes after which time, what stays, and who decides."""

from __future__ import annotations

import pytest

from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.services.maintenance.histories import HistoryTable
from tests.services.maintenance.live_files import files_of_table, lost_files
from tests.services.maintenance.orphans.histories import clock_of, no_wait, run_days, run_round, turn_on, write_orphan


@pytest.fixture
def table(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> HistoryTable:
    """A table with three snapshots on a node that removes orphan files of all tables."""
    no_wait(monkeypatch)
    made = HistoryTable(lake)
    made.append(3)
    turn_on(lake)
    return made


def lost(table: HistoryTable) -> list[str]:
    """The files that the table needs and that are gone."""
    return lost_files(files_of_table(str(table.node.get(wire.table_path("a", "t"))["metadata-location"])))


def test_a_file_goes_after_its_age(table: HistoryTable) -> None:
    """An orphan is deleted at the first check at which it has been one for three days, and nothing else."""
    clock, path = clock_of(table.node), write_orphan(table)
    assert run_days(table.node, clock, 3) == 0
    assert path.exists()
    assert run_round(table.node).files == 1
    assert not path.exists()
    assert lost(table) == []
