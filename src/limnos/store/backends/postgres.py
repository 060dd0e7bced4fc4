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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import TypeVar

import psycopg

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
from limnos.store.backends.postgres_session import PostgresSession
from limnos.store.backends.postgres_snapshots import postgres_snapshot
from limnos.store.backends.read_connections import ReadConnection, ReadConnections
from limnos.store.backends.write_connections import WriteConnection, open_write_connection
from limnos.store.changes import (
    NO_CHANGES,
    GateResult,
    gate_query_postgres,
    gate_result_of,
)
from limnos.store.faults import fault_point
from limnos.store.interface import CLOSE_S, KnownRevisions
from limnos.store.snapshots import StoreSnapshot
from limnos.store.sql import Load, Query, Row
from limnos.store.time_sources import StoreTime
from limnos.store.tx import Mutation, MutationBatch

T = TypeVar("T")
PermitLocks = tuple[tuple[int, ...], bool]
"""The zones whose locks a permit needs, and whether it also writes to the metalake."""
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
CAREFUL_BATCHES = 32
"""The number of batches with savepoints after one that was rolled back because a mutation in it failed."""
_AGAIN = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation)


class _UnsavedFailure(Exception):
    """A job failed after it wrote, in a batch without savepoints: only a rollback of the batch undoes its writes."""


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
