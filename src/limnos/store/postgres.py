"""PostgreSQL (15 or newer): several stateless nodes over one primary.

May import `model`, `telemetry` and this room. Mutations run one transaction each in worker threads over psycopg, at READ
COMMITTED with explicit locks; the gate and loads run on asyncpg, loads at REPEATABLE READ, READ ONLY.
"""

from __future__ import annotations

import asyncio
import queue
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

import asyncpg
import psycopg

from limnos.model.errors import BadRequest, StateUnknown, Unavailable
from limnos.store.changes import CLOCK_HOLD, CLOCKS_READ, Moved, clock_params, gate_query_postgres, moved_of
from limnos.store.faults import reach
from limnos.store.sql import Load, Params, Row, Sql
from limnos.store.tx import Batch, Mutation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.permits import Permit
    from limnos.store.interface import Known

T = TypeVar("T")
LOCK_CLASS = 0x4C494D  # "LIM": the first key of our advisory locks
ATTEMPTS = 3
_SHARED = Sql("SELECT pg_advisory_xact_lock_shared(:space, hashtext(:zone))")
_SHARED_TWICE = Sql(
    "SELECT pg_advisory_xact_lock_shared(:space, hashtext(:server)), pg_advisory_xact_lock_shared(:space, hashtext(:metalake))"
)
_EXCLUSIVE = Sql("SELECT pg_advisory_xact_lock(:space, hashtext(:zone))")
_NEXT_ID = Sql("SELECT nextval('limnos_id')")
_AGAIN = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation)
_LOST = (
    asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError, TimeoutError,
    asyncpg.OperatorInterventionError,  # it is shutting down, starting up, or was told to give up
    asyncpg.InsufficientResourcesError,  # too many connections
    asyncpg.InternalClientError,  # what its driver says of a connection that was ended while it was idle
)  # fmt: skip


_NO_TEXT = "A name or another text holds U+0000, which no stored text can: leave it out"


class _Reader(Protocol):
    """An asyncpg connection, from a pool or not."""

    async def fetch(self, query: str, *args: object) -> list[asyncpg.Record]: ...


async def _fetch(connection: _Reader, statement: Sql, params: Params) -> list[Row]:
    try:
        rows = await connection.fetch(statement.asyncpg, *[params[name] for name in statement.order])
    except asyncpg.CharacterNotInRepertoireError:
        raise BadRequest(_NO_TEXT) from None
    return [tuple(row) for row in rows]


def _lock(zone: int) -> Params:
    return {"space": LOCK_CLASS, "zone": str(zone)}


class PostgresSession:
    """A psycopg connection inside an open transaction."""

    def __init__(self, connection: psycopg.Connection, zone: int) -> None:
        self.connection = connection
        self.zone = zone

    def rows(self, statement: Sql, params: Params) -> list[Row]:
        """Run a statement that returns rows."""
        return self.connection.execute(statement.psycopg, params).fetchall()

    def count(self, statement: Sql, params: Params) -> int:
        """Run a statement and return how many rows it wrote."""
        return self.connection.execute(statement.psycopg, params).rowcount

    def many(self, statement: Sql, params: Sequence[Params]) -> None:
        """Run a statement once for each set of parameters."""
        for each in params:
            self.count(statement, each)

    def next_id(self) -> int:
        """Draw an id from the sequence."""
        found: int = self.rows(_NEXT_ID, {})[0][0]
        return found

    def read_clocks(self, zones: Sequence[int]) -> list[Row]:
        """Read clocks after the locks, in a statement of its own; the mutation's own row is held by another."""
        if list(zones) == [self.zone]:
            return self.rows(CLOCK_HOLD, {"zone": self.zone})
        return self.rows(CLOCKS_READ, clock_params(zones))

    def lock(self, permit: Permit[object]) -> None:
        """Take the access locks in zone order: shared above the mutation's zone, exclusive on it.

        A catalog's own lock is its clock row, held when its clock is read. A metalake's mutation that looks at a
        catalog needs no lock there: whoever moves the catalog holds the metalake shared.
        """
        zones = [zone for zone, _ in permit.stamps]
        above = zones[: zones.index(permit.zone)] if permit.zone in zones else zones
        if len(above) == 2:
            self.rows(_SHARED_TWICE, {"space": LOCK_CLASS, "server": str(above[0]), "metalake": str(above[1])})
            return
        for zone in above:
            self.rows(_SHARED, _lock(zone))
        if permit.zone in zones:
            self.rows(_EXCLUSIVE, _lock(permit.zone))


class PostgresStore:
    """The store on a PostgreSQL database."""

    inline = False

    def __init__(self, url: str, *, pool_max: int = 8) -> None:
        self.url = url
        self._threads = ThreadPoolExecutor(pool_max, "limnos-write")
        self._connections: queue.LifoQueue[psycopg.Connection] = queue.LifoQueue()
        self._pool_max = pool_max
        self._gate: asyncpg.Connection | None = None
        self._pool: asyncpg.Pool | None = None
        self.statements = 0

    async def gate_async(self, epoch: int, known: Known) -> Moved:
        """Read what has changed since the known revisions, in one statement on a connection of its own."""
        self.statements += 1
        statement, params = gate_query_postgres(epoch, known)
        try:
            if self._gate is None or self._gate.is_closed():
                self._gate = await asyncpg.connect(self.url)
            return moved_of(await _fetch(self._gate, statement, params))
        except _LOST as error:
            self._gate = None
            raise Unavailable("The database does not answer: try again", cause=str(error)) from error

    async def load_async(self, epoch: int, known: Known, load: Load[T]) -> tuple[Moved, T]:
        """Read changes first and then facts, in one snapshot."""
        try:
            pool = await self._opened_pool()
            async with pool.acquire() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
                self.statements += 1
                statement, params = gate_query_postgres(epoch, known)
                moved = moved_of(await _fetch(connection, statement, params))
                return moved, await self._drive(connection, load)
        except _LOST as error:
            raise Unavailable("The database does not answer: try again", cause=str(error)) from error

    async def _opened_pool(self) -> asyncpg.Pool:
        if self._pool is None:
            self._pool = await asyncpg.create_pool(self.url, min_size=0, max_size=self._pool_max)
        return self._pool

    async def _drive(self, connection: _Reader, load: Load[T]) -> T:
        try:
            statement, params = next(load)
            while True:
                self.statements += 1
                statement, params = load.send(await _fetch(connection, statement, params))
        except StopIteration as stop:
            found: T = stop.value
            return found

    async def submit(self, permit: Permit[object], mutation: Mutation[T]) -> T:
        """Run a mutation in a transaction of its own, in a worker thread."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._threads, self._run, permit, mutation))

    def _run(self, permit: Permit[object], mutation: Mutation[T]) -> T:
        """Run it, again when it was a deadlock's victim, the connection was stale, or a rival of another zone was faster.

        Such a rival took the same unique key (a location) after this one looked: looking again finds it.
        """
        for attempt in range(ATTEMPTS):
            connection: psycopg.Connection | None = None
            try:
                connection = self._connection()
                result = self._transact(connection, permit, mutation)
            except _AGAIN:
                self._give_back(connection)
                if attempt == ATTEMPTS - 1:
                    raise Unavailable("Too many writers at once: try again") from None
            except psycopg.OperationalError as error:
                if connection is not None:
                    connection.close()
                if attempt == ATTEMPTS - 1:
                    raise Unavailable("The database does not answer: try again", cause=str(error)) from error
            except psycopg.DataError as error:
                self._give_back(connection)
                raise BadRequest(_NO_TEXT) if "NUL" in str(error) else error from None
            except BaseException:
                self._give_back(connection)
                raise
            else:
                self._give_back(connection)
                return result
        raise Unavailable("The database does not answer: try again")

    def _transact(self, connection: psycopg.Connection, permit: Permit[object], mutation: Mutation[T]) -> T:
        """One transaction: locks, permit, mutation, clock and changes, commit."""
        try:
            reach("begin")
            session = PostgresSession(connection, permit.zone)
            session.lock(permit)
            reach("locked")
            batch = Batch(session, now_ms=time.time_ns() // 1_000_000)
            batch.clock(permit.zone)  # first of all: its row is the lock of a catalog
            result = batch.run(permit, mutation)
            batch.finish()
            reach("before-commit")
        except BaseException:
            if not connection.closed:
                connection.rollback()
            raise
        self._commit(connection)
        reach("after-commit")
        return result

    @staticmethod
    def _commit(connection: psycopg.Connection) -> None:
        try:
            connection.commit()
        except psycopg.Error as error:
            connection.close()
            told = "The store did not say whether the change was kept: look before you repeat it"
            raise StateUnknown(told, cause=str(error)) from error

    def _connection(self) -> psycopg.Connection:
        try:
            return self._connections.get_nowait()
        except queue.Empty:
            connection = psycopg.connect(self.url, prepare_threshold=2)
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            return connection

    def _give_back(self, connection: psycopg.Connection | None) -> None:
        if connection is not None and not connection.closed:
            self._connections.put(connection)

    async def close(self) -> None:
        """Finish running mutations and disconnect."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        while not self._connections.empty():
            self._connections.get_nowait().close()
        if self._gate is not None:
            await self._gate.close()
        if self._pool is not None:
            await self._pool.close()
