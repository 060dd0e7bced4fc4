# SPDX-License-Identifier: Apache-2.0
"""Kill -9 during the removal of orphan files, between mark and deletion and between deletions: the removal is resumed,
and live files are not deleted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.store.faults import ORPHAN_POINT
from tests.faults.rig import BACKENDS, FULL, Rig
from tests.faults.test_purge import listed_files, make_table, path_of

pytestmark = [pytest.mark.heavy, pytest.mark.room("maintenance")]
OPERATIONS = "/api/limnos/v1/metalakes/lake/catalogs/main/maintenance/operations"
ENDED_WITHIN_S = 600
"""Seconds for a removal, which waits 100 s between mark and deletion."""


@pytest.fixture(scope="module", params=BACKENDS if FULL else ("sqlite",))
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node that removes orphan files of all tables."""
    database = request.getfixturevalue("cluster").database() if request.param == "postgresql" else None
    env = {"LIMNOS__MAINTENANCE__ORPHAN_FILES": "all"}
    with Rig(tmp_path_factory.mktemp(request.param), database, env=env) as running:
        yield running


def wait_until(rig: Rig, statement: str) -> None:
    """Wait until a statement returns a row."""
    until = time.monotonic() + ENDED_WITHIN_S
    while not rig.rows(statement):
        assert time.monotonic() < until, f"never: {statement}"
        time.sleep(0.2)


def wait_dead(rig: Rig) -> None:
    """Wait until the node has killed itself."""
    until = time.monotonic() + ENDED_WITHIN_S
    while rig.node.running.poll() is None:
        assert time.monotonic() < until, "the node has not ended"
        time.sleep(0.2)
    rig.node.wait_killed()


def test_killed_orphan_removal_is_completed(rig: Rig) -> None:
    """After kills between the marks and the deletions, and after two deletions, all orphan files are deleted at the
    end, each with an audit record.
    """
    table = make_table(rig, rig.tag())
    live = listed_files(table)
    orphans: list[Path] = []
    for number in range(4):
        orphans.append(path_of(table.location()) / "data" / f"orphan-{number}.parquet")
        orphans[-1].write_bytes(b"rows")
        os.utime(orphans[-1], (1_000_000_000, 1_000_000_000))
    body = {"table": ".".join(table.name()), "operation": "orphans"}
    rig.admin.do("POST", OPERATIONS, body)
    wait_until(rig, "SELECT 1 FROM maintenance_operation WHERE ended_at IS NOT NULL")
    assert rig.rows("SELECT count(*) FROM maintenance_orphan_file") == [(4,)]
    rig.sql("UPDATE maintenance_orphan_file SET waited_ms = 864000000")

    rig.arm("orphans-marked")
    rig.try_to("POST", OPERATIONS, body)
    wait_dead(rig)
    assert rig.rows("SELECT count(*) FROM maintenance_orphan_file WHERE state = 1") == [(4,)]
    assert all(path.exists() for path in orphans)
    rig.sql("UPDATE task SET leased_until = 0, due_at = 0")
    rig.arm(ORPHAN_POINT, count=2)
    rig.node.spawn()
    wait_dead(rig)
    assert sum(path.exists() for path in orphans) == 2
    rig.sql("UPDATE task SET leased_until = 0, due_at = 0")
    rig.start()
    wait_until(rig, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM maintenance_orphan_file WHERE state < 2)")

    assert not [path for path in orphans if path.exists()]
    assert all(path.exists() for path in live)
    rig.reconnect()
    lines = rig.admin.do("GET", "/api/limnos/v1/audit?action=remove_orphan_file").body["lines"]
    assert sorted(line["detail"].split(" ")[0] for line in lines) == [f"data/orphan-{n}.parquet" for n in range(4)]
