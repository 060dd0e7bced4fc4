# SPDX-License-Identifier: Apache-2.0
"""Directory tables: the rows of tables in one directory, served without a store and without access control.

Must not know any wire format. The same worker processes read and write the rows as in a server: an incomplete body is
never committed. The directory is read in threads, since its library blocks.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from limnos.formats.lance_manifests import check_branch
from limnos.model.errors import AlreadyExists, CommitConflict, LimnosError, NotFound, ServiceUnavailable, StateUnknown
from limnos.names.iceberg import render
from limnos.rooms.lance.formats.layouts import is_local
from limnos.rooms.lance.services.row_operations import NO_DATA_MESSAGE, check_keys, check_version
from limnos.rooms.lance.services.table_creation import CREATE, EXIST_OK
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.services.workers import WorkerTask
from limnos.rooms.lance.sources.questions import Explain, LanceWriteResult, Write
from limnos.services.request.concurrency.per_key_queue import PerKeyQueue
from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from limnos.names.path import Levels
    from limnos.rooms.lance.services.workers import LanceWorkers
    from limnos.rooms.lance.sources.directories import DirectoryTable, LanceDirectory
    from limnos.rooms.lance.sources.questions import AddFields, LanceQuestion, Merge, Query

T = TypeVar("T")
log = get_logger("limnos.lance")


class FolderLimits(NamedTuple):
    """The limits of one request: a decoded batch in bytes, a body in bytes (0 for no limit), and time in seconds."""

    batch_bytes_max: int
    body_bytes_max: int
    seconds: float


class FolderTable(NamedTuple):
    """A table of a directory: its location, its properties, and whether it has no data yet."""

    entry: DirectoryTable
    location: str
    is_declared: bool

    @property
    def uri(self) -> str:
        """The table's location in the form that clients read."""
        return f"file://{self.location}" if is_local(self.location) else self.location


class CreatedFolderTable(NamedTuple):
    """A table, and the result of writing into it; None if an existing table was left unchanged."""

    table: FolderTable
    written: LanceWriteResult | None


class FolderRequest:
    """The state of one request: whether it may have changed files."""

    def __init__(self) -> None:
        self.is_submitted = False

    def mark(self, is_submitted: bool) -> None:  # noqa: FBT001 - what it says is all it has
        """Set whether the request may have changed files."""
        self.is_submitted = is_submitted


class FolderTables:
    """The tables of a directory, by their levels."""

    def __init__(self, directory: LanceDirectory, workers: LanceWorkers, *, limits: FolderLimits) -> None:
        self.directory = directory
        self.workers = workers
        self.limits = limits
        self._lines = PerKeyQueue()

    def table(self, levels: Levels) -> FolderRows:
        """Return the operations on a table's rows. The first operation fails if the table is missing."""
        return FolderRows(self, levels)

    async def find(self, levels: Levels) -> FolderTable:
        """Find an existing table. Raises NotFound, InvalidTable for a directory that is not a table, StorageFailed."""
        return await asyncio.to_thread(self._find, levels)

    def _find(self, levels: Levels) -> FolderTable:
        entry = self.directory.find(levels)
        return FolderTable(entry, self.directory.location(entry), self.directory.is_declared(entry))

    async def create(
        self, levels: Levels, *, mode: str, properties: Mapping[str, str], body: AsyncGenerator[bytes, None]
    ) -> CreatedFolderTable:
        """Create a table from the rows in a body.

        Raises NotFound (the namespace), AlreadyExists, and the errors of writing rows.

        Requests for the same name run one after the other, since a failed creation releases the name.
        """
        async with self._lines.turn(hash(levels)):
            return await self._create_locked(levels, mode=mode, properties=properties, body=body)

    async def _create_locked(
        self, levels: Levels, *, mode: str, properties: Mapping[str, str], body: AsyncGenerator[bytes, None]
    ) -> CreatedFolderTable:
        table, is_new = await self._reserve_name(levels, mode=mode, properties=properties)
        if mode == EXIST_OK and not is_new:
            await body.aclose()
            return CreatedFolderTable(table, None)
        question = Write(location="", options={}, mode=mode, batch_bytes_max=self.limits.batch_bytes_max)
        try:
            write_result = await self.table(levels).feed(question, branch=None, body=body)
        except StateUnknown:
            raise
        except BaseException:
            if is_new:
                await asyncio.shield(asyncio.to_thread(self._release_name, levels))
            raise
        return CreatedFolderTable(table, write_result)

    async def _reserve_name(
        self, levels: Levels, *, mode: str, properties: Mapping[str, str]
    ) -> tuple[FolderTable, bool]:
        """Find a table, or reserve the name of a new one.

        Returns the table, and whether it is new. Raises AlreadyExists if the mode requires a new table and the name is
        taken.
        """
        try:
            table = await self.find(levels)
        except NotFound as error:
            if error.kind != "table":
                raise
            await asyncio.to_thread(self.directory.declare, levels, dict(properties))
            return await self.find(levels), True
        if mode == CREATE and not table.is_declared:
            raise AlreadyExists(f"Table already exists: {render(levels)}", kind="table")
        return table, False

    def _release_name(self, levels: Levels) -> None:
        """Release the name of a table whose creation failed."""
        try:
            if self._find(levels).is_declared:
                self.directory.drop(levels)
        except LimnosError as error:
            log.warning("the folder of a table that was not created remains", table=levels, error=error.message)

    @asynccontextmanager
    async def within(self, work: FolderRequest) -> AsyncIterator[None]:
        """Limit the time of a request.

        Raises ServiceUnavailable, or StateUnknown if files may have changed.
        """
        try:
            async with asyncio.timeout(self.limits.seconds):
                yield
        except TimeoutError:
            late = f"The request was not complete within {self.limits.seconds:g} s"
            if work.is_submitted:
                raise StateUnknown(f"{late}, and the change may have been made: check before you repeat it") from None
            raise ServiceUnavailable(f"{late}, and nothing was changed: request less at once, or try again") from None


class FolderRows:
    """Reads and writes the rows of one table of a directory, in worker processes."""

    def __init__(self, folders: FolderTables, levels: Levels) -> None:
        self._folders = folders
        self._levels = levels

    @property
    def batch_bytes_max(self) -> int:
        """The maximum size of a decoded batch, in bytes."""
        return self._folders.limits.batch_bytes_max

    @property
    def body_bytes_max(self) -> int:
        """The maximum size of the rows in one request, in bytes; 0 for no limit."""
        return self._folders.limits.body_bytes_max

    async def answer(self, question: LanceQuestion, *, at: VersionReference, shape: type[T], reads: bool = False) -> T:
        """Read information from the table's files in a worker process. Returns the result, decoded as type `shape`."""
        work = FolderRequest()
        async with self._folders.within(work):
            worker_task, _ = await self._worker_task(question, at=at, work=work)
            return msgspec.json.decode(await self._folders.workers.ask(worker_task), type=shape)

    async def change(self, question: LanceQuestion, *, at: VersionReference, shape: type[T]) -> T:
        """Change the table in a worker process. Returns the result, decoded as type `shape`."""
        work = FolderRequest()
        async with self._folders.within(work):
            worker_task, _ = await self._worker_task(question, at=at, work=work, writes=True)
            return msgspec.json.decode(await self._folders.workers.ask(worker_task), type=shape)

    async def query(self, query: Query, *, at: VersionReference) -> AsyncGenerator[bytes, None]:
        """Query rows: yields an Arrow file in chunks, of which the first exists when this returns."""
        work = FolderRequest()
        async with self._folders.within(work):
            worker_task, _ = await self._worker_task(query, at=at, work=work)
            pieces = self._folders.workers.stream(worker_task)
            first = await anext(pieces)
        return self._remaining_chunks(first, pieces)

    async def _remaining_chunks(self, first: bytes, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Yield the first chunk and the remaining ones, each within the time limit."""
        async with aclosing(pieces):
            yield first
            while True:
                async with self._folders.within(FolderRequest()):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece

    async def explain(self, query: Query, *, at: VersionReference, verbose: bool = False, runs: bool = False) -> str:
        """Return the plan of a query; with `runs` execute it and return the measured plan."""
        question = Explain(location="", options={}, query=query, verbose=verbose, runs=runs)
        return await self.answer(question, at=at, shape=str)

    async def feed(
        self, question: Write | Merge | AddFields, *, branch: str | None, body: AsyncGenerator[bytes, None]
    ) -> LanceWriteResult:
        """Write the rows in a body to the table."""
        check_keys(question)
        work = FolderRequest()
        async with self._folders.within(work):
            worker_task, _ = await self._worker_task(
                question, at=VersionReference(branch=branch), work=work, writes=True
            )
            return msgspec.json.decode(await self._folders.workers.feed(worker_task, body), type=LanceWriteResult)

    async def _worker_task(
        self, question: LanceQuestion, *, at: VersionReference, work: FolderRequest, writes: bool = False
    ) -> tuple[WorkerTask, FolderTable]:
        """Return the worker task for a request, and the table. Raises NotFound if the table or its data is missing."""
        check_version(at)
        branch = check_branch(at.branch or "") or None
        table = await self._folders.find(self._levels)
        if table.is_declared and not isinstance(question, Write):
            raise NotFound(NO_DATA_MESSAGE, kind="table")

        async def require_same_table() -> None:
            if (await self._folders.find(self._levels)).location != table.location:
                raise CommitConflict(
                    "The table was replaced by another one concurrently, and nothing was changed: read the table again"
                )

        about = {
            "location": table.location,
            "options": self._folders.directory.options,
            "version": at.version,
            "tag": at.tag,
            "branch": branch,
        }
        question = msgspec.structs.replace(question, **about)
        if isinstance(question, Explain):
            question = msgspec.structs.replace(question, query=msgspec.structs.replace(question.query, **about))
        return WorkerTask(
            question, caller=table.location, settled=require_same_table if writes else None, mark=work.mark
        ), table
