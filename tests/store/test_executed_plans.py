# SPDX-License-Identifier: Apache-2.0
"""Executed plans of the store's statements on both databases, each of whose large tables has a million rows: what a
statement reads depends on what it returns or changes, and not on the size of the store.

`LIMNOS_TEST_PLANTED` is the number of rows; a few suffice to see a statement that reads a whole table. On SQLite a
statement's work is the number of instructions of its virtual machine. On PostgreSQL it is the number of rows and pages
that the nodes of the plan read, with generic plans, as the server's connections use them: those made while the tables
were empty, and those with new statistics.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

import psycopg
import pytest

from limnos.store.backends.migrate import migrate
from limnos.store.backends.read_connections import BY_INDEX
from limnos.store.backends.table_statistics import OUTGROWN, statistics_query
from limnos.store.sql import Sql
from tests.backends import PostgresServer
from tests.store.planted import literals, params_of, plant
from tests.store.statements import statements

PLANTED: Final = int(os.environ.get("LIMNOS_TEST_PLANTED", "20000"))
INSTRUCTIONS_MAX: Final = 50_000
INSTRUCTIONS_FOR_ROW: Final = 200
READ_MAX: Final = 3_000
READ_FOR_ROW: Final = 6
PAGES_MAX: Final = 4_000
PAGES_FOR_ROW: Final = 12
SAMPLED_EVERY: Final = 100

_SWEEP = "deletes the rows of objects that are gone, once an hour"
_WHOLE = "reads a whole metalake, for an export or a system table"
_SERVERS = "the table has a row for each server, webhook or import"
_RUNNING = "the table has a row for each lock, request or lease of work that runs, or ended a few minutes ago"
_REWRITES = "the table has a row for each rewrite that waits or runs"
_USERS = "reads the tokens of one user or of all service accounts, or the plans and files of one reader"
_CATALOG = "reads the protections, former names or names with a separator of one catalog, for an administrator"
_TASKS = "reads the tasks of a week, some hundreds"
_RUNS = "reads the runs or jobs of one metalake until the page is full; old ones are deleted"
ACCEPTED: Final[Mapping[str, str]] = {
    r".*SWEEPS?(\[.*|_\w+)?|activity\.pipelines:UNUSED|idempotency:PRUNE|objects\.former_names:FORGET_EXPIRED": _SWEEP,
    r"exchange\.exports:(COLUMN_STATISTICS|DECLARATIONS|GRANTS|LANCE_VERSIONS|MODEL_VERSIONS|POLICED|PROTECTED)": (
        _WHOLE
    ),
    r"exchange\.exports:(RESTRICTIONS|STATISTICS|TAGGED|USES)|exchange\.system_tables:(OWNING|RANGES)": _WHOLE,
    r"exchange\.imports:(ALL|IDLE)|activity\.webhooks:(COUNT|DUE)": _SERVERS,
    r"activity\.future_times:(IS_ANY_AHEAD|REPAIRS.*)|activity\.lease_holders:(HOLDERS|ENDS.*)": _RUNNING,
    r"activity\.sqlpp_locks:(STANDING|TOKENS|UPGRADES)|activity\.sqlpp_requests:(CANCEL.*|KEPT|OVER|RUNS)": _RUNNING,
    r"activity\.rewrites:(BY_TOKEN|COUNT_OPEN|DELAYED|DUE|DUE_METALAKE|LEASE_OF_HOLDER|RELEASE|RENEW.*)": _REWRITES,
    r"activity\.maintenance:LOST": _REWRITES,
    r"identity\.tokens:(ACCOUNTS|ALL|CONSOLE|COUNT_VALID|LINE|OF_USER|OPENED_BY|SECRETS)": _USERS,
    r"objects\.restricted_reads:OF_READER|activity\.scan_plans:OLDER": _USERS,
    r"objects\.former_names:(CATALOG|CLOSED_IN_ZONE|COUNTS|IN_ZONE|KEEP_OBJECT)|objects\.protection:WITHIN": _CATALOG,
    r"objects\.nesting:(ANYWHERE|CONFLICTS|COUNTS?|IS_TAKEN|NESTED_ONE)|objects\.trash:REMEMBERED": _CATALOG,
    r"activity\.tasks:(ANY_OF|COUNTS|DUE|FORGET|LIST.*|OF_KIND|PAYLOADS)": _TASKS,
    r"activity\.runs:PAGES\[\(False, '\w+'\)\]|activity\.template_jobs:(DUE|WAITING)": _RUNS,
    r"activity\.schedules:DUE": "reads the schedules whose job runs; a node looks at those that are due at once",
    r"activity\.maintenance:OPERATIONS_OF_METALAKE": _RUNS,
    r"exchange\.system_tables:AUDIT_RANGES": (
        "reads the times of a metalake's records, to divide a system table into parts"
    ),
    r"activity\.audit:_select_period\(since\)|activity\.feed:change_page\(all\)": (
        "reads a window of at most some thousand keys"
    ),
    r"activity\.audit:_select_period\(few\)": "runs for a filter that fewer than 2,000 records pass, which was counted before",
    r"activity\.maintenance:FINDINGS_OF_KIND": (
        "reads the findings of tables in the order of ids until the page is full"
    ),
    r"activity\.orphan_files:FENCED_TABLES": "reads the files that wait for their deletion",
    r"identity\.access_facts:HOLDING": "reads the users of one metalake in the order of names until the page is full",
    r"identity\.access_facts:CHOSEN": "PostgreSQL reads the users of one metalake while they are some thousands",
    r"identity\.roles:HOLDERS": "reads the users of one metalake with their roles, for the list of users",
    r"objects\.dependencies:FROM_OUTSIDE": "DROP DATAVERSE reads the objects that it drops",
    r"objects\.owners:CONTAINERS": "the planner chooses between the objects of one owner and all containers",
    r"objects\.location_reconciliation:DOCUMENTS_WITH": "searches all documents once, after an upgrade of an old release",
    r"activity\.search_index:INDEX_.*": "names words of a full-text table, which has to have them",
}
"""Patterns of statements that may read more, each with the reason."""


def is_accepted(name: str) -> bool:
    """Return whether a statement may read more than it returns."""
    return any(re.fullmatch(pattern, name) for pattern in ACCEPTED)


def judged() -> dict[str, Sql]:
    """Return the statements that both databases can execute, by name."""
    return {
        name: statement
        for name, statement in statements().items()
        if not name.startswith("backends.") and not name.endswith("_POSTGRES") and not is_accepted(name)
    }


def test_every_reason_has_a_statement() -> None:
    """Each pattern of accepted statements matches one."""
    names = list(statements())

    assert [pattern for pattern in ACCEPTED if not any(re.fullmatch(pattern, name) for name in names)] == []


# -- SQLite --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """An SQLite store with many rows."""
    path = tmp_path_factory.mktemp("planted") / "limnos.db"
    migrate(str(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        with connection:
            plant(connection, PLANTED)
        yield connection


def instructions_of(file: sqlite3.Connection, name: str, statement: Sql) -> tuple[int, int]:
    """Execute a statement and undo it. Returns the number of instructions, and of rows returned or changed."""
    count = 0

    def sample() -> bool:
        nonlocal count
        count += SAMPLED_EVERY
        return False

    file.execute("BEGIN")
    file.set_progress_handler(sample, SAMPLED_EVERY)
    try:
        cursor = file.execute(statement.sqlite, statement.values(params_of(name, statement)))
        return count, max(len(cursor.fetchall()), cursor.rowcount)
    except sqlite3.IntegrityError:
        return count, 0  # an insert found a row with its key
    finally:
        file.set_progress_handler(None, 0)
        file.rollback()


def test_work_on_sqlite_depends_on_the_rows_of_the_answer(file: sqlite3.Connection) -> None:
    """No statement executes more instructions than its rows need, but for those whose reason is listed."""
    work = {name: instructions_of(file, name, statement) for name, statement in judged().items()}

    assert {
        name: each for name, each in work.items() if each[0] > INSTRUCTIONS_MAX + INSTRUCTIONS_FOR_ROW * each[1]
    } == {}


# -- PostgreSQL ----------------------------------------------------------------------------------------------------

Work = dict[str, tuple[int, int, int]]
"""For each statement the rows and pages that it read, and the rows that it returned or changed."""


class PlantedDatabase:
    """A connection with the server's settings, on which all statements are prepared."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        connection.execute(f"SELECT {BY_INDEX}".encode())
        self.statements = list(judged().items())
        for number, (_, statement) in enumerate(self.statements):
            connection.execute(f"PREPARE s{number} AS {statement.asyncpg}".encode())

    def work(self) -> Work:
        """Execute all prepared statements and undo each."""
        return {
            name: self._execute(number, name, statement) for number, (name, statement) in enumerate(self.statements)
        }

    def _execute(self, number: int, name: str, statement: Sql) -> tuple[int, int, int]:
        arguments = literals(statement.values(params_of(name, statement)))
        call = f"EXECUTE s{number}({arguments})" if arguments else f"EXECUTE s{number}"
        explain = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {call}"
        with self.connection.transaction(force_rollback=True):
            try:
                row = self.connection.execute(explain.encode()).fetchone()
            except psycopg.errors.IntegrityError:
                return 0, 0, 0  # an insert found a row with its key
        assert row is not None
        plan = row[0][0]["Plan"]
        nodes = list(nodes_of(plan))
        changed = [each["Plans"][0] for each in nodes if each["Node Type"] == "ModifyTable" and each.get("Plans")]
        rows = max(each["Actual Rows"] * each["Actual Loops"] for each in (plan, *changed))
        read = sum(rows_read(each) for each in nodes if "Relation Name" in each or not each.get("Plans"))
        return round(read), plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], round(rows)


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a plan's nodes."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes_of(below)


def rows_read(node: dict[str, Any]) -> float:
    """Return the number of rows that a node read, also those that it did not pass on."""
    removed: float = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    count: float = (node["Actual Rows"] + removed) * node["Actual Loops"]
    return count


def too_much(work: Work) -> Work:
    """Return the statements that read more than their rows need."""
    return {
        name: (read, pages, rows)
        for name, (read, pages, rows) in work.items()
        if read > READ_MAX + READ_FOR_ROW * rows or pages > PAGES_MAX + PAGES_FOR_ROW * rows
    }


@pytest.fixture(scope="module")
def planted(postgres_server: PostgresServer) -> Iterator[PlantedDatabase]:
    """A PostgreSQL store with many rows, which the database itself never analyzes. All statements were prepared, and
    executed once, while its tables were empty.
    """
    address = postgres_server.empty_database()
    migrate(address)
    with psycopg.connect(address, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        for (name,) in tables.fetchall():
            connection.execute(f'ALTER TABLE "{name}" SET (autovacuum_enabled = off)'.encode())
        database = PlantedDatabase(connection)
        database.work()
        plant(connection, PLANTED)
        yield database


@pytest.mark.integration
def test_work_on_postgres_depends_on_the_rows_of_the_answer(planted: PlantedDatabase) -> None:
    """After the server has collected the statistics of the tables that grew, no statement reads more than its rows
    need, but for those whose reason is listed. That is so on connections whose plans are from before.
    """
    outgrown = [name for (name,) in planted.connection.execute(OUTGROWN.asyncpg.encode()).fetchall()]
    for name in outgrown:
        planted.connection.execute(statistics_query(name)[0].asyncpg.encode())

    assert {"node", "document", "owner", "change"} <= set(outgrown)
    assert planted.connection.execute(OUTGROWN.asyncpg.encode()).fetchall() == []
    assert too_much(planted.work()) == {}
