# SPDX-License-Identifier: Apache-2.0
"""Reads of audit records in the order of times: each examines its own window of records, on both databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import psycopg
import pytest

from limnos.store.activity.audit import (
    NEWEST,
    PUT,
    SCANNED_AT_ONCE,
    AuditFilter,
    AuditMoment,
    latest_part_read,
)
from limnos.store.backends.migrate import migrate
from limnos.store.sql import Row, Sql, Value
from tests.backends import PostgresServer
from tests.store.planted import literals
from tests.store.test_executed_plans import nodes_of, rows_read

RECORDS: Final = 10 * SCANNED_AT_ONCE
FIRST_MS: Final = 1_000_000
EVERY: Final = 1_000
Query = tuple[Sql, Mapping[str, Value]]
RARE: Final = AuditFilter(metalake_id=1, action="rare", since=0, until=2**62)


def params_of(number: int) -> dict[str, Value]:
    """Return the parameters of a record. Two have the same time; one in a thousand has the action `rare`."""
    texts = dict.fromkeys(
        ("change", "new_path", "detail", "protocol", "request_id", "client", "peer", "credential"), ""
    )
    return texts | {
        "id": number + 1,
        "metalake_id": 1,
        "at": FIRST_MS + number // 2,
        "user": "anna",
        "user_id": 5,
        "outcome": "done",
        "action": "load" if number % EVERY else "rare",
        "kind": "table",
        "object_id": 7,
        "path": "main.a.t",
        "rights": "[]",
        "operation": "load-table",
        "status": 200,
        "zone": 1,
        "revision": number,
        "ordinal": 0,
    }


def read_all(audit_filter: AuditFilter, rows: Callable[[Query], list[Row]], *, limit: int) -> list[int]:
    """Read all records of a filter, window by window. Returns their ids."""
    ids: list[int] = []
    moment: AuditMoment | None = NEWEST
    while moment is not None:
        load = latest_part_read(audit_filter, moment, limit=limit, has_rights=False)
        try:
            query = next(load)
            while True:
                query = load.send(rows(query))
        except StopIteration as stop:
            part = stop.value
        ids += [each.id for each in part.records]
        last = part.records[-1] if len(part.records) >= limit else None
        moment = part.following if last is None else AuditMoment(last.at, last.id)
    return ids


class SqliteRecords:
    """An SQLite store with records. Its work is the number of instructions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.work: list[int] = []

    def rows(self, query: Query) -> list[Row]:
        """Execute a query, and note its work."""
        self.work.append(0)
        self._connection.set_progress_handler(self._sample, 100)
        rows = self._connection.execute(query[0].sqlite, query[0].values(query[1])).fetchall()
        self._connection.set_progress_handler(None, 0)
        return rows

    def _sample(self) -> bool:
        self.work[-1] += 100
        return False


class PostgresRecords:
    """A PostgreSQL store with records. Its work is the number of rows that the nodes of the plan read."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self.work: list[int] = []

    def rows(self, query: Query) -> list[Row]:
        """Execute a query, and note its work."""
        arguments = literals(query[0].values(query[1]))
        self._connection.execute(f"PREPARE one AS {query[0].asyncpg}".encode())
        explained = self._connection.execute(
            f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE one({arguments})".encode()
        ).fetchone()
        rows = self._connection.execute(f"EXECUTE one({arguments})".encode()).fetchall()
        self._connection.execute(b"DEALLOCATE one")
        assert explained is not None
        self.work.append(round(sum(rows_read(each) for each in nodes_of(explained[0][0]["Plan"]))))
        return rows


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteRecords | PostgresRecords]:
    """A store of each kind with records of one metalake."""
    planted = [params_of(number) for number in range(RECORDS)]
    if request.param == "sqlite":
        migrate(str(tmp_path / "limnos.db"))
        with closing(sqlite3.connect(tmp_path / "limnos.db", isolation_level=None)) as file:
            with file:
                file.execute("BEGIN")
                file.executemany(PUT.sqlite, [PUT.values(each) for each in planted])
            yield SqliteRecords(file)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    address = server.empty_database()
    migrate(address)
    with psycopg.connect(address, autocommit=True) as connection:
        with connection.cursor() as cursor:
            cursor.executemany(PUT.psycopg.encode(), planted)
        connection.execute(b"ANALYZE audit")
        yield PostgresRecords(connection)


def test_each_read_examines_its_own_window(records: SqliteRecords | PostgresRecords) -> None:
    """Each read of a filter without an index costs as much as every other, however many records are around it."""
    ids = read_all(RARE, records.rows, limit=1_000)

    assert ids == [number + 1 for number in reversed(range(0, RECORDS, EVERY))]
    assert len(records.work) > 2 * (RECORDS // SCANNED_AT_ONCE)
    windows = [each for each in records.work[1::2] if each]
    assert max(windows) <= 1.25 * min(windows)


@pytest.mark.parametrize("limit", [1, 7, 1_000])
def test_bounds_of_times_are_exact(records: SqliteRecords | PostgresRecords, limit: int) -> None:
    """`since` is included and `until` excluded, also among records with the same time, at each size of a page."""
    since, until = FIRST_MS + 5_000, FIRST_MS + 5_010
    ids = read_all(AuditFilter(metalake_id=1, since=since, until=until), records.rows, limit=limit)
    few = read_all(AuditFilter(metalake_id=1, user="none", since=since, until=until), records.rows, limit=limit)

    assert ids == list(range(10_020, 10_000, -1))
    assert few == []
    assert read_all(AuditFilter(metalake_id=1, since=until, until=since), records.rows, limit=limit) == []


def test_family_of_changes_has_all_changes_of_objects(tmp_path: Path) -> None:
    """`change` finds what happened to objects, and no grants, runs or reads."""
    migrate(str(tmp_path / "limnos.db"))
    changes = ("create", "alter", "commit", "move", "drop", "undrop", "purge", "grant", "start", "")
    planted = [{**params_of(number), "change": change} for number, change in enumerate(changes)]
    with closing(sqlite3.connect(tmp_path / "limnos.db", isolation_level=None)) as file:
        file.executemany(PUT.sqlite, [PUT.values(each) for each in planted])

        ids = read_all(AuditFilter(metalake_id=1, action="change"), SqliteRecords(file).rows, limit=20)

    assert sorted(ids) == [1, 2, 3, 4, 5, 6, 7]


def test_family_of_reads_has_all_actions(tmp_path: Path) -> None:
    """`read` finds loads, the reads of users with a row filter or a mask, and those of files, and no commits."""
    migrate(str(tmp_path / "limnos.db"))
    actions = ("table_read", "table_scan", "fileset_read", "table_commit")
    planted = [{**params_of(number), "action": action} for number, action in enumerate(actions)]
    with closing(sqlite3.connect(tmp_path / "limnos.db", isolation_level=None)) as file:
        file.executemany(PUT.sqlite, [PUT.values(each) for each in planted])

        ids = read_all(AuditFilter(metalake_id=1, action="read"), SqliteRecords(file).rows, limit=10)

    assert sorted(ids) == [1, 2, 3]


@pytest.mark.parametrize("family,numbers", [("grant", [1, 2]), ("access", [1, 2, 3])])
def test_family_of_access_has_changes_and_refusals_alone(tmp_path: Path, family: str, numbers: list[int]) -> None:
    """`grant` finds grants and refused presets, `access` also revoked presets. A preset that changed nothing, and a
    declined request, are in neither.
    """
    migrate(str(tmp_path / "limnos.db"))
    records = (
        ("grant", "change-access-preset", "done"),
        ("", "change-access-preset", "refused"),
        ("revoke", "change-access-preset", "done"),
        ("other", "answer-access-request", "done"),
        ("other", "change-access-preset", "done"),
    )
    planted = [
        {**params_of(number), "change": change, "operation": operation, "outcome": outcome}
        for number, (change, operation, outcome) in enumerate(records)
    ]
    with closing(sqlite3.connect(tmp_path / "limnos.db", isolation_level=None)) as file:
        file.executemany(PUT.sqlite, [PUT.values(each) for each in planted])

        ids = read_all(AuditFilter(metalake_id=1, action=family), SqliteRecords(file).rows, limit=10)

    assert sorted(ids) == numbers
