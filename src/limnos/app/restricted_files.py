# SPDX-License-Identifier: Apache-2.0
"""Offloaded work: rewrites a span of a data file for restricted users and stores the result where their clients read
it.

Runs in a worker process that is killed at the request's deadline. Each request has the properties that its file store
needs. Decision record 0093.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from secrets import token_hex
from typing import Any, Final

import msgspec

from limnos.files import (
    AllowedStorage,
    FileStore,
    RangeReader,
    ReadBudget,
    delete_directory,
    is_within,
    open_ranges,
    store_for,
)
from limnos.formats.restricting.reading import ReadShape
from limnos.formats.restricting.rewriting import RewrittenFile, rewrite_file
from limnos.formats.restricting.spans import FileSpan
from limnos.model.errors import (
    AlreadyExists,
    LimnosError,
    MissingFile,
    ServiceUnavailable,
    StorageFailed,
    UnsupportedOperation,
)

DELETES_BYTES_MAX: Final = 512 << 20
"""The maximum size of the delete files of one data file together."""
FIND_THREADS: Final = 16
_UNLIMITED: Final = 1 << 62
_TOO_LARGE: Final = (
    "The delete files of a file of the table are too large for restricted readers: compact the table, so that they have"
    " at most 512 MiB"
)
_ELSEWHERE: Final = (
    "A file of the table is outside of the table's locations, where the server reads no files: the table's owner must"
    " write it again"
)
_MISSING: Final = "A file of the table is missing: the table's owner must restore it"
_UNREADABLE: Final = "A file of the table cannot be read at present; the server's log has the reason"


class RestrictedFileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the restricted files of a scan task, or of a span of its data file: the task with its delete files,
    the table's locations, and the location to write to.
    """

    shape: ReadShape
    task: dict[str, Any]
    deletes: list[dict[str, Any]]
    span: FileSpan | None
    roots: tuple[str, ...]
    into: str
    name: str
    properties: dict[str, str]
    kept: tuple[str, ...]
    open_within: tuple[str, ...]


def restricted_file_write(question: bytes) -> list[bytes]:
    """Rewrite a span of a file for restricted users and store the files, or return the description of an earlier
    rewrite.

    Returns the description as JSON (for each file counts, bounds, `file-path`, size) and the number of bytes written.
    Raises UnsupportedOperation, MissingFile, StorageFailed.
    """
    request = msgspec.json.decode(question, type=RestrictedFileRequest)
    store = store_for(request.into, request.properties)
    description_at = f"{request.into}/{request.name}.json"
    with suppress(MissingFile):
        return [store.read(description_at), b"0"]
    files: list[dict[str, Any]] = []
    try:
        for file in _restricted_files(request):
            location = f"{request.into}/{request.name}-{token_hex(4)}.parquet"
            store.write_new(location, file.data)
            files.append(file.file_entry | {"file-path": location, "file-size-in-bytes": len(file.data)})
        description = _store_description(store, description_at, files=files)
    except BaseException:
        _delete_files(store, files)
        raise
    return [description, b"%d" % sum(each["file-size-in-bytes"] for each in files)]


def _restricted_files(request: RestrictedFileRequest) -> Iterator[RewrittenFile]:
    """Yield the restricted files of a span; stores nothing.

    Messages have no file names; the cause has them, for the log only. Raises UnsupportedOperation, StorageFailed,
    ServiceUnavailable.
    """
    at = request.task["data-file"]["file-path"]
    deletes = ReadBudget(DELETES_BYTES_MAX)

    def open_file(location: str) -> RangeReader:
        if not is_within(location, request.roots):
            raise UnsupportedOperation(_ELSEWHERE) from OSError(location)
        allowed_storage = AllowedStorage((), own_directories=request.kept, open_within=request.open_within)
        budget = ReadBudget(_UNLIMITED) if location == at else deletes
        return open_ranges(location, request.properties, roots=request.roots, allowed=allowed_storage, budget=budget)

    try:
        yield from rewrite_file(
            request.shape, request.task, deletes=request.deletes, open_file=open_file, span=request.span
        )
    except UnsupportedOperation as refused:
        text = _TOO_LARGE if deletes.is_used_up else refused.message
        raise UnsupportedOperation(text) from OSError(f"{at}: {refused.__cause__ or refused.message}")
    except MissingFile as error:
        raise StorageFailed(_MISSING) from OSError(error.message)
    except (StorageFailed, ServiceUnavailable) as error:
        raise type(error)(_UNREADABLE) from OSError(error.message)


def _store_description(store: FileStore, location: str, *, files: list[dict[str, Any]]) -> bytes:
    """Store and return the description of rewritten files. If another process has stored one before, delete this
    process's files and return that description.
    """
    data = msgspec.json.encode({"files": files})
    try:
        store.write_new(location, data)
    except AlreadyExists:
        _delete_files(store, files)
        files.clear()
        return store.read(location)
    return data


def _delete_files(store: FileStore, files: list[dict[str, Any]]) -> None:
    """Delete files that no description names; those that remain are deleted with their directory."""
    for each in files:
        with suppress(LimnosError):
            store.delete(each["file-path"])


class FindRequest(msgspec.Struct, frozen=True):
    """A request for the descriptions of earlier rewrites: their directory, their names, and its store's properties."""

    into: str
    names: tuple[str, ...]
    properties: dict[str, str]


def descriptions_find(question: bytes) -> list[bytes]:
    """Read descriptions of rewritten files. Returns a JSON list with the files of each name; null if it is missing.

    Raises StorageFailed, ServiceUnavailable.
    """
    request = msgspec.json.decode(question, type=FindRequest)
    store = store_for(request.into, request.properties)

    def find(name: str) -> msgspec.Raw:
        try:
            return msgspec.Raw(store.read(f"{request.into}/{name}.json"))
        except MissingFile:
            return msgspec.Raw(b'{"files":null}')

    with ThreadPoolExecutor(FIND_THREADS) as pool:
        descriptions = list(pool.map(find, request.names))
    return [msgspec.json.encode([msgspec.json.decode(each, type=_Description).files for each in descriptions])]


class _Description(msgspec.Struct, frozen=True):
    files: msgspec.Raw


class DeleteRequest(msgspec.Struct, frozen=True):
    """A request to delete a directory, with the properties of its file store."""

    location: str
    properties: dict[str, str]


def files_delete(question: bytes) -> list[bytes]:
    """Delete a directory that no restricted scan plan needs any more.

    Raises StorageFailed, or ServiceUnavailable if the store is unreachable.
    """
    request = msgspec.json.decode(question, type=DeleteRequest)
    delete_directory(request.location, request.properties)
    return []


RESTRICTED_FILE_FUNCTIONS: Mapping[str, Callable[..., list[bytes]]] = {
    "restrict-file": restricted_file_write,
    "restrict-find": descriptions_find,
    "restrict-delete": files_delete,
}
"""The offloaded functions by name."""
