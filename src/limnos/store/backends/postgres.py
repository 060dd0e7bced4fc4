# SPDX-License-Identifier: Apache-2.0
"""The store on PostgreSQL 15 or newer: several stateless nodes over one primary.

Must not know resources. Mutations of the same zones run in one transaction, one such batch at a time, in worker threads
over psycopg, at READ COMMITTED with explicit locks. The freshness gate has its own connection (`gate_connection`).
Loads run on asyncpg at REPEATABLE READ, READ ONLY.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from limnos.model.errors import BadRequest, ServiceUnavailable
from limnos.model.permits import Permit
from limnos.store.backends.dead_peer_detection import DeadPeerDetector
from limnos.store.backends.mutation_queue import (
    BATCH_MAX,
    Again,
    BeginCallback,
    MutationJob,
    MutationQueue,
    fail_jobs,
    ignore_begin,
    settle_jobs,
    state_unknown_error,
)
from limnos.store.backends.postgres_errors import NO_TEXT, REFUSED, is_certain, is_of_rows, write_error
from limnos.store.backends.postgres_snapshots import postgres_snapshot
from limnos.store.backends.read_connections import ReadConnection, ReadConnections
from limnos.store.backends.write_connections import WriteConnection, open_write_connection
from limnos.store.changes import (
    CLOCK_HOLD,
    CLOCK_HOLD_POSTGRES,
    CLOCKS_MAX,
    CLOCKS_READ,
    NO_CHANGES,
    GateResult,
    clock_params,
    gate_query_postgres,
    gate_result_of,
)
from limnos.store.faults import fault_point
from limnos.store.interface import CLOSE_S, KnownRevisions
from limnos.store.snapshots import StoreSnapshot
from limnos.store.sql import Load, Params, Query, Row, Sql
from limnos.store.time_sources import StoreTime
from limnos.store.tx import Mutation, MutationBatch

T = TypeVar("T")
PermitLocks = tuple[tuple[int, ...], bool]
"""The zones whose locks a permit needs, and whether it also writes to the metalake."""
LOCK_CLASS = 0x4C494D  # "LIM": the first key of the advisory locks
ATTEMPTS = 3
NOT_AGAIN = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.DiskFull,
    psycopg.errors.OutOfMemory,
    psycopg.errors.QueryCanceled,
)
"""Failures that an immediate retry would repeat."""
CUT_EVERY_S = 0.1
_SHARED = Sql("SELECT pg_advisory_xact_lock_shared(:space, hashtext(:zone))")
_SHARED_TWICE = Sql(
    "SELECT pg_advisory_xact_lock_shared(:space, hashtext(:server)), pg_advisory_xact_lock_shared(:space,"
    " hashtext(:metalake))"
)
_EXCLUSIVE = Sql("SELECT pg_advisory_xact_lock(:space, hashtext(:zone))")
LOCATION_LOCK_CLASS = 0x4C494E
_LOCK_LOCATIONS = Sql(
    "SELECT CASE WHEN own THEN pg_advisory_xact_lock(:space, hashtext(place)) ELSE pg_advisory_xact_lock_shared(:space,"
    " hashtext(place)) END FROM unnest(CAST(:places AS text[]), CAST(:owns AS boolean[])) AS each(place, own)"
)
_NEXT_IDS = Sql("SELECT nextval('limnos_id') FROM generate_series(1, :count)")
_IDS_MAX = 64
"""The number of ids that are drawn at once for a batch. Unused ones are lost; ids may have gaps."""
_PASS_IDS = Sql("SELECT setval('limnos_id', :beyond + :gap, false) FROM limnos_id WHERE last_value <= :beyond")
_IDS_GAP = 1 << 20
_COUNTED = frozenset({"INSERT", "UPDATE", "DELETE"})
"""The first words of statements that wrote nothing if they affected no row."""
CAREFUL_BATCHES = 32
"""The number of batches with savepoints after one that was rolled back because a mutation in it failed."""
_AGAIN = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation)


def _lock(zone: int) -> Params:
    return {"space": LOCK_CLASS, "zone": str(zone)}


class _UnsavedFailure(Exception):
    """A job failed after it wrote, in a batch without savepoints: only a rollback of the batch undoes its writes."""


class PostgresSession:
    """A psycopg connection inside an open transaction.

    A savepoint costs each job a round trip and the database a subtransaction, and few jobs fail after they wrote. So a
    batch has savepoints only if `saves` is true, and otherwise runs again with them when such a job fails.
    """

    has_location_locks = True
    combines_writes = True

    def __init__(
        self, connection: psycopg.Connection, written_zones: tuple[int, ...], *, jobs: int, saves: bool = True
    ) -> None:
        self.connection = connection
        self.written_zones = written_zones
        self._jobs = jobs
        self._saves = saves and jobs > 1
        self._has_written = False
        self._ids: list[int] = []
        self._saved = False
        self._locked_above: Sequence[int] = ()
        self._clocks_above: dict[int, Row] = {}
        """Clocks of zones whose locks this transaction has, so that no other one moves them."""
        self._places: dict[str, bool] = {}
        """The locked locations, each with whether the lock is exclusive."""

    def rows(self, statement: Sql, params: Params) -> list[Row]:
        """Run a statement that returns rows."""
        rows = self.connection.execute(statement.psycopg, params).fetchall()
        self._note_writes(statement, len(rows))
        return rows

    def count(self, statement: Sql, params: Params) -> int:
        """Run a statement. Returns the number of affected rows."""
        affected = self.connection.execute(statement.psycopg, params).rowcount
        self._note_writes(statement, affected)
        return affected

    def _note_writes(self, statement: Sql, affected: int) -> None:
        """Note whether a statement may have written. One with parts (WITH) may, whatever its number of rows is."""
        word = statement.text.split(maxsplit=1)[0].upper()
        if word != "SELECT" and (affected != 0 or word not in _COUNTED):
            self._has_written = True

    def many(self, statement: Sql, params: Sequence[Params]) -> None:
        """Run a statement once for each set of parameters, in one round trip."""
        self._has_written = True
        with self.connection.cursor() as cursor:
            cursor.executemany(statement.psycopg, params)

    def next_id(self) -> int:
        """Return a new id from those reserved for this batch, or else from the sequence."""
        if not self._ids:
            self._ids = [row[0] for row in self.rows(_NEXT_IDS, {"count": min(self._jobs, _IDS_MAX)})]
            self._ids.reverse()
        return self._ids.pop()

    def next_ids(self, count: int) -> list[int]:
        """Draw several ids, in one round trip."""
        return [row[0] for row in self.rows(_NEXT_IDS, {"count": count})]

    def pass_ids(self, beyond: int) -> None:
        """Advance the id sequence beyond an id.

        It leaves a gap for ids that other sessions draw between the check and the update.
        """
        self.rows(_PASS_IDS, {"beyond": beyond, "gap": _IDS_GAP})

    def save(self) -> None:
        """Set the savepoint of a job, in a batch that has savepoints. A single job needs none, since it is rolled back
        with its transaction.
        """
        self._has_written = False
        if self._saves:
            self.connection.execute("RELEASE mutation; SAVEPOINT mutation" if self._saved else "SAVEPOINT mutation")
            self._saved = True

    def undo(self) -> None:
        """Roll back the writes of the job, and release the locks that it took. A single job is rolled back with the
        whole transaction. A job without a savepoint that wrote nothing keeps its locks until the commit.
        """
        if self._jobs == 1:
            self._places.clear()
            self.connection.rollback()
        elif self._saves:
            self._places.clear()
            self.connection.execute("ROLLBACK TO mutation")

    def is_lost(self) -> bool:
        """Return whether a failed job has writes that no savepoint undoes, or has aborted the transaction.

        The batch then runs again, with savepoints. The caller of the batch handles a lost connection.
        """
        if self._jobs == 1 or self._saves:
            return False
        return self._has_written or self.connection.info.transaction_status != TransactionStatus.INTRANS

    def keep(self) -> None:
        """No-op: the next savepoint, or the commit, releases this one."""

    def lock_locations(self, locations: Mapping[str, bool]) -> None:
        """Lock locations in the order of their names, in one statement: exclusively where the value is True, else
        shared.

        Locks that this transaction already has are omitted: most tables of a batch have the same parent locations.
        """
        locked_keys = self._places
        new_locations = sorted(each for each, own in locations.items() if own > locked_keys.get(each, -1))
        if new_locations:
            owns = [locations[each] for each in new_locations]
            self.rows(_LOCK_LOCATIONS, {"space": LOCATION_LOCK_CLASS, "places": new_locations, "owns": owns})
            locked_keys.update(zip(new_locations, owns, strict=True))

    def read_clocks(self, zones: Sequence[int]) -> list[Row]:
        """Read the clocks of zones, in a separate statement after the locks are taken.

        If `zones` is only one zone that the mutation writes to, its clock row is locked until the commit, and the
        clocks of the zones above it are read with it.
        """
        if len(zones) == 1 and zones[0] in self.written_zones:
            if len(self.written_zones) > 1 or not self._locked_above:
                return self.rows(CLOCK_HOLD, {"zone": zones[0]})
            params = {"zone": zones[0], **clock_params(self._locked_above)}
            rows = self.rows(CLOCK_HOLD_POSTGRES, params)
            self._clocks_above = {row[0]: row for row in rows if row[0] != zones[0]}
            return [row for row in rows if row[0] == zones[0]]  # none for a zone that is gone
        rows = [row for row in map(self._clocks_above.get, zones) if row is not None]
        return rows if len(rows) == len(zones) else self.rows(CLOCKS_READ, clock_params(zones))

    def lock(self, permit: Permit[object]) -> None:
        """Take the access locks in zone order: shared above the mutation's zone, exclusive on it.

        A catalog's own lock is its clock row, taken when its clock is read. The rows of several catalogs are taken in
        ascending order, so that no two transactions wait for each other. A mutation of a metalake that depends on a
        catalog does not lock the catalog, since every writer to the catalog holds a shared lock on the metalake. A
        mutation of a catalog that writes to its metalake, too, takes the metalake's lock exclusively.
        """
        zones = [zone for zone, _ in permit.stamps]
        above = zones[: zones.index(permit.zone)] if permit.zone in zones else zones
        self._locked_above = above[:CLOCKS_MAX]
        if permit.writes_metalake:
            self.rows(_SHARED, _lock(above[0]))
            self.rows(_EXCLUSIVE, _lock(above[1]))
            return
        if len(above) == 2:
            self.rows(_SHARED_TWICE, {"space": LOCK_CLASS, "server": str(above[0]), "metalake": str(above[1])})
            return
        for zone in above:
            self.rows(_SHARED, _lock(zone))
        if permit.zone in zones:
            self.rows(_EXCLUSIVE, _lock(permit.zone))


def _run_job(job: MutationJob, batch: MutationBatch, session: PostgresSession) -> None:
    """Run one job.

    Raises only errors that abort the whole transaction, or that a retry of the transaction may avoid.
    """
    if not job.is_refused:
        job.error = None  # clear the error of an earlier attempt
    try:
        job.run(batch, session, ends_batch=(*_AGAIN, *REFUSED))
    except Exception as failure:
        if job.error is failure:  # the session is lost
            raise _UnsavedFailure from failure
        raise
    error: BaseException | None = job.error
    if isinstance(error, psycopg.DataError) and "NUL" in str(error):
        job.error = BadRequest(NO_TEXT)
    elif isinstance(error, psycopg.Error):
        job.error = write_error(error) or error


def _decide(job: MutationJob) -> None:
    """Run a job's decision on the event loop, and block the calling worker thread until it ends."""
    if job.again is not None:
        asyncio.run_coroutine_threadsafe(job.decide(), job.future.get_loop()).result()


class PostgresStore:
    """An `AwaitedStore` on a PostgreSQL database."""

    inline = False

    def __init__(self, url: str, *, pool_max: int = 8, silence_s: float = 1.5) -> None:
        self.url = url
        self.time = StoreTime()
        self._threads = ThreadPoolExecutor(pool_max, "limnos-write")
        self._queues: dict[PermitLocks, MutationQueue] = {}
        self._drains: dict[PermitLocks, asyncio.Task[None]] = {}
        self._idle: queue.LifoQueue[WriteConnection] = queue.LifoQueue()
        self._trusted_after = 0.0
        self._closing = False
        self._readers = ReadConnections(url, connections_max=pool_max, silence_s=silence_s, time_of=self.time)
        self._watch = self._readers.watch = DeadPeerDetector(
            self._readers.at_work, self._readers.end, silence_s=silence_s, on_cut=self._discard_idle
        )
        self._careful_batches = 0
        self.statements = 0
        self.last_write_failed = False

    @contextmanager
    def start_patience(self, silence_s: float) -> Iterator[None]:
        """Wait up to `silence_s` seconds for each answer and each new connection during the `with` block: the start of
        a node, which has no request that waits for it.
        """
        with self._readers.silence_limit(silence_s), self._watch.silence_limit(silence_s):
            yield

    def _discard_idle(self) -> None:
        """Exclude the currently idle connections from reuse, because another connection does not respond."""
        self._trusted_after = time.monotonic()
        self._readers.distrust()

    async def gate_async(self, epoch: int, known: KnownRevisions) -> GateResult:
        """Read the changes after the known revisions, in one statement on the freshness gate's own connection."""
        self.statements += 1
        return gate_result_of(await self._readers.gate(*gate_query_postgres(epoch, known)))

    async def load_async(self, epoch: int, known: KnownRevisions, load: Callable[[], Load[T]]) -> tuple[GateResult, T]:
        """Read first the changes since the `known` revisions, then facts with `load`, in one snapshot.

        With empty `known` it reads no changes. Retried if the connection was lost.
        """
        self._watch.start()
        return await self._readers.load(partial(self._read, epoch, known, load))

    async def _read(
        self, epoch: int, known: KnownRevisions, load: Callable[[], Load[T]], reader: ReadConnection
    ) -> tuple[GateResult, T]:
        if not known:
            return NO_CHANGES, await self._drive(reader, load())
        self.statements += 1
        gate_result = gate_result_of(await reader.rows(*gate_query_postgres(epoch, known)))
        return gate_result, await self._drive(reader, load())

    async def find_async(self, query: Query) -> list[Row]:
        """Run one query in a snapshot of its own. It needs one round trip; a load needs four."""
        self.statements += 1
        self._watch.start()
        return await self._readers.find(*query)

    def snapshot(self) -> AbstractAsyncContextManager[StoreSnapshot]:
        """Open a long read of one snapshot, on a separate connection."""
        self._watch.start()
        return postgres_snapshot(self.url, self._watch)

    async def _drive(self, reader: ReadConnection, load: Load[T]) -> T:
        try:
            statement, params = next(load)
            while True:
                self.statements += 1
                statement, params = load.send(await reader.rows(statement, params))
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def submit(
        self, permit: Permit[object], mutation: Mutation[T], *, on_begin: BeginCallback = ignore_begin, **_: bool
    ) -> T:
        """Run a mutation in the next batch of its zones and return its result after the commit: all are in threads."""
        return await self._jobs(permit).add(permit, mutation, on_begin)  # type: ignore[return-value]

    async def submit_held(
        self, permit: Permit[object], again: Again[T], *, on_begin: BeginCallback = ignore_begin
    ) -> T:
        """Take the locks of a permit's zones, decide, run the mutation, and return its result after the commit."""
        return await self._jobs(permit).add_held(permit, again, on_begin)  # type: ignore[return-value]

    def _jobs(self, permit: Permit[object]) -> MutationQueue:
        """Return the queue of a permit's locks. If there is none, create it, and start the task that runs its
        batches.
        """
        self._watch.start()
        locks = (permit.zones, permit.writes_metalake)
        jobs = self._queues.get(locks)
        if jobs is None:
            jobs = self._queues[locks] = MutationQueue()
            self._drains[locks] = asyncio.create_task(self._run_batches(locks, jobs))
        return jobs

    async def _run_batches(self, locks: PermitLocks, jobs: MutationQueue) -> None:
        """Run the batches of these locks one at a time: concurrent ones would only wait for each other."""
        loop = asyncio.get_running_loop()
        try:
            while jobs:
                await jobs.gather()
                batch = jobs.take(BATCH_MAX)
                try:
                    ran = await loop.run_in_executor(self._threads, self._run, batch)
                except Exception as error:  # noqa: BLE001 - every waiter gets the error
                    self.last_write_failed = isinstance(error, (psycopg.Error, OSError)) and not is_of_rows(error)
                    fail_jobs(batch, write_error(error) or error)
                    continue
                jobs.extendleft(reversed(batch[ran:]))
                settle_jobs(batch[:ran])
        finally:
            del self._queues[locks], self._drains[locks]

    def _run(self, jobs: list[MutationJob]) -> int:
        """Run a batch. Returns the number of jobs it ran: jobs after a job that changes access wait for the next batch.

        The transaction is retried if it was the victim of a deadlock, its connection was stale, or a transaction of
        another zone committed the same unique key (a location) after the check here. The retry sees that transaction's
        row. A batch in which a job failed after it wrote runs once more, with savepoints. Raises ServiceUnavailable if
        all attempts fail or the store is closing, StateUnknown if the response to the COMMIT was lost.
        """
        attempt = 0
        while True:
            if self._closing:
                raise ServiceUnavailable("The server is stopping and did not start this request: try again")
            connection: WriteConnection | None = None
            try:
                connection = self._write_connection()
                ran = self._transact(connection.connection, jobs)
            except _UnsavedFailure:
                self._return_connection(connection)
                self._careful_batches = CAREFUL_BATCHES
            except _AGAIN:
                self._return_connection(connection)
                attempt += 1
                if attempt == ATTEMPTS:
                    raise ServiceUnavailable("Too many writes are in progress: try again") from None
            except REFUSED as error:
                self._close_connection(connection)
                if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                    self._discard_idle()  # another server may be the primary now
                attempt += 1
                if attempt == ATTEMPTS or isinstance(error, NOT_AGAIN):
                    raise
            except BaseException:
                self._return_connection(connection)
                raise
            else:
                self._return_connection(connection)
                self._careful_batches = max(0, self._careful_batches - 1)
                return ran

    def _transact(self, connection: psycopg.Connection, jobs: list[MutationJob]) -> int:
        """Run one transaction: locks, each job with its permit, clocks and changes, commit.

        Returns the number of jobs that it ran.
        """
        ran = 0
        try:
            fault_point("begin")
            permit = jobs[0].permit
            written_zones = (permit.zone, *permit.more_zones)
            saves = self._careful_batches > 0
            session = PostgresSession(connection, written_zones, jobs=len(jobs), saves=saves)
            session.lock(permit)
            fault_point("locked")
            batch = MutationBatch(session, now_ms=self.time.now_ms())
            for zone in written_zones:  # first, because the row of a catalog's clock is the catalog's lock
                batch.clock(zone)
            _decide(jobs[0])
            while ran < len(jobs) and not batch.closed:
                _run_job(jobs[ran], batch, session)
                ran += 1
            batch.finish()
            fault_point("before-commit")
        except BaseException:
            if not connection.closed:
                connection.rollback()
            raise
        self._commit(connection)
        self.last_write_failed = False
        fault_point("after-commit")
        return ran

    @staticmethod
    def _commit(connection: psycopg.Connection) -> None:
        try:
            connection.commit()
        except psycopg.Error as error:
            if is_certain(error, closed=connection.closed):
                raise
            connection.close()
            raise state_unknown_error(error) from error

    def _write_connection(self) -> WriteConnection:
        """Return an idle connection that was used after the last connection failure; else open a new connection."""
        while True:
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                connection = open_write_connection(self.url, within_s=self._readers.connect_s)
                self._watch.add(connection.monitor)
                return connection
            if connection.used_at > self._trusted_after:
                return connection
            self._close_connection(connection)

    def _return_connection(self, connection: WriteConnection | None) -> None:
        if connection is None:
            return
        if connection.connection.closed:
            self._close_connection(connection)
        else:
            connection.used_at = time.monotonic()
            self._idle.put(connection)

    def _close_connection(self, connection: WriteConnection | None) -> None:
        if connection is not None:
            self._watch.remove(connection.monitor)
            connection.close()

    async def close(self, *, within_s: float = CLOSE_S) -> None:
        """Finish running mutations and disconnect.

        After `within_s` seconds the remaining connections are closed.
        """
        if self._drains:
            await asyncio.wait(tuple(self._drains.values()), timeout=within_s)
        self._closing = True
        while self._drains:  # close the connections of hanging statements; `_closing` prevents retries
            self._watch.cut_all()
            await asyncio.wait(tuple(self._drains.values()), timeout=CUT_EVERY_S)
        self._watch.cut_all()
        await self._watch.stop()
        self._threads.shutdown(wait=False)
        while not self._idle.empty():
            self._close_connection(self._idle.get_nowait())
        self._readers.close()
