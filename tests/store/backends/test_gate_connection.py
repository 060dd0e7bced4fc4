# SPDX-License-Identifier: Apache-2.0
"""The gate's own connection: result values, errors, timeouts, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest

from limnos.store.backends.gate_connection import GateConnection, open_gate_connection
from limnos.store.sql import Sql
from tests.backends import Database, PostgresServer

pytestmark = pytest.mark.integration
WAIT_S = 300.0
SUM = Sql("SELECT :first::bigint + :second::bigint, 'it is π'::text, NULL::bigint, NULL::text")
LISTED = Sql("SELECT each FROM unnest(:all::bigint[]) each WHERE each > :above")
SLEEP = Sql("SELECT pg_sleep(:seconds::bigint)")
DIVIDED = Sql("SELECT 7 / :by::bigint")


@pytest.fixture
def database(postgres_server: PostgresServer) -> Database:
    """A database that only this test uses."""
    return postgres_server.fresh_database()


def run_story(database: Database, story: Callable[[GateConnection], Awaitable[object]]) -> None:
    """Run a scenario of a connection."""

    async def run_with_connection() -> None:
        gate_connection = await open_gate_connection(database.address)
        try:
            await story(gate_connection)
        finally:
            gate_connection.close()

    asyncio.run(run_with_connection())


async def until(holds: Callable[[], bool]) -> None:
    """Run the event loop until a condition is true."""
    end = asyncio.get_running_loop().time() + WAIT_S
    for _ in iter(holds, True):
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.001)


def test_values_are_returned_row_by_row_with_their_types(database: Database) -> None:
    """Integers, texts and nulls are returned as such, row by row, for repeated and interleaved statements."""

    async def story(gate_connection: GateConnection) -> None:
        for first in (-1, 2**62):
            rows = await gate_connection.rows(SUM, {"first": first, "second": 1}, timeout_s=WAIT_S)
            assert rows == [(first + 1, "it is π", None, None)]
            assert await gate_connection.rows(LISTED, {"all": [3, 1, 5], "above": 2}, timeout_s=WAIT_S) == [(3,), (5,)]
            assert await gate_connection.rows(LISTED, {"all": [], "above": 2}, timeout_s=WAIT_S) == []

    run_story(database, story)


def test_large_statement_is_sent_completely(database: Database) -> None:
    """A statement of several megabytes is sent completely, although the socket accepts it in pieces."""
    count = 1_000_000

    async def story(gate_connection: GateConnection) -> None:
        rows = await gate_connection.rows(
            LISTED, {"all": list(range(10**6, 10**6 + count)), "above": 10**6 + count - 3}, timeout_s=WAIT_S
        )
        assert rows == [(10**6 + count - 2,), (10**6 + count - 1,)]

    run_story(database, story)


def test_failed_statement_does_not_end_the_connection(database: Database) -> None:
    """A statement that the database refuses raises its error, and the connection answers the next statement."""

    async def story(gate_connection: GateConnection) -> None:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await gate_connection.rows(DIVIDED, {"by": 0}, timeout_s=WAIT_S)
        assert await gate_connection.rows(DIVIDED, {"by": 7}, timeout_s=WAIT_S) == [(1,)]
        assert not gate_connection.is_closed

    run_story(database, story)


def test_second_concurrent_statement_is_refused(database: Database) -> None:
    """A second statement while one is running is refused, and the first one gets its answer."""

    async def story(gate_connection: GateConnection) -> None:
        await gate_connection.rows(SUM, {"first": 1, "second": 1}, timeout_s=WAIT_S)
        first = asyncio.ensure_future(gate_connection.rows(SUM, {"first": 1, "second": 1}, timeout_s=WAIT_S))
        await asyncio.sleep(0)
        with pytest.raises(psycopg.OperationalError, match="a query is in progress"):
            await gate_connection.rows(SUM, {"first": 5, "second": 5}, timeout_s=WAIT_S)
        assert (await first)[0][0] == 2

    run_story(database, story)


@pytest.mark.parametrize("before", [0.01, 60.0])
def test_statement_timeout_closes_the_connection(database: Database, before: float) -> None:
    """A statement that exceeds its timeout raises TimeoutError and closes the connection, whatever the timeout of the
    previous statement was.
    """

    async def story(gate_connection: GateConnection) -> None:
        await gate_connection.rows(SLEEP, {"seconds": 0}, timeout_s=WAIT_S)
        if before > 1:
            await gate_connection.rows(SLEEP, {"seconds": 0}, timeout_s=before)
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            await gate_connection.rows(SLEEP, {"seconds": 60}, timeout_s=0.05)
        assert asyncio.get_running_loop().time() - began < WAIT_S
        assert gate_connection.is_closed
        with pytest.raises(psycopg.OperationalError, match="closed"):
            await gate_connection.rows(SLEEP, {"seconds": 0}, timeout_s=WAIT_S)

    run_story(database, story)


def test_earlier_timeout_does_not_end_a_later_statement(database: Database) -> None:
    """The timeout of an earlier statement that was answered does not end a later one with a longer timeout."""

    async def story(gate_connection: GateConnection) -> None:
        await gate_connection.rows(SLEEP, {"seconds": 0}, timeout_s=0.3)
        assert len(await gate_connection.rows(SLEEP, {"seconds": 1}, timeout_s=WAIT_S)) == 1

    run_story(database, story)


def test_closed_idle_connection_is_detected(database: Database) -> None:
    """If the database closes an idle connection, the client notices it before the next statement."""

    async def story(gate_connection: GateConnection) -> None:
        await asyncio.to_thread(database.sql, "SELECT pg_terminate_backend(?)", gate_connection.backend_pid)
        await until(lambda: gate_connection.is_closed)

    run_story(database, story)


def test_connection_lost_during_a_statement_raises_an_error(database: Database) -> None:
    """If the connection is cut during a statement, the waiting caller gets an error."""

    async def story(gate_connection: GateConnection) -> None:
        waiting = asyncio.ensure_future(gate_connection.rows(SLEEP, {"seconds": 60}, timeout_s=WAIT_S))
        await until(lambda: gate_connection.monitor.since is not None)
        gate_connection.monitor.cut()
        with pytest.raises(psycopg.OperationalError, match="closed"):
            await waiting

    run_story(database, story)
