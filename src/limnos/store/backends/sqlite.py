# SPDX-License-Identifier: Apache-2.0
"""The store on SQLite: one file, one write and one read connection per process, group commit.

Must not know resources. Statements run inline on the event loop, a few microseconds each. Only the COMMIT, which waits
for the disk, long mutations, and the wait for another process's write lock run in a thread. Reads never see an open
batch. Several processes may share the file; each is a node.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from limnos.model.errors import LimnosError, ServiceUnavailable
from limnos.model.permits import Permit
from limnos.store import changes
from limnos.store.backends.mutation_queue import (
    BATCH_MAX,
    Again,
    BeginCallback,
    BlockingThread,
    MutationJob,
    MutationQueue,
    fail_jobs,
    ignore_begin,
    settle_jobs,
    state_unknown_error,
)
from limnos.store.backends.sqlite_aside import SqliteAside
from limnos.store.backends.sqlite_errors import FAILURES, is_busy, is_certain, raise_read_error, write_error
from limnos.store.backends.sqlite_snapshots import sqlite_snapshot
from limnos.store.faults import fault_point
from limnos.store.interface import CLOSE_S, KnownRevisions
from limnos.store.snapshots import StoreSnapshot
from limnos.store.sql import Load, Params, Query, Row, Sql
from limnos.store.time_sources import LocalTime
from limnos.store.tx import Mutation, MutationBatch

_COPY_BYTES: Final = 48
_PROBE: Final = "UPDATE store SET next_id = next_id + 1"
"""A statement that skips one id: the smallest change that SQLite does not optimise away."""


class _IndexMapping:
    __slots__ = ("descriptor", "map", "users")

    def __init__(self, file: Path) -> None:
        if file.stat().st_size < 2 * _COPY_BYTES:
            # Before `open`: closing the file would release SQLite's locks on it.
            raise ValueError(f"{file} has no header yet")
        self.descriptor = os.open(file, os.O_RDONLY)
        self.map = mmap.mmap(self.descriptor, 2 * _COPY_BYTES, access=mmap.ACCESS_READ)
        self.users = 0

    def close(self) -> None:
        self.map.close()
        os.close(self.descriptor)


_mappings: dict[tuple[int, int], _IndexMapping] = {}


class WalIndex:
    """The header of the write-ahead log's index of one database file, a cheap check whether anything was committed.

    In WAL mode a commit becomes visible when the header at the start of the `-shm` file, which is stored twice, is
    rewritten. A header equal to one read before means that every connection of every process still sees the same data.
    Reading it costs a tenth of a microsecond, a statement five. Open it after connecting, close it after disconnecting.

    POSIX releases all locks of a process on a file when it closes any descriptor of it, including SQLite's locks. So
    all stores of a process on one file share one mapping, which is closed after the last store.
    """

    is_used = True
    """Whether commits are visible in the header here. If not, the file is only kept open."""

    def __init__(self, path: Path) -> None:
        file = path.with_name(f"{path.name}-shm")
        status = file.stat()
        self._key = (status.st_dev, status.st_ino)
        mapping = _mappings.get(self._key)
        if mapping is None:
            mapping = _mappings[self._key] = _IndexMapping(file)
        mapping.users += 1
        self._map = mapping.map

    def header(self) -> bytes | None:
        """Return both copies of the header; None while SQLite is rewriting it, or if `open_index` found it unusable."""
        if not self.is_used:
            return None
        _map = self._map[: 2 * _COPY_BYTES]
        return _map if _map[:_COPY_BYTES] == _map[_COPY_BYTES:] else None

    def close(self) -> None:
        """Release the mapping; the last user of the file closes it."""
        mapping = _mappings[self._key]
        mapping.users -= 1
        if mapping.users == 0:
            del _mappings[self._key]
            mapping.close()


def open_index(path: Path, writer: sqlite3.Connection) -> WalIndex | None:
    """Open the index, and check with a test commit that commits change its header on this file system and SQLite
    version.

    An unusable index stays open until the store is closed: closing it earlier would release the locks of open
    connections. Returns None if no index could be opened.
    """
    try:
        index = WalIndex(path)
    except (OSError, ValueError):
        return None
    before = index.header()
    writer.execute(_PROBE)
    index.is_used = before is not None and index.header() not in (None, before)
    return index


T = TypeVar("T")
BUSY_TIMEOUT_MS = 10_000
"""The maximum time that a write waits for another process's lock on the file, in milliseconds."""
BUSY_SLICE_MS = 200
_NEXT_ID = "SELECT next_id FROM store"
_SETTLE_IDS = "UPDATE store SET next_id = ?"


def connect(path: Path) -> sqlite3.Connection:
    """Open the file in WAL mode with `synchronous=FULL`: an acknowledged commit is on the disk."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -65536")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")  # pages: frequently written ones are copied back less often
    return connection


def _refused_error(error: BaseException, path: Path) -> LimnosError:
    """Return the error for the callers of a transaction that certainly was not committed."""
    unavailable = ServiceUnavailable("The store could not write. Nothing was changed; try again", cause=repr(error))
    return write_error(error, path) or unavailable


class SqliteSession:
    """The write connection inside an open transaction."""

    has_location_locks = False
    combines_writes = False

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        connection.execute("PRAGMA temp_store = MEMORY")  # a savepoint of more than 64 KiB would be written to a file
        self._next_id: int | None = None
        self._has_savepoint = False
        self._began = False

    def rows(self, statement: Sql, params: Params) -> list[Row]:
        """Run a statement that returns rows."""
        return self.connection.execute(statement.sqlite, statement.values(params)).fetchall()

    def count(self, statement: Sql, params: Params) -> int:
        """Run a statement. Returns the number of affected rows."""
        return self.connection.execute(statement.sqlite, statement.values(params)).rowcount

    def many(self, statement: Sql, params: Sequence[Params]) -> None:
        """Run a statement once for each set of parameters."""
        self.connection.executemany(statement.sqlite, map(statement.values, params))

    def next_id(self) -> int:
        """Return a new id from the id counter, which is read once per batch and written back at the end of the
        batch.
        """
        number: int = self.connection.execute(_NEXT_ID).fetchone()[0] if self._next_id is None else self._next_id
        self._next_id = number + 1
        return number

    def next_ids(self, count: int) -> list[int]:
        """Reserve several object ids."""
        return [self.next_id() for _ in range(count)]

    def pass_ids(self, beyond: int) -> None:
        """Make all later ids greater than `beyond`."""
        self._next_id = max(self.next_id(), beyond + 1)

    def settle_ids(self) -> None:
        """Write the id counter back, in the batch's transaction."""
        if self._next_id is not None:
            self.connection.execute(_SETTLE_IDS, (self._next_id,))
        self._next_id = None

    def forget_ids(self) -> None:
        """Reset the id counter, because the batch is rolled back."""
        self._next_id = None

    def begin(self, jobs: int) -> None:
        """Reset the session's state for a new transaction of about so many jobs.

        A job that is alone needs no savepoint, which would save a copy of each page that the job changes.
        """
        self._has_savepoint = jobs > 1
        self._began = False

    def save(self) -> None:
        """Set the savepoint of a job."""
        self._has_savepoint = self._has_savepoint or self._began
        self._began = True
        if self._has_savepoint:
            self.connection.execute("SAVEPOINT mutation")

    def undo(self) -> None:
        """Roll back the writes of the job. For a job without a savepoint this ends the whole transaction."""
        self.connection.execute("ROLLBACK TO mutation" if self._has_savepoint else "ROLLBACK")

    def is_lost(self) -> bool:
        """Return whether SQLite rolled back automatically, as it does when the disk is full."""
        return not self.connection.in_transaction

    def keep(self) -> None:
        """Release the savepoint of the job."""
        if self._has_savepoint:
            self.connection.execute("RELEASE mutation")

    def lock_locations(self, locations: Mapping[str, bool]) -> None:
        """No-op: the transaction holds the write lock of the file, which excludes all other writers."""

    def read_clocks(self, zones: Sequence[int]) -> list[Row]:
        """Read the clocks of zones. Needs no further lock: the transaction holds the write lock of the file."""
        return self.rows(changes.CLOCKS_READ, changes.clock_params(zones))


class SqliteStore:
    """An `InlineStore` on one SQLite file."""

    inline = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = connect(path)
        self._writer = connect(path)
        self._session = SqliteSession(self._writer)
        self._queue = MutationQueue()
        self._drain: asyncio.Task[None] | None = None
        self._thread = BlockingThread("limnos-commit")
        self._aside = SqliteAside(path, connect)
        self._committing = False
        self._closing = False
        self.time = LocalTime()
        self.statements = 0
        self.last_write_failed = False
        self._reader.execute("SELECT 1 FROM store").fetchall()  # creates the -shm file
        self._index = open_index(path, self._writer)
        self._writer.execute("PRAGMA busy_timeout = 0")  # the event loop must not wait

    def moment(self) -> bytes | None:
        """Return a value that stays equal while nothing is committed; None if that cannot be determined."""
        return None if self._index is None else self._index.header()

    def gate(self, epoch: int, known: KnownRevisions) -> changes.GateResult:
        """Read the changes after the known revisions, in one statement.

        It uses the write connection if that is idle, since it still has the pages of its last commit.
        """
        self.statements += 1
        text, params = changes.gate_text(len(known)), changes.gate_params(epoch, known)
        is_idle = self._drain is None and not self._writer.in_transaction
        try:
            try:
                rows = (self._writer if is_idle else self._reader).execute(text, params).fetchall()
            except sqlite3.OperationalError:  # another process has locked the file: the read connection waits for it
                rows = self._reader.execute(text, params).fetchall()
        except FAILURES as error:
            raise_read_error(error, self.path)
        return changes.gate_result_of(rows) if rows else changes.NO_CHANGES

    def load(self, epoch: int, known: KnownRevisions, load: Callable[[], Load[T]]) -> tuple[changes.GateResult, T]:
        """Read first the changes since the `known` revisions, then facts with `load`, in one snapshot.

        With empty `known` it reads no changes.
        """
        self._reader.execute("BEGIN")
        try:
            if not known:
                return changes.NO_CHANGES, self._drive(load())
            self.statements += 1
            rows = self._reader.execute(changes.gate_text(len(known)), changes.gate_params(epoch, known)).fetchall()
            return changes.gate_result_of(rows), self._drive(load())
        except FAILURES as error:
            raise_read_error(error, self.path)
        finally:
            self._end_read()

    def _end_read(self) -> None:
        """End the read transaction. After a failed read, even COMMIT may fail, and ROLLBACK ends it."""
        try:
            self._reader.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self._reader.execute("ROLLBACK")

    def find(self, query: Query) -> list[Row]:
        """Run one query in a snapshot of its own."""
        self.statements += 1
        statement, params = query
        try:
            return self._reader.execute(statement.sqlite, statement.values(params)).fetchall()
        except FAILURES as error:
            raise_read_error(error, self.path)

    async def load_aside(self, load: Callable[[], Load[T]]) -> T:
        """Read facts with `load` in one snapshot, in a thread: the event loop goes on meanwhile."""
        result, statements = await self._aside.read(load)
        self.statements += statements
        return result

    def snapshot(self) -> AbstractAsyncContextManager[StoreSnapshot]:
        """Open a long read of one snapshot, on a separate connection."""
        return sqlite_snapshot(self.path)

    def _drive(self, load: Load[T]) -> T:
        try:
            statement, params = next(load)
            while True:
                self.statements += 1
                rows = self._reader.execute(statement.sqlite, statement.values(params)).fetchall()
                statement, params = load.send(rows)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def submit(
        self,
        permit: Permit[object],
        mutation: Mutation[T],
        *,
        on_begin: BeginCallback = ignore_begin,
        is_long: bool = False,
    ) -> T:
        """Run a mutation in the next batch and return its result after the commit, a long one in a thread."""
        future = self._queue.add(permit, mutation, on_begin, is_long=is_long)
        if self._drain is None:
            self._drain = asyncio.create_task(self._run_batches())
        return await future  # type: ignore[return-value]

    async def submit_held(
        self, permit: Permit[object], again: Again[T], *, on_begin: BeginCallback = ignore_begin
    ) -> T:
        """Take the write lock, decide, run the mutation, and return its result after the commit."""
        future = self._queue.add_held(permit, again, on_begin)
        if self._drain is None:
            self._drain = asyncio.create_task(self._run_batches())
        return await future  # type: ignore[return-value]

    async def _run_batches(self) -> None:
        """Run batches one at a time until the queue is empty.

        Jobs that arrive during a commit form the next batch.
        """
        try:
            while self._queue:
                await self._queue.gather()
                if await self._run_batch():
                    await self._queue.wait_for_returning_callers()
        finally:
            self._drain = None

    async def _run_batch(self) -> bool:
        """Run one batch. Returns whether it succeeded and contained all queued jobs."""
        jobs: list[MutationJob] = []
        try:
            await self._begin()
        except BaseException as error:  # noqa: BLE001 - every waiter gets an error
            self.last_write_failed = True
            waiting = [self._queue.popleft() for _ in range(len(self._queue))]
            fail_jobs(waiting, _refused_error(error, self.path))
            return False
        try:
            batch = MutationBatch(self._session, now_ms=self.time.now_ms())
            self._session.begin(len(self._queue))
            while (
                self._queue
                and not batch.closed
                and self._writer.in_transaction
                and len(jobs) < BATCH_MAX
                and not (jobs and self._queue.is_batch_start)
            ):
                jobs.append(self._queue.popleft())
                if jobs[-1].again is not None:
                    await jobs[-1].decide()
                if jobs[-1].is_long:
                    await self._thread.run(partial(jobs[-1].run, batch, self._session))
                else:
                    jobs[-1].run(batch, self._session)
                if isinstance(jobs[-1].error, FAILURES):
                    self.last_write_failed = True
                    jobs[-1].error = write_error(jobs[-1].error, self.path) or jobs[-1].error
            had_all = not self._queue
            await self._commit(batch)
        except BaseException as error:  # noqa: BLE001 - every waiter gets an error
            self._fail(jobs, error)
            return False
        settle_jobs(jobs)
        return had_all

    async def _begin(self) -> None:
        """Take the file's write lock. The wait for another process happens in a thread."""
        fault_point("begin")
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            await self._thread.run(self._begin_waiting)
        fault_point("locked")

    def _begin_waiting(self) -> None:
        """Begin a transaction, retrying in short intervals while another process holds the lock: SQLite's busy timeout
        cannot be interrupted.
        """
        until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
        self._writer.execute(f"PRAGMA busy_timeout = {min(BUSY_SLICE_MS, BUSY_TIMEOUT_MS)}")
        try:
            while True:
                try:
                    self._writer.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if not is_busy(error) or self._closing or time.monotonic() >= until:
                        raise
                else:
                    return
        finally:
            self._writer.execute("PRAGMA busy_timeout = 0")

    async def _commit(self, batch: MutationBatch) -> None:
        if not batch.finish():
            self._session.forget_ids()
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            return
        self._session.settle_ids()
        fault_point("before-commit")
        self._committing = True
        await self._thread.run(self._commit_now)
        self._committing = self.last_write_failed = False
        fault_point("after-commit")

    def _commit_now(self) -> None:
        self._writer.execute("COMMIT")

    def _fail(self, jobs: list[MutationJob], error: BaseException) -> None:
        """Roll back a failed batch. Its callers get an error that states whether anything was committed."""
        self.last_write_failed = True
        self._session.forget_ids()
        exception: Exception = state_unknown_error(error)
        if self._writer.in_transaction or not self._committing or is_certain(error):
            if self._writer.in_transaction:
                with suppress(sqlite3.Error):  # the callers must get their errors
                    self._writer.execute("ROLLBACK")
            exception = _refused_error(error, self.path)
        self._committing = False
        fail_jobs(jobs, exception)

    async def close(self, *, within_s: float = CLOSE_S) -> None:
        """Finish the running batch and close the file.

        Stops waiting for locks of other processes after `within_s` seconds.
        """
        if self._drain is not None:
            await asyncio.wait({self._drain}, timeout=within_s)
        self._closing = True
        if self._drain is not None:
            await self._drain
        self._thread.close()
        await self._aside.close()
        self._reader.close()
        self._writer.close()
        if self._index is not None:
            self._index.close()
