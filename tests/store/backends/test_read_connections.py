# SPDX-License-Identifier: Apache-2.0
"""Query plans of PostgreSQL for reads and writes: they use indexes, whatever the statistics of the tables are."""

from __future__ import annotations

import time

import pytest

from tests.backends import Database, PostgresServer, StoreLab
from tests.store.world import add_namespace, make_world

TABLES = ("change", "node")
ROUNDS = 120
"""PostgreSQL keeps a plan after five executions. By this number of rounds the table has several pages."""


@pytest.mark.integration
def test_grown_table_is_read_by_its_index(postgres_server: PostgresServer) -> None:
    """Plans made while a table was small, and before the database had statistics of it, still use its index when the
    table has grown.
    """
    database = postgres_server.fresh_database()
    lab = StoreLab(database)
    try:
        world = make_world(lab)
        node = lab.open()
        lab.gate([(0, 0)], store=node)
        before = _read(database)
        for number in range(ROUNDS):
            lab.write(lambda tx, number=number: add_namespace(tx, world.main, f"n{number}"), zone=world.main.id)
            moved = lab.gate([(0, 0), (world.main.id, number)], store=node)
            assert [change.revision for change in moved.changes if change.zone == world.main.id] == [number + 1]
    finally:
        lab.close()

    deadline = time.monotonic() + 300
    while not _is_told(before, after := _read(database)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _is_told(before, after)
    assert [name for name in TABLES if after[name][0] - before[name][0] > ROUNDS] == []


def _read(database: Database) -> dict[str, tuple[int, int]]:
    """Return the number of rows of each table that were read without an index, and the number of its scans.

    Earlier tests used the database and left it empty; its counters go on.
    """
    rows = database.sql("SELECT relname, seq_tup_read, coalesce(idx_scan, 0) + seq_scan FROM pg_stat_user_tables")
    return {name: (read, scans) for name, read, scans in rows}


def _is_told(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> bool:
    """Return whether the connections have reported their statistics, which they do when they end."""
    return all(after[name][1] - before[name][1] >= ROUNDS for name in TABLES)
