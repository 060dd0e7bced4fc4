# SPDX-License-Identifier: Apache-2.0
"""Reads of SQLite in a thread: they return what reads in the event loop return, each in one snapshot, and end with the
store.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.store.backends.sqlite import SqliteStore
from limnos.store.sql import Load, Row, Sql, read_rows
from tests.backends import StoreLab, sqlite_copy, sqlite_template

VALUES = Sql(
    "WITH RECURSIVE numbers(n) AS (SELECT :first UNION ALL SELECT n + 1 FROM numbers WHERE n < :last)"
    " SELECT n, NULL, 'é\"' || n, n * 9007199254740993, n / 2.0 FROM numbers ORDER BY n DESC"
)
NAMES = Sql("SELECT name FROM principal WHERE name = :name")
ENDLESS = Sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
MISSING = Sql("SELECT one FROM no_such_table")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store."""
    return sqlite_template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def lab(template: Path, tmp_path: Path) -> Iterator[StoreLab]:
    """A lab on SQLite."""
    lab = StoreLab(sqlite_copy(template, tmp_path))
    yield lab
    lab.close()


def store_of(lab: StoreLab) -> SqliteStore:
    """Return the lab's store."""
    assert isinstance(lab.store, SqliteStore)
    return lab.store


def test_rows_are_those_of_a_read_in_the_event_loop(lab: StoreLab) -> None:
    """Numbers of 64 bits, texts, fractions and NULL come in the statement's order, also if there are no rows; each
    statement counts.
    """
    store = store_of(lab)
    before = store.statements
    for last in (0, 1, 700):
        rows = lab.run(store.load_aside(lambda last=last: read_rows(VALUES, first=1, last=last)))  # type: ignore[misc]
        assert rows == store.find((VALUES, {"first": 1, "last": last}))
    assert lab.run(store.load_aside(lambda: read_rows(NAMES, name="nobody"))) == []
    assert store.statements - before == 7


def test_statements_of_a_load_see_one_snapshot(lab: StoreLab) -> None:
    """A second statement sees nothing that another connection committed after the first."""
    store = store_of(lab)
    counted = Sql("SELECT count(*) FROM zone_note")
    lab.database.sql("CREATE TABLE zone_note (n)")

    def load() -> Load[tuple[list[Row], list[Row]]]:
        first = yield from read_rows(counted)
        lab.database.sql("INSERT INTO zone_note VALUES (1)")
        return first, (yield from read_rows(counted))

    assert lab.run(store.load_aside(load)) == ([(0,)], [(0,)])
    assert lab.run(store.load_aside(lambda: read_rows(counted))) == [(1,)]


def test_event_loop_runs_during_a_long_read_until_the_store_closes(template: Path, tmp_path: Path) -> None:
    """Other coroutines run while a statement works. When the store closes, that statement and the reads that wait end
    with an error, and so does the thread. A later read is refused, and does not wait for ever.
    """
    started = threading.Event()

    def endless() -> Load[list[Row]]:
        started.set()
        return (yield from read_rows(ENDLESS))

    async def story() -> list[object]:
        store = SqliteStore(Path(sqlite_copy(template, tmp_path).address))
        reads = [asyncio.ensure_future(store.load_aside(endless)) for _ in range(2)]
        await asyncio.to_thread(started.wait, 60)
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not any(read.done() for read in reads)
        await store.close()
        with pytest.raises(ServiceUnavailable, match="The server stops"):
            await asyncio.wait_for(store.load_aside(endless), 60)
        return list(await asyncio.gather(*reads, return_exceptions=True))

    errors = asyncio.run(story())

    assert [type(error) for error in errors] == [ServiceUnavailable] * 2
    assert str(errors[1]) == "The server stops: try again"
    assert "limnos-read" not in {each.name for each in threading.enumerate()}


def test_failed_read_leaves_a_usable_connection(lab: StoreLab) -> None:
    """A statement that fails raises the store's error, and the next read works; nothing can be written."""
    store = store_of(lab)

    with pytest.raises(ServiceUnavailable, match="lacks a table or a column"):
        lab.run(store.load_aside(lambda: read_rows(MISSING)))
    assert lab.run(store.load_aside(lambda: read_rows(NAMES, name="nobody"))) == []
    assert store._aside._connection is not None
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        store._aside._connection.execute("DELETE FROM principal")
