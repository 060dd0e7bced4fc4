# SPDX-License-Identifier: Apache-2.0
"""Reports in the store, on both databases: the newest reports of each table are kept, and are listed by kind in pages,
until they expire or the table is gone for good.
"""

from __future__ import annotations

import pytest

from limnos.model.entities import MetricsReportRow
from limnos.store.activity import reports
from limnos.store.activity.reports import reports_expire, reports_put, reports_read
from limnos.store.activity.upkeep import orphans_sweep
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace


def test_reports_are_listed_newest_first_and_surplus_is_deleted(
    lab: StoreLab, world: StoreWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are listed newest first, of one kind or of all, before an id. Surplus reports, expired ones and those of
    missing tables are deleted.
    """
    monkeypatch.setattr(reports, "PER_TABLE_MAX", 3)
    space = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    report_rows = [
        MetricsReportRow(
            id=0,
            node_id=space.id,
            kind="scan" if number % 2 else "commit",
            reporter="ana",
            at=number,
            snapshot_id=number,
            body=b"{}",
        )
        for number in range(5)
    ]
    lab.write(lambda tx: reports_put(tx, report_rows, keep_ms=1000), zone=world.main.id)
    all_of, _ = lab.load(reports_read(space.id, kind="", before=2**53, limit=10))
    scans, _ = lab.load(reports_read(space.id, kind="scan", before=2**53, limit=10))
    older, more = lab.load(reports_read(space.id, kind="", before=all_of[0].id, limit=1))
    expired = lab.write(reports_expire, zone=world.main.id)
    now_ms = lab.write(lambda tx: tx.now_ms, zone=world.main.id)
    lab.write(
        lambda tx: reports_put(
            tx,
            [
                MetricsReportRow(
                    id=0, node_id=space.id, kind="scan", reporter="ana", at=now_ms, snapshot_id=None, body=b"{}"
                )
            ],
            keep_ms=10**9,
        ),
        zone=world.main.id,
    )
    later_count = lab.write(reports_expire, zone=world.main.id)
    lab.write(lambda tx: tx.nodes.drop(space), zone=world.main.id)

    assert [each.snapshot_id for each in all_of] == [4, 3, 2]
    assert [each.snapshot_id for each in scans] == [3]
    assert ([each.snapshot_id for each in older], more) == ([3], True)
    assert (expired, later_count) == (3, 0)
    assert lab.write(orphans_sweep, zone=world.main.id) == 1
