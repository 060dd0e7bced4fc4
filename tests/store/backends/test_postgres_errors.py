# SPDX-License-Identifier: Apache-2.0
"""Database failures: locked files, full disks and lost connections; certain failures and unknown outcomes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest

from limnos.model.errors import BadRequest, LimnosError, NoSpace, ServiceUnavailable, StateUnknown, StoreDamaged
from limnos.model.permits import upkeep_permit
from limnos.store.backends import postgres, postgres_errors, read_connections, sqlite
from limnos.store.backends.postgres import PostgresStore
from limnos.store.backends.sqlite import SqliteStore
from limnos.store.changes import UNKNOWN, GateResult
from limnos.store.objects.node_reads import node_read
from limnos.store.sql import Sql
from limnos.store.tx import Tx
from tests.backends import PostgresServer, StoreLab, sqlite_copy
from tests.store.test_clock import touch

KILL_ME = "SELECT pg_terminate_backend(pg_backend_pid())"
KILL_ALL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture
def file_lab(sqlite_template: Path, tmp_path: Path) -> Iterator[StoreLab]:
    """A lab on an SQLite file."""
    lab = StoreLab(sqlite_copy(sqlite_template, tmp_path))
    yield lab
    lab.close()


@pytest.fixture
def server_lab(postgres_server: PostgresServer) -> Iterator[StoreLab]:
    """A lab on PostgreSQL."""
    lab = StoreLab(postgres_server.fresh_database())
    yield lab
    lab.close()


class Commit:
    """A write connection whose COMMIT behaves as the test defines, and which otherwise is the real one."""

    def __init__(self, real: sqlite3.Connection, *, commits: bool, error: Exception) -> None:
        self.real = real
        self.commits = commits
        self.error = error

    def execute(self, text: str, *params: object) -> sqlite3.Cursor:
        """Execute a statement. A COMMIT fails before or after it was executed."""
        if text == "COMMIT":
            if self.commits:
                self.real.execute(text)
            raise self.error
        return self.real.execute(text, *params)

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)


# ---------------------------------------------------------------------------------------------------- SQLite


def test_writer_waits_for_another_process(file_lab: StoreLab) -> None:
    """While another process holds the file's write lock, a mutation waits and reads continue. The mutation succeeds
    afterwards.
    """
    store = file_lab.store
    other = sqlite3.connect(file_lab.database.address, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert isinstance(store, SqliteStore)

    async def both() -> tuple[bool, int]:
        waiting = asyncio.create_task(store.submit(file_lab.permit(0), touch))
        await asyncio.sleep(0.05)
        assert store.gate(0, ((0, UNKNOWN),)).clocks[0].revision == 0
        blocked = not waiting.done()
        other.execute("COMMIT")
        return blocked, await waiting

    assert file_lab.run(both()) == (True, 1)
    other.close()


def test_write_lock_timeout_is_unavailable(file_lab: StoreLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the write lock is held for too long, the mutation is Unavailable and nothing is written. The next mutation
    succeeds.
    """
    file_lab.open()
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 20)
    other = sqlite3.connect(file_lab.database.address, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(ServiceUnavailable, match="Nothing was changed; try again"):
        file_lab.write(touch)

    other.execute("COMMIT")
    other.close()
    assert file_lab.write(touch) == 1


def test_full_disk_is_unavailable(file_lab: StoreLab) -> None:
    """On a full disk a mutation is Unavailable and changes nothing. When space is free, the next mutation succeeds."""
    store = file_lab.store
    assert isinstance(store, SqliteStore)
    pages = store._writer.execute("PRAGMA page_count").fetchone()[0]
    store._writer.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(ServiceUnavailable, match="Nothing was changed"):
        file_lab.write(lambda tx: [tx.tasks.create("purge", "x" * 100_000) for _ in range(20)])

    store._writer.execute("PRAGMA max_page_count = 1000000")
    assert file_lab.database.sql("SELECT count(*) FROM task") == [(0,)]
    assert file_lab.write(touch) == 1


def test_failed_commit_with_open_transaction_may_be_retried(file_lab: StoreLab) -> None:
    """If COMMIT fails and the transaction is still open, it is rolled back, and the error says that the writer may
    retry.
    """
    store = file_lab.store
    assert isinstance(store, SqliteStore)
    real = store._writer
    store._writer = Commit(real, commits=False, error=sqlite3.OperationalError("disk I/O error"))  # type: ignore[assignment]

    with pytest.raises(ServiceUnavailable, match="Nothing was changed"):
        file_lab.write(touch)

    store._writer = real
    assert file_lab.clock(0) == (0, 0)
    assert file_lab.write(touch) == 1


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk I/O error"), OSError("gone")])
def test_failed_commit_without_transaction_has_unknown_outcome(file_lab: StoreLab, error: Exception) -> None:
    """If COMMIT fails and no transaction is open, the writer gets the error for an unknown outcome."""
    store = file_lab.store
    assert isinstance(store, SqliteStore)
    real = store._writer
    store._writer = Commit(real, commits=True, error=error)  # type: ignore[assignment]

    with pytest.raises(StateUnknown, match="check before you repeat it"):
        file_lab.write(touch)

    store._writer = real
    assert file_lab.write(touch) == 2


def test_every_writer_of_a_failed_batch_gets_the_error(file_lab: StoreLab) -> None:
    """Every writer of a batch whose COMMIT failed gets the error, and none keeps waiting."""
    store = file_lab.store
    assert isinstance(store, SqliteStore)
    permit = file_lab.permit(0)
    real = store._writer
    store._writer = Commit(real, commits=False, error=sqlite3.OperationalError("disk I/O error"))  # type: ignore[assignment]

    async def together() -> list[object]:
        return await asyncio.gather(*(store.submit(permit, touch) for _ in range(5)), return_exceptions=True)

    outcomes = file_lab.run(together())

    store._writer = real
    assert [type(each) for each in outcomes] == [ServiceUnavailable] * 5


@pytest.mark.parametrize("turns", [0, 1])
def test_writers_of_consecutive_turns_share_one_commit(file_lab: StoreLab, turns: int) -> None:
    """Writers that reach the store in consecutive turns of the event loop share one commit."""
    store = file_lab.store
    assert isinstance(store, SqliteStore)
    permit = file_lab.permit(0)
    seen: list[str] = []
    store._writer.set_trace_callback(seen.append)

    async def write(number: int) -> None:
        for _ in range(turns * number):
            await asyncio.sleep(0)
        await store.submit(permit, touch)

    async def together() -> None:
        await asyncio.gather(*(write(number) for number in range(3)))

    file_lab.run(together())

    store._writer.set_trace_callback(None)
    assert seen.count("COMMIT") == 1


def test_cancelled_writer_does_not_affect_its_batch(file_lab: StoreLab) -> None:
    """A cancelled writer does not affect the others in its batch."""
    store = file_lab.store
    permit = file_lab.permit(0)

    async def together() -> tuple[int, bool]:
        tasks = [asyncio.create_task(store.submit(permit, touch)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        return sum(isinstance(each, int) for each in done), tasks[1].cancelled()

    assert file_lab.run(together()) == (2, True)
    assert file_lab.write(touch) == file_lab.clock(0)[0]


# ------------------------------------------------------------------------------------------------ PostgreSQL


@pytest.mark.integration
def test_closed_idle_connections_are_replaced(server_lab: StoreLab) -> None:
    """After the database has closed every idle connection, writes, gate reads and loads succeed."""
    server_lab.write(touch)
    server_lab.gate([(0, UNKNOWN)])
    server_lab.load(node_read(1))

    server_lab.database.sql(KILL_ALL)
    server_lab.run(asyncio.sleep(0.05))

    assert server_lab.write(touch) == 2
    assert server_lab.gate([(0, UNKNOWN)]).clocks[0].revision == 2
    assert server_lab.load(node_read(1)) is None


def dying_once(runs: list[int]) -> Callable[[Tx], int]:
    """Return a mutation whose connection is terminated in its first execution. Each execution is recorded."""

    def mutation(tx: Tx) -> int:
        runs.append(1)
        if len(runs) == 1:
            with pytest.raises(psycopg.OperationalError):
                tx.session.connection.execute(KILL_ME)  # type: ignore[attr-defined]
        return touch(tx)

    return mutation


@pytest.mark.integration
def test_mutation_is_retried_if_connection_is_lost_before_commit(server_lab: StoreLab) -> None:
    """A mutation whose connection is lost before COMMIT is executed again, and its changes are made exactly once."""
    runs: list[int] = []

    assert server_lab.write(dying_once(runs)) == 1
    assert len(runs) == 2
    assert server_lab.clock(0)[0] == 1


@pytest.mark.integration
def test_mutation_is_unavailable_if_every_connection_is_lost(server_lab: StoreLab) -> None:
    """A mutation whose connection is lost in each execution is Unavailable and changes nothing."""
    with pytest.raises(ServiceUnavailable, match="try again"):
        server_lab.write(lambda tx: tx.session.connection.execute(KILL_ME))  # type: ignore[attr-defined]

    assert server_lab.clock(0) == (0, 0)


@pytest.mark.integration
def test_connection_lost_at_commit_has_unknown_outcome(server_lab: StoreLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the connection is lost at COMMIT, the outcome is unknown, and the mutation is not executed again."""
    runs = []

    def die(point: str) -> None:
        if point == "before-commit":
            server_lab.database.sql(KILL_ALL)

    def mutation(tx: Tx) -> int:
        runs.append(1)
        return touch(tx)

    monkeypatch.setattr(postgres, "fault_point", die)
    with pytest.raises(StateUnknown, match="check before you repeat it"):
        server_lab.write(mutation)

    monkeypatch.undo()
    assert runs == [1]
    assert server_lab.write(touch) == 1


def submit_all(lab: StoreLab, *mutations: Callable[[Tx], object]) -> list[object]:
    """Submit mutations so that they share one batch. Returns their results or errors."""
    permit = lab.permit(0)

    async def together() -> list[object]:
        return await asyncio.gather(*(lab.store.submit(permit, each) for each in mutations), return_exceptions=True)

    return lab.run(together())


TRANSACTIONS = "SELECT count(*), count(DISTINCT xmin::text) FROM change"


@pytest.mark.integration
def test_concurrent_writers_of_one_zone_share_a_transaction(server_lab: StoreLab) -> None:
    """Five concurrent writers of one zone on one node get five revisions in one transaction."""
    assert submit_all(server_lab, *[touch] * 5) == [1, 2, 3, 4, 5]

    assert server_lab.database.sql(TRANSACTIONS) == [(5, 1)]


@pytest.mark.integration
def test_refused_text_fails_only_its_own_mutation(server_lab: StoreLab) -> None:
    """If the database refuses a text in one mutation of a batch, only that mutation fails and the others commit."""
    outcomes = submit_all(server_lab, touch, lambda tx: tx.tasks.create("nul\0", "x"), touch)

    assert isinstance(outcomes[1], BadRequest)
    assert [outcomes[0], outcomes[2]] == [1, 2]
    assert server_lab.database.sql("SELECT count(*) FROM task") == [(0,)]


@pytest.mark.integration
def test_batch_is_retried_if_its_connection_is_lost(server_lab: StoreLab) -> None:
    """If the connection is lost in a batch, all of its mutations are executed again, and each is applied exactly
    once.
    """
    runs: list[int] = []

    assert submit_all(server_lab, touch, dying_once(runs), touch) == [1, 2, 3]
    assert server_lab.clock(0)[0] == 3


@pytest.mark.integration
def test_connection_lost_at_batch_commit_has_unknown_outcome(
    server_lab: StoreLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the connection is lost at the COMMIT of a batch, every writer gets the error for an unknown outcome."""

    def die(point: str) -> None:
        if point == "before-commit":
            server_lab.database.sql(KILL_ALL)

    monkeypatch.setattr(postgres, "fault_point", die)
    outcomes = submit_all(server_lab, touch, touch, touch)

    monkeypatch.undo()
    assert [type(each) for each in outcomes] == [StateUnknown] * 3
    assert server_lab.write(touch) == 1


@pytest.mark.integration
def test_cancelled_writer_that_had_not_begun_is_not_executed(server_lab: StoreLab) -> None:
    """A cancelled writer does not affect the others in its batch. Its own mutation is not executed if it had not
    begun.
    """
    store, permit = server_lab.store, server_lab.permit(0)

    async def together() -> list[object]:
        tasks = [asyncio.create_task(store.submit(permit, touch)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    outcomes = server_lab.run(together())

    assert [outcomes[0], outcomes[2]] == [1, 2]
    assert isinstance(outcomes[1], asyncio.CancelledError)
    assert server_lab.clock(0)[0] == 2


@pytest.mark.integration
def test_freshness_read_is_retried_on_a_new_connection(server_lab: StoreLab) -> None:
    """A gate read whose connection is terminated is sent again on a new connection and answered."""
    store = server_lab.store
    assert isinstance(store, PostgresStore)
    server_lab.database.sql("ALTER TABLE clock RENAME TO clock_real")
    server_lab.database.sql("CREATE VIEW clock AS SELECT c.* FROM clock_real c, pg_sleep(1)")

    async def killed() -> object:
        reading = asyncio.create_task(store.gate_async(0, ((0, UNKNOWN),)))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(server_lab.database.sql, KILL_ALL)
        return await reading

    gate_result = server_lab.run(killed())

    server_lab.database.sql("DROP VIEW clock")
    server_lab.database.sql("ALTER TABLE clock_real RENAME TO clock")
    assert isinstance(gate_result, GateResult)
    assert gate_result.clocks[0].revision == 0


@pytest.mark.integration
def test_freshness_read_is_unavailable_after_two_timeouts(server_lab: StoreLab) -> None:
    """A gate read that exceeds its timeout twice is Unavailable. The next one succeeds."""
    store = PostgresStore(server_lab.database.address, silence_s=0.1)
    server_lab.database.sql("ALTER TABLE clock RENAME TO clock_real")
    server_lab.database.sql("CREATE VIEW clock AS SELECT c.* FROM clock_real c, pg_sleep(30)")

    async def ask() -> GateResult:
        with pytest.raises(ServiceUnavailable, match="does not answer"):
            await store.gate_async(0, ((0, UNKNOWN),))
        server_lab.database.sql("DROP VIEW clock")
        server_lab.database.sql("ALTER TABLE clock_real RENAME TO clock")
        gate_result = await store.gate_async(0, ((0, UNKNOWN),))
        await store.close()
        return gate_result

    assert server_lab.run(ask()).clocks[0].revision == 0


@pytest.mark.integration
def test_unreachable_database_is_unavailable_with_retry_time() -> None:
    """If the database is unreachable, writes, gate reads and loads are Unavailable with a time to retry."""
    store = PostgresStore("postgresql://nobody@127.0.0.1:1/none")

    async def ask() -> list[object]:
        tries = [
            store.submit(upkeep_permit("t"), touch),
            store.gate_async(0, ((0, UNKNOWN),)),
            store.load_async(0, ((0, UNKNOWN),), lambda: node_read(1)),
        ]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        await store.close()
        return outcomes

    outcomes = asyncio.run(ask())

    assert [type(each) for each in outcomes] == [ServiceUnavailable] * 3


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError('connection to server at "h" failed: FATAL:  sorry, too many clients already'),
        psycopg.OperationalError(
            "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute"
        ),
        asyncpg.TooManyConnectionsError("sorry, too many clients already"),
    ],
)
def test_exhausted_connections_error_names_the_setting(error: psycopg.Error | asyncpg.PostgresError) -> None:
    """If the database has no free connection, the error says so and names the setting to change, instead of reporting a
    broken network.
    """
    errors = [postgres_errors.read_error(error)]
    if isinstance(error, psycopg.Error):
        errors.append(postgres_errors.write_error(error))

    messages = [each.message for each in errors if each is not None]
    assert len(messages) == len(errors)
    assert [text for text in messages if "does not answer" in text or "max_connections" not in text] == []


def test_refused_connection_is_an_unreachable_database() -> None:
    """A refused connection is reported as a database that does not answer."""
    error = postgres_errors.read_error(OSError("Connection refused"))

    assert error is not None
    assert error.message == "The database does not answer: try again"


FAILED_STATES = [
    ("53100", NoSpace, "no space left"),
    ("53200", ServiceUnavailable, "out of memory"),
    ("53300", ServiceUnavailable, "no connection left"),
    ("58030", ServiceUnavailable, "(input/output error)"),
    ("57P01", ServiceUnavailable, "stopping or starting"),
    ("57P03", ServiceUnavailable, "stopping or starting"),
    ("57014", ServiceUnavailable, "cancelled a statement"),
    ("25006", ServiceUnavailable, "read-only"),
    ("XX001", StoreDamaged, "limnos server check"),
    ("XX002", StoreDamaged, "limnos server check"),
    ("XX000", ServiceUnavailable, "internal error"),
    ("42P01", ServiceUnavailable, "lacks a table"),
    ("42501", ServiceUnavailable, "does not allow"),
    ("28P01", ServiceUnavailable, "credentials"),
    ("3D000", ServiceUnavailable, "does not exist"),
    ("0A000", ServiceUnavailable, "changed by another program"),
]


@pytest.mark.parametrize("state, kind, text", FAILED_STATES)
def test_states_of_the_database_have_their_cause_in_the_message(state: str, kind: type[LimnosError], text: str) -> None:
    """Each SQLSTATE is reported as what it is, by both drivers, without the database's own words."""
    by_asyncpg = asyncpg.PostgresError.new({"C": state, "M": 'table "secret" of /srv/pg'})
    by_psycopg = psycopg.errors.lookup(state)('table "secret" of /srv/pg')

    reads = [postgres_errors.read_error(by_asyncpg), postgres_errors.read_error(by_psycopg)]
    write = postgres_errors.write_error(by_psycopg)

    assert [type(each) for each in (*reads, write)] == [kind] * 3
    assert [each for each in reads if each is None or text not in each.message or "secret" in each.message] == []
    assert write is not None
    assert "othing was changed" in write.message


@pytest.mark.parametrize("state", ["23505", "22P02", "42601"])
def test_states_of_a_wrong_statement_stay(state: str) -> None:
    """A statement that is wrong itself is not reported as a failure of the database."""
    error = psycopg.errors.lookup(state)("wrong")

    assert (postgres_errors.read_error(error), postgres_errors.write_error(error)) == (None, None)


@pytest.mark.integration
def test_missing_table_is_unavailable(server_lab: StoreLab) -> None:
    """While a table is renamed, reads and writes are unavailable, and work again after it."""
    query = (Sql("SELECT count(*) FROM task"), {})

    async def export() -> object:
        async with server_lab.store.snapshot() as moment:
            return await moment.rows(query)

    assert server_lab.find(query) == [(0,)]
    server_lab.database.sql("ALTER TABLE task RENAME TO elsewhere")

    with pytest.raises(ServiceUnavailable, match="lacks a table"):
        server_lab.find(query)
    with pytest.raises(ServiceUnavailable, match="lacks a table"):
        server_lab.run(export())
    with pytest.raises(ServiceUnavailable, match=r"lacks a table.*nothing was changed"):
        server_lab.write(lambda tx: tx.tasks.create("purge", "{}"))

    server_lab.database.sql("ALTER TABLE elsewhere RENAME TO task")
    server_lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    assert server_lab.find(query) == [(1,)]


@pytest.mark.integration
def test_missing_clocks_are_unavailable(server_lab: StoreLab) -> None:
    """While the clocks are renamed, gate reads and the locks of writes are unavailable."""
    permit = server_lab.permit(0)
    server_lab.database.sql("ALTER TABLE clock RENAME TO elsewhere")

    with pytest.raises(ServiceUnavailable, match="lacks a table"):
        server_lab.gate([(0, UNKNOWN)], epoch=0)
    with pytest.raises(ServiceUnavailable, match=r"lacks a table.*nothing was changed"):
        server_lab.run(server_lab.store.submit(permit, touch))

    server_lab.database.sql("ALTER TABLE elsewhere RENAME TO clock")
    assert server_lab.run(server_lab.store.submit(permit, touch)) == 1


@pytest.mark.integration
def test_silent_new_connection_is_not_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a database accepts a connection and then is silent, a gate read does not open a second one."""
    opened: list[asyncio.StreamWriter] = []
    monkeypatch.setattr(read_connections, "CONNECT_S", 0.1)

    async def story() -> None:
        silent = await asyncio.start_server(lambda _, writer: opened.append(writer), "127.0.0.1", 0)
        store = PostgresStore(f"postgresql://nobody@127.0.0.1:{silent.sockets[0].getsockname()[1]}/none", silence_s=0.1)
        with pytest.raises(ServiceUnavailable, match="does not answer"):
            await store.gate_async(0, ((0, UNKNOWN),))
        await store.close()
        for writer in opened:
            writer.close()
        silent.close()

    asyncio.run(story())

    assert len(opened) == 1
