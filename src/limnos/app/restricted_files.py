# SPDX-License-Identifier: Apache-2.0
"""Offloaded work: rewrites one data file for restricted users and stores it where their clients read it.

Runs in a worker process that is killed at the request's deadline. Each request has the properties that its file store
needs. Decision record 0093.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from secrets import token_hex
from typing import Any, Final

import msgspec

from limnos.files import AllowedStorage, FileStore, delete_directory, is_local, is_within, read_within, store_for
from limnos.formats.restricting.rewriting import ReadShape, RewrittenFile, rewrite_file
from limnos.model.errors import AlreadyExists, MissingFile, StorageFailed, UnsupportedOperation

BYTES_MAX: Final = 512 << 20
"""Maximum size of a data file together with its delete files."""
_TOO_LARGE: Final = (
    "A file of the table is too large for restricted readers: compact the table into files of at most 512 MiB"
)
_ELSEWHERE: Final = (
    "A file of the table is outside of the table's locations, where the server reads no files: the table's owner must"
    " write it again"
)


class RestrictedFileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a restricted file: a scan task with its delete files, the table's locations, and the location to
    write to.
    """

    shape: ReadShape
    task: dict[str, Any]
    deletes: list[dict[str, Any]]
    roots: tuple[str, ...]
    into: str
    name: str
    properties: dict[str, str]
    kept: tuple[str, ...]
    open_within: tuple[str, ...]


def restricted_file_write(question: bytes) -> list[bytes]:
    """Rewrite a file for restricted users and store it, or return the description of an earlier rewrite.

    Returns the description as JSON (counts, bounds, `file-path`, size) and the number of bytes written. Raises
    UnsupportedOperation, MissingFile, StorageFailed.
    """
    request = msgspec.json.decode(question, type=RestrictedFileRequest)
    store = store_for(request.into, request.properties)
    description_at = f"{request.into}/{request.name}.json"
    with suppress(MissingFile):
        return [store.read(description_at), b"0"]
    file = _rewrite_restricted(request)
    fields = dict(file.file_entry)
    if file.data:
        location = f"{request.into}/{request.name}-{token_hex(4)}.parquet"
        store.write_new(location, file.data)
        fields |= {"file-path": location, "file-size-in-bytes": len(file.data)}
    return [_store_description(store, description_at, description=fields), b"%d" % len(file.data)]


def _rewrite_restricted(request: RestrictedFileRequest) -> RewrittenFile:
    """Return a data file with the restrictions of a user applied; stores nothing.

    A refusal's cause has the file's name, for the log only. Raises UnsupportedOperation, StorageFailed.
    """
    files = _read(request)
    try:
        return rewrite_file(request.shape, request.task, deletes=request.deletes, files=files)
    except UnsupportedOperation as refused:
        at = request.task["data-file"]["file-path"]
        raise UnsupportedOperation(refused.message) from OSError(f"{at}: {refused.__cause__ or refused.message}")


def _store_description(store: FileStore, location: str, *, description: dict[str, Any]) -> bytes:
    """Store and return the description of a rewritten file. If another process has stored one before, delete this
    process's file and return that description.
    """
    data = msgspec.json.encode(description)
    try:
        store.write_new(location, data)
    except AlreadyExists:
        if "file-path" in description:
            store.delete(description["file-path"])
        return store.read(location)
    return data


def _read(request: RestrictedFileRequest) -> dict[str, bytes]:
    """Return a data file and its delete files by path. Raises UnsupportedOperation, StorageFailed."""
    requested = [request.task["data-file"], *request.deletes]
    if sum(each["file-size-in-bytes"] for each in requested) > BYTES_MAX:
        raise UnsupportedOperation(_TOO_LARGE)
    return {each["file-path"]: _bytes(request, each["file-path"]) for each in requested}


def _bytes(request: RestrictedFileRequest, location: str) -> bytes:
    if not is_within(location, request.roots):
        raise UnsupportedOperation(_ELSEWHERE) from OSError(location)
    try:
        if is_local(location):
            allowed = AllowedStorage((), own_directories=request.kept, open_within=request.open_within)
            return read_within(location, request.roots, allowed, bytes_max=BYTES_MAX)
        return store_for(location, request.properties).read(location, bytes_max=BYTES_MAX)
    except MissingFile:  # the name could reveal values
        words = "A file of the table is missing: the table's owner must restore it"
        raise StorageFailed(words) from OSError(location)


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
    "restrict-delete": files_delete,
}
"""The offloaded functions by name."""
