"""Offloaded work: rewrites one data file for restricted users and stores it where their clients read it.

May import `files`, `formats.restricting` and `model`. Runs in a worker process that is killed at the request's
deadline. Each request has the properties that its file store needs. Decision record 0093.
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
_TOO_LARGE: Final = "A file of the table is too large to be shown to whom its restrictions bind: compact the table into files of at most 512 MiB"
_ELSEWHERE: Final = "A file of the table lies outside of its location, where nothing is read here: have whoever owns the table write it anew"


class RestrictedFileRequest(msgspec.Struct, frozen=True):
    """A request for a restricted file: a task of a scan plan with its delete files, its table, and the target."""

    shape: ReadShape
    task: dict[str, Any]
    deletes: list[dict[str, Any]]
    root: str
    into: str
    name: str
    properties: dict[str, str]
    kept: tuple[str, ...]
    open_within: tuple[str, ...]


def file_show(question: bytes) -> list[bytes]:
    """Rewrite a file, or return the description of an earlier rewrite.

    Returns JSON of counts, bounds, `file-path` and size; and the number of bytes written. Raises UnsupportedOperation,
    MissingFile, StorageFailed.
    """
    asked = msgspec.json.decode(question, type=RestrictedFileRequest)
    store = store_for(asked.into, asked.properties)
    told_at = f"{asked.into}/{asked.name}.json"
    with suppress(MissingFile):
        return [store.read(told_at), b"0"]
    made = _write_restricted(asked)
    told = dict(made.told)
    if made.data:
        location = f"{asked.into}/{asked.name}-{token_hex(4)}.parquet"
        store.write_new(location, made.data)
        told |= {"file-path": location, "file-size-in-bytes": len(made.data)}
    return [_keep_description(store, told_at, told=told), b"%d" % len(made.data)]


def _write_restricted(asked: RestrictedFileRequest) -> RewrittenFile:
    """Rewrite a file.

    A refusal's cause has the file's name, for the log only. Raises UnsupportedOperation, StorageFailed.
    """
    files = _read(asked)
    try:
        return rewrite_file(asked.shape, asked.task, deletes=asked.deletes, files=files)
    except UnsupportedOperation as refused:
        at = asked.task["data-file"]["file-path"]
        raise UnsupportedOperation(refused.message) from OSError(f"{at}: {refused.__cause__ or refused.message}")


def _keep_description(store: FileStore, location: str, *, told: dict[str, Any]) -> bytes:
    """Store the description of a file. If another process was faster, use its description and delete our file."""
    data = msgspec.json.encode(told)
    try:
        store.write_new(location, data)
    except AlreadyExists:
        if "file-path" in told:
            store.delete(told["file-path"])
        return store.read(location)
    return data


def _read(asked: RestrictedFileRequest) -> dict[str, bytes]:
    """Read a data file and its delete files, only below the table's location."""
    wanted = [asked.task["data-file"], *asked.deletes]
    if sum(each["file-size-in-bytes"] for each in wanted) > BYTES_MAX:
        raise UnsupportedOperation(_TOO_LARGE)
    return {each["file-path"]: _bytes(asked, each["file-path"]) for each in wanted}


def _bytes(asked: RestrictedFileRequest, location: str) -> bytes:
    if not is_within(location, [asked.root]):
        raise UnsupportedOperation(_ELSEWHERE) from OSError(location)
    try:
        if is_local(location):
            allowed = AllowedStorage((), kept=asked.kept, open_within=asked.open_within)
            return read_within(location, [asked.root], allowed, bytes_max=BYTES_MAX)
        return store_for(location, asked.properties).read(location, bytes_max=BYTES_MAX)
    except MissingFile:  # the name could reveal values
        words = "A file of the table is missing: have whoever owns the table look after it"
        raise StorageFailed(words) from OSError(location)


class DeleteRequest(msgspec.Struct, frozen=True):
    """A directory to delete, and the properties of its file store."""

    location: str
    properties: dict[str, str]


def files_delete(question: bytes) -> list[bytes]:
    """Delete a directory that no restricted scan plan needs any more. Raises StorageFailed, ServiceUnavailable."""
    asked = msgspec.json.decode(question, type=DeleteRequest)
    delete_directory(asked.location, asked.properties)
    return []


RESTRICTED_FILE_FUNCTIONS: Mapping[str, Callable[..., list[bytes]]] = {
    "restrict-file": file_show,
    "restrict-delete": files_delete,
}
"""The functions by name."""
