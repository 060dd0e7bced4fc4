# SPDX-License-Identifier: Apache-2.0
"""File operations for services: read, write, delete, and stage files that a commit will reference.

Blocking calls run in threads, except checks and small local reads and writes that take microseconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Self, TypeVar

from limnos.files import (
    LOCAL_FILES,
    AllowedStorage,
    ChooseNames,
    FileEntry,
    FileIdentity,
    FileStore,
    FileVersion,
    LocalRoots,
    ReadFile,
    ThreadShares,
    file_versions,
    is_local,
    leads_within,
    store_for,
)
from limnos.model.errors import LimnosError, MissingFile, OutsideRoots, ServiceUnavailable, StateUnknown, StorageFailed
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.store.faults import fault_point
from limnos.telemetry.logs import get_logger

T = TypeVar("T")
log = get_logger("limnos.files")
METADATA_BYTES_MAX = 1 << 28
AT_ONCE = 16
"""The number of files of one request that are written or deleted at a time."""
PART_S = 1.0
"""The time after which a call in a thread reads no further file of several, in seconds: a call has a time limit."""
INLINE_FILES_MAX = 32
"""The number of local files that are looked up on the event loop: a look-up takes some microseconds."""
INLINE_BYTES_MAX = 64 << 10
"""Local files up to this size are written on the event loop: the page cache is faster than a hop to a thread."""


def is_inline(location: str, data: bytes) -> bool:
    """Return whether a file is local, and small enough to be written on the event loop."""
    return is_local(location) and len(data) <= INLINE_BYTES_MAX


class WrittenFile:
    """A context manager that writes a file on entry, and deletes it on exit if the commit in its block certainly
    failed.
    """

    __slots__ = ("_data", "_files", "_first", "_location", "_properties")

    def __init__(
        self, files: FileOperations, location: str, data: bytes, properties: Mapping[str, str], *, first: bool
    ) -> None:
        self._files = files
        self._location = location
        self._data = data
        self._properties = properties
        self._first = first

    async def __aenter__(self) -> None:
        await self._files.write(self._location, self._data, self._properties, first=self._first)
        fault_point("file-written")

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, (StateUnknown, asyncio.CancelledError, TimeoutError)):
            return  # the commit points to the file, or may point to it: keep it
        if self._first and is_local(self._location):
            with suppress(LimnosError):  # at worst an orphan file stays
                LOCAL_FILES.undo_create(self._location)
            return
        await self._files.delete(self._location, self._properties)


class StagedFile(NamedTuple):
    """A file written before the commit that will reference it."""

    location: str
    properties: Mapping[str, str]
    first: bool


class FileBatch:
    """A context manager for several files, which deletes them on exit if the commit in its block certainly failed."""

    def __init__(self, files: FileOperations, is_begun: Callable[[], bool]) -> None:
        self._files = files
        self._is_begun = is_begun
        self._staged: dict[str, StagedFile] = {}

    async def __aenter__(self) -> Self:
        return self

    async def write(self, location: str, data: bytes, properties: Mapping[str, str], *, first: bool) -> None:
        """Write a file and add it to the batch."""
        await self._files.write(location, data, properties, first=first)
        self._staged[location] = StagedFile(location, properties, first)
        fault_point("file-written")

    async def delete(self, location: str) -> None:
        """Delete a file of the batch that is no longer needed."""
        staged_deletion = self._staged.pop(location, None)
        if staged_deletion is not None:
            await self._files.delete_staged(staged_deletion)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, StateUnknown):
            return  # the commit points to the files, or may point to them: keep them
        if isinstance(error, (asyncio.CancelledError, TimeoutError)):
            if not self._is_begun():  # no caller waits for the result any more, so delete them in the background
                self._files.run_in_background(self._delete_all())
            return
        await self._delete_all()

    async def _delete_all(self) -> None:
        staged_deletions = list(self._staged.values())
        await map_concurrently(staged_deletions, self._files.delete_staged, at_once=AT_ONCE)


class FileOperations:
    """File operations for services. Blocking calls run in the thread share of their catalog.

    Unless a method states otherwise, it also raises StorageFailed if the storage refuses or fails, ServiceUnavailable
    if it does not answer, and BadRequest for an endpoint that the server does not allow.
    """

    def __init__(self, allowed: AllowedStorage, *, timeout_s: float = 20.0) -> None:
        self._allowed = allowed
        self._shares = ThreadShares(timeout_s=timeout_s)
        self._background: set[asyncio.Task[None]] = set()

    async def read(self, location: str, properties: Mapping[str, str], *, bytes_max: int = METADATA_BYTES_MAX) -> bytes:
        """Read a whole file. Raises MissingFile if it does not exist, TooLarge if it is longer than `bytes_max`."""
        return await self._run(location, properties, lambda store: store.read(location, bytes_max=bytes_max))

    async def read_within(
        self, location: str, properties: Mapping[str, str], roots: Sequence[str], *, bytes_max: int = METADATA_BYTES_MAX
    ) -> bytes:
        """Read a whole file at a location from a request.

        Args:
            location: The location of the file.
            properties: The properties of the catalog, with the connection to its object store.
            roots: The locations within which a local file must be after symbolic links are resolved.
            bytes_max: The largest size of the file.

        Raises:
            MissingFile: The file does not exist, or a link leads out of the roots.
            TooLarge: The file is larger.
        """
        (data,) = await self.read_first_within([location], properties, roots=roots, bytes_max=bytes_max, part_bytes=0)
        return data

    async def read_first_within(
        self,
        locations: Sequence[str],
        properties: Mapping[str, str],
        *,
        roots: Sequence[str],
        bytes_max: int,
        part_bytes: int,
    ) -> list[bytes]:
        """Read a batch of files, in order, with one call in a thread.

        Returns the contents of the first files, at least one. See `read_within`.

        Args:
            locations: The locations of the files, in one store.
            properties: The properties of the catalog, with the connection to its object store.
            roots: The locations within which a local file must be after symbolic links are resolved.
            bytes_max: The largest size of a file.
            part_bytes: No further file is read once their total size exceeds this, or after `PART_S` seconds.

        Raises:
            MissingFile: A file does not exist, or a link leads out of the roots.
            TooLarge: A file is larger than `bytes_max`.
        """
        local = LocalRoots(roots, self._allowed)

        def read(_: FileStore) -> list[bytes]:
            part: list[bytes] = []
            size, until = 0, time.monotonic() + PART_S
            for location in locations:
                if is_local(location):
                    part.append(local.read(location, bytes_max=bytes_max))
                else:
                    part.append(store_for(location, properties).read(location, bytes_max=bytes_max))
                size += len(part[-1])
                if size > part_bytes or time.monotonic() > until:
                    break
            return part

        try:
            return await self._run(locations[0], properties, read)
        except MissingFile as error:
            _log_outside_link(error)
            raise

    async def read_each_within(
        self,
        locations: Sequence[str],
        properties: Mapping[str, str],
        *,
        roots: Sequence[str],
        part_bytes: int,
        bytes_max: int = METADATA_BYTES_MAX,
    ) -> list[ReadFile | LimnosError]:
        """Read a batch of local files, in order, with one call in a thread. See `read_first_within`.

        Returns the first files, at least one: each with its content, or the error of reading it.
        """
        local = LocalRoots(roots, self._allowed)

        def read(_: FileStore) -> list[ReadFile | LimnosError]:
            part: list[ReadFile | LimnosError] = []
            size, until = 0, time.monotonic() + PART_S
            for location in locations:
                try:
                    file = local.read_resolved(location, bytes_max=bytes_max)
                except LimnosError as error:
                    part.append(error)
                else:
                    part.append(file)
                    size += len(file.data)
                if size > part_bytes or time.monotonic() > until:
                    break
            return part

        results = await self._run(locations[0], properties, read)
        for each in results:
            if isinstance(each, MissingFile):
                _log_outside_link(each)
        return results

    async def write(self, location: str, data: bytes, properties: Mapping[str, str], *, first: bool = False) -> None:
        """Write a file under a new name. A small local file is written on the event loop.

        `first` marks the first file of a table, whose directory does not exist yet.
        """
        if is_inline(location, data):
            LOCAL_FILES.write_new(location, data, first=first)
            return

        def late(store: FileStore) -> None:
            store.delete(location)  # the write ended after its timeout: nothing will ever reference the file

        await self._run(location, properties, lambda store: store.write_new(location, data, first=first), late=late)

    @staticmethod
    def prepare(location: str) -> None:
        """Create a table's directories for data and metadata if the location is local. Runs on the event loop."""
        if is_local(location):
            for name in ("data", "metadata"):
                LOCAL_FILES.make_directory(f"{location}/{name}")

    @staticmethod
    def exists_now(location: str) -> bool:
        """Return whether a local file exists. Runs on the event loop."""
        return LOCAL_FILES.exists(location)

    @staticmethod
    def identity_now(location: str) -> FileIdentity | None:
        """Return the identity of the file at a local path, without following links; None if no file exists.

        Runs on the event loop.
        """
        return LOCAL_FILES.identity_of(location)

    async def exists(self, location: str, properties: Mapping[str, str]) -> bool:
        """Return whether a file exists. The check runs in the thread share of the catalog."""
        return await self._run(location, properties, lambda store: store.exists(location))

    async def size(self, location: str, properties: Mapping[str, str], *, roots: Sequence[str]) -> int | None:
        """Return the length of a file in bytes; None if it does not exist.

        Raises OutsideRoots if symbolic links leave the roots.
        """
        allowed_storage = self._allowed

        def look(store: FileStore) -> int | None:
            if is_local(location) and not leads_within(location, roots, allowed=allowed_storage):
                raise OutsideRoots(f"File {location} is a symbolic link to a location outside of the roots")
            return store.size(location)

        return await self._run(location, properties, look)

    async def versions(
        self, locations: Sequence[str], properties: Mapping[str, str], *, roots: Sequence[str]
    ) -> dict[str, FileVersion | None]:
        """Return the versions of files below some roots; None for a missing file. A few local files are looked up on
        the event loop, if the first root is local.
        """
        if is_local(roots[0]) and len(locations) <= INLINE_FILES_MAX:
            return file_versions(locations, properties, roots=roots)
        batches = [locations[first : first + INLINE_FILES_MAX] for first in range(0, len(locations), INLINE_FILES_MAX)]

        async def look(batch: Sequence[str]) -> dict[str, FileVersion | None]:
            return await self._run(roots[0], properties, lambda _: file_versions(batch, properties, roots=roots))

        results = await map_concurrently(batches, look, at_once=AT_ONCE)
        return {location: version for part in results for location, version in part.items()}

    async def holds(self, location: str, properties: Mapping[str, str], *, roots: Sequence[str]) -> bool:
        """Return whether any file exists below a location; False if symbolic links leave the roots."""
        if is_local(location):
            return leads_within(location, roots, allowed=self._allowed) and LOCAL_FILES.holds(location)
        return await self._run(location, properties, lambda store: store.holds(location))

    async def below(self, location: str, properties: Mapping[str, str], *, roots: Sequence[str]) -> list[str]:
        """List the files below a location; empty if symbolic links leave the roots."""
        if is_local(location) and not leads_within(location, roots, allowed=self._allowed):
            return []
        return await self._run(location, properties, lambda store: list(store.below(location)))

    async def entries(self, location: str, properties: Mapping[str, str], *, roots: Sequence[str]) -> list[FileEntry]:
        """List the files directly in a location; empty if symbolic links leave the roots."""
        if is_local(location) and not leads_within(location, roots, allowed=self._allowed):
            return []
        return await self._run(location, properties, lambda store: store.entries(location))

    async def list_selected(
        self, location: str, properties: Mapping[str, str], *, roots: Sequence[str], choose: ChooseNames
    ) -> list[FileEntry]:
        """List the files directly in a location whose names `choose` selects; empty if symbolic links leave the
        roots.
        """
        if is_local(location) and not leads_within(location, roots, allowed=self._allowed):
            return []
        return await self._run(location, properties, lambda store: store.list_selected(location, choose))

    async def directories(self, location: str, properties: Mapping[str, str], *, roots: Sequence[str]) -> list[str]:
        """List the names of the directories in a location; empty if symbolic links leave the roots."""
        if is_local(location) and not leads_within(location, roots, allowed=self._allowed):
            return []
        return await self._run(location, properties, lambda store: store.directories(location))

    def make_directory(self, location: str, *, roots: Sequence[str]) -> None:
        """Create a directory if the location is local.

        Runs on the event loop. Raises OutsideRoots if symbolic links leave the roots.
        """
        if is_local(location):
            if not leads_within(location, roots, allowed=self._allowed):
                raise OutsideRoots(
                    f"Location {location} is a symbolic link to a location outside of the catalog's roots: choose"
                    " another"
                )
            LOCAL_FILES.make_directory(location)

    async def link_new(self, source: str, target: str, *, properties: Mapping[str, str], roots: Sequence[str]) -> None:
        """Link or copy a file to a new name.

        Succeeds if the name is free or already refers to the same file. Local files are linked on the event loop.

        Raises MissingFile, also if symbolic links leave the roots; AlreadyExists if the name refers to another file.
        """
        if not is_local(target):
            await self._run(target, properties, lambda store: store.link_new(source, target))
            return
        if not leads_within(target.rpartition("/")[0], roots, allowed=self._allowed):
            raise MissingFile(f"{source} is not a file within the catalog's roots")
        LOCAL_FILES.link_new(source, target)

    async def move(self, source: str, target: str, *, properties: Mapping[str, str]) -> None:
        """Move a file to a new name. No-op if the source is missing."""
        await self._run(source, properties, lambda store: store.move(source, target))

    async def delete(self, location: str, properties: Mapping[str, str]) -> None:
        """Delete a file. A failure is only logged: at worst an orphan file remains."""
        try:
            await self._run(location, properties, lambda store: store.delete(location))
        except Exception as error:  # noqa: BLE001 - an orphan file is the worst that comes of it
            log.warning("file not deleted", location=location, error=str(error))

    async def run_in_thread(self, location: str, *, properties: Mapping[str, str], call: Callable[[], object]) -> None:
        """Run a call on the files below a location, in one of its catalog's threads.

        Raises ServiceUnavailable after the timeout or if a retry may help, else StorageFailed.
        """
        await self._run(location, properties, lambda _: call())

    def written_file(
        self, location: str, data: bytes, properties: Mapping[str, str], *, first: bool = False
    ) -> WrittenFile:
        """Return a context manager that writes a file on entry, and deletes it on exit if the commit in its block
        certainly failed.
        """
        return WrittenFile(self, location, data, properties, first=first)

    def file_batch(self, is_begun: Callable[[], bool]) -> FileBatch:
        """Return a context manager for several files that one commit references.

        `is_begun` returns whether the commit has begun, so that its failure is no longer certain.
        """
        return FileBatch(self, is_begun)

    async def delete_staged(self, staged: StagedFile) -> None:
        """Delete a staged file that no metadata references, and the directory that was created for it."""
        if staged.first and is_local(staged.location):
            with suppress(LimnosError):  # at worst an orphan file stays
                LOCAL_FILES.undo_create(staged.location)
            return
        await self.delete(staged.location, staged.properties)

    def run_in_background(self, work: Coroutine[None, None, None]) -> None:
        """Run a coroutine as a background task, without waiting for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _run(
        self,
        location: str,
        properties: Mapping[str, str],
        call: Callable[[FileStore], T],
        *,
        late: Callable[[FileStore], object] | None = None,
    ) -> T:
        """Run a call in the thread share of the catalog with these properties.

        A slow store delays only the calls of its share. Raises BadRequest for an endpoint that the server does not (or
        no longer) allow, ServiceUnavailable after the timeout for files, StorageFailed if the storage refuses the
        request.
        """
        if not is_local(location):
            self._allowed.check_use(properties)
        key = tuple(sorted(properties.items()))
        undo = None if late is None else (lambda: late(store_for(location, properties)))
        try:
            return await self._shares.run(key, lambda: call(store_for(location, properties)), late=undo)
        except (StorageFailed, ServiceUnavailable) as error:
            log.warning("storage failed", location=location, error=error.message, cause=error.context.get("cause"))
            raise

    def close(self) -> None:
        """No-op: stuck threads end with the process."""


def _log_outside_link(error: MissingFile) -> None:
    if "leads_to" in error.context:
        log.warning(
            "a link points outside of the catalog's roots",
            location=error.context["location"],
            to=error.context["leads_to"],
        )
