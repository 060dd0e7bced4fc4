# SPDX-License-Identifier: Apache-2.0
"""Writers for the files of COPY TO, below a local directory or a fileset's location.

Must not know statements. A local directory gets its final name when all of its files are written. In an object store
each file appears when it is complete, and `_SUCCESS` after the last one. Disk operations never run on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol
from uuid import uuid4

from limnos.files import ExportedDirectory, is_local, run_in_own_thread
from limnos.model.errors import AlreadyExists, NotEmpty
from limnos.rooms.sqlpp.language import SqlppError
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.files import FileOperations

NOT_EMPTY, BAD_PART, TOO_LONG = 62, 64, 65
PART_BYTES_MAX: Final = 255
PATH_BYTES_MAX: Final = 1024
STORE_FILE_BYTES_MAX: Final = 64 << 20
"""Size at which a file in an object store ends at the latest: it is buffered in memory until it is sent."""
SUCCESS: Final = "_SUCCESS"
EXPORT_ID_LENGTH: Final = 8
AT_ONCE: Final = 8


class ExportTarget(NamedTuple):
    """The target directory of an export, and the roots below which it must be. `properties` configure the connection to
    its object store.
    """

    location: str
    properties: Mapping[str, str]
    roots: tuple[str, ...]
    about: str
    """The object by which the caller may write there, for the audit."""


class ExportFiles(Protocol):
    """The interface to write the files of one export, one after another. The export is complete after `publish`."""

    async def begin(self) -> None:
        """Check that the target directory is empty, and prepare it. Raises SqlppError if it is not empty."""

    async def open(self, names: Sequence[str]) -> None:
        """Begin a file; `names` are the names of its directories, then the file name."""

    async def write(self, data: bytes) -> None:
        """Append bytes to the current file."""

    async def close(self) -> None:
        """Finish the current file."""

    async def publish(self) -> None:
        """Complete the export: rename the local directory, or create `_SUCCESS` in the object store.

        Raises SqlppError if another export was completed there first.
        """

    def discard(self) -> None:
        """Delete the written files of a failed export in the background."""


def export_files_of(files: FileOperations, target: ExportTarget) -> ExportFiles:
    """Return the writer of an export's files: for a local directory, or for an object store."""
    return _LocalFiles(files, target.location) if is_local(target.location) else _StoreFiles(files, target)


def check_names(names: Sequence[str], location: str) -> None:
    """Check the directory names that a path expression computed. Raises SqlppError for invalid ones."""
    for name in names:
        if name in (".", "..") or not name.isprintable() or "\\" in name:
            raise SqlppError(BAD_PART, f"Path expression produced '{name[:80]}', which is not a directory name")
        if len(name.encode("utf-8", "replace")) > PART_BYTES_MAX:
            raise _too_long(name, PART_BYTES_MAX)
    if len("/".join((location, *names)).encode("utf-8", "replace")) > PATH_BYTES_MAX:
        raise _too_long("/".join(names), PATH_BYTES_MAX)


def _too_long(path: str, most: int) -> SqlppError:
    return SqlppError(
        TOO_LONG, f"Length of the file path '{path[:200]}' exceeds the maximum length of '{most} bytes' allowed here"
    )


def _not_empty(location: str) -> SqlppError:
    return SqlppError(NOT_EMPTY, f"Cannot write to a non-empty directory '{location}'")


class _LocalFiles:
    """Writes an export to a local directory. Disk operations run in a thread, one after another."""

    def __init__(self, files: FileOperations, location: str) -> None:
        self._files = files
        self._location = location
        self._directory = ExportedDirectory(location)
        self._last: asyncio.Future[None] | None = None

    async def begin(self) -> None:
        await self._run(self._directory.begin)

    async def open(self, names: Sequence[str]) -> None:
        await self._run(lambda: self._directory.open(names))

    async def write(self, data: bytes) -> None:
        await self._run(lambda: self._directory.write(data))

    async def close(self) -> None:
        await self._run(self._directory.close)

    async def publish(self) -> None:
        await self._run(self._directory.publish)

    def discard(self) -> None:
        self._files.run_in_background(self._delete())

    async def _run(self, call: Callable[[], None]) -> None:
        # Its own thread: a hung disk must not block shared threads.
        self._last = asyncio.ensure_future(run_in_own_thread(call))
        try:
            await asyncio.shield(self._last)
        except NotEmpty:
            raise _not_empty(self._location) from None

    async def _delete(self) -> None:
        """Delete the files after the last write has finished, since a cancelled statement does not stop that write."""
        if self._last is not None:
            await asyncio.wait([self._last])
        await run_in_own_thread(self._directory.discard)


class _StoreFiles:
    """Writes an export to an object store. File names contain an id of the export, so that two exports never share a
    file.

    `_SUCCESS` contains the id, too, and is created with a precondition, so that only one export can create it.
    """

    def __init__(self, files: FileOperations, target: ExportTarget) -> None:
        self._files = files
        self._target = target
        self._export_id = uuid4().hex[:EXPORT_ID_LENGTH]
        self._name = ""
        self._held = bytearray()
        self._written: list[str] = []

    async def begin(self) -> None:
        if await self._files.holds(self._target.location, self._target.properties, roots=self._target.roots):
            raise _not_empty(self._target.location)

    async def open(self, names: Sequence[str]) -> None:
        *directories, name = names
        stem, dot, ending = name.partition(".")
        self._name = "/".join((self._target.location, *directories, f"{stem}-{self._export_id}{dot}{ending}"))

    async def write(self, data: bytes) -> None:
        self._held += data

    async def close(self) -> None:
        data, self._held = bytes(self._held), bytearray()
        self._written.append(self._name)
        await self._files.write(self._name, data, self._target.properties)

    async def publish(self) -> None:
        name = f"{self._target.location}/{SUCCESS}"
        if await self._files.exists(name, self._target.properties):
            raise _not_empty(self._target.location)
        try:
            await self._files.write(name, self._export_id.encode(), self._target.properties)
        except AlreadyExists:
            raise _not_empty(self._target.location) from None
        self._written.append(name)

    def discard(self) -> None:
        self._files.run_in_background(self._delete())

    async def _delete(self) -> None:
        async def delete(name: str) -> None:
            await self._files.delete(name, self._target.properties)

        await map_concurrently(list(reversed(self._written)), delete, at_once=AT_ONCE)
