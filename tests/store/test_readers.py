"""How PostgreSQL carries out what nodes read and write: by index, whatever it knows of the tables."""

from __future__ import annotations

import time

import pytest

from tests.backends import Database, Lab, PostgresServer
from tests.store.world import add_namespace, make_world

ROUNDS = 120
"""A plan is kept for good after five; the table has several pages by then."""


@pytest.mark.integration
def test_no_table_is_read_whole(postgres_server: PostgresServer) -> None:
    """Plans made while a table was small, and before the database ever counted its rows, go by its index still when it has grown."""
    database = postgres_server.fresh_database()
    lab = Lab(database)
    try:
        world = make_world(lab)
        node = lab.open()
        for number in range(ROUNDS):
            lab.write(lambda tx, number=number: add_namespace(tx, world.main, f"n{number}"), zone=world.main.id)
            moved = lab.gate([(0, 0), (world.main.id, number)], store=node)
            assert [change.revision for change in moved.changes if change.zone == world.main.id] == [number + 1]
    finally:
        lab.close()

    deadline = time.monotonic() + 20
    while (found := _read(database)) is None and time.monotonic() < deadline:  # told when a connection has ended
        time.sleep(0.05)
    assert found == []


def _read(database: Database) -> list[str] | None:
    """The tables of which rows were read without an index, more than there are; None while nobody has told."""
    rows = database.sql(
        "SELECT relname, seq_tup_read, coalesce(idx_scan, 0) + seq_scan FROM pg_stat_user_tables WHERE relname IN ('change', 'node')"
    )
    if len(rows) < 2 or min(scans for _, _, scans in rows) < ROUNDS:
        return None
    return [name for name, read, _ in rows if read > ROUNDS]
