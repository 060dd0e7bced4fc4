# SPDX-License-Identifier: Apache-2.0
"""Offloaded work: rewrites a span of a data file for restricted users, or checks what an executor has written, and
describes the result where their clients read it.

Runs in a worker process that is killed at the request's deadline. Each request has the properties that its file store
needs. Decision record 0093.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

import msgspec

from limnos.files import FileStore, delete_directory, store_for
from limnos.model.errors import AlreadyExists, BadRequest, MissingFile
from limnos.services.iceberg.spans.verification import SpanReport, own_files, span_verify
from limnos.services.iceberg.spans.writing import SpanRequest, files_delete, span_write

FIND_THREADS: Final = 16


class _Files(msgspec.Struct, frozen=True):
    files: list[dict[str, Any]]


def restricted_file_write(question: bytes) -> list[bytes]:
    """Rewrite a span of a file for restricted users and store the files, or return the description of an earlier
    rewrite.

    Returns the description as JSON (for each file counts, bounds, `file-path`, size) and the number of bytes written.
    Raises UnsupportedOperation, MissingFile, StorageFailed.
    """
    request = msgspec.json.decode(question, type=SpanRequest)
    store = store_for(request.into, request.properties)
    with suppress(MissingFile):
        return [store.read(_description_of(request)), b"0"]
    return _describe(store, request, files=span_write(request))


def reported_files_describe(question: bytes) -> list[bytes]:
    """Check the files that an executor wrote for a span, and describe them so that plans use them; or return the
    description of an earlier rewrite.

    Returns as `restricted_file_write`. Files that plans do not use are deleted. Raises BadRequest if they are not what
    the server would have written, and StorageFailed, ServiceUnavailable.
    """
    report = msgspec.json.decode(question, type=SpanReport)
    request = report.request
    store = store_for(request.into, request.properties)
    reported_files = [{"file-path": each} for each in own_files(report)]
    with suppress(MissingFile):
        description = store.read(_description_of(request))
        files_delete(store, _unused(reported_files, description=description))
        return [description, b"0"]
    try:
        files = span_verify(report)
    except BadRequest:
        files_delete(store, reported_files)
        raise
    return _describe(store, request, files=files)


def _description_of(request: SpanRequest) -> str:
    """Return the location of the description of a span's files."""
    return f"{request.into}/{request.name}.json"


def _describe(store: FileStore, request: SpanRequest, *, files: list[dict[str, Any]]) -> list[bytes]:
    """Store the description of a span's files. Returns it, and the number of bytes of the files.

    If another process has stored one before, its description is returned, and the other files are deleted.
    """
    data = msgspec.json.encode({"files": files})
    try:
        store.write_new(_description_of(request), data)
    except AlreadyExists:
        description = store.read(_description_of(request))
        files_delete(store, _unused(files, description=description))
        return [description, b"0"]
    except BaseException:
        files_delete(store, files)
        raise
    return [data, b"%d" % sum(each["file-size-in-bytes"] for each in files)]


def _unused(files: list[dict[str, Any]], *, description: bytes) -> list[dict[str, Any]]:
    """Return the files that a description does not name. An executor repeats a report whose response was lost."""
    used_paths = {each["file-path"] for each in msgspec.json.decode(description, type=_Files).files}
    return [each for each in files if each["file-path"] not in used_paths]


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


def directory_delete(question: bytes) -> list[bytes]:
    """Delete a directory that no restricted scan plan needs any more.

    Raises StorageFailed, or ServiceUnavailable if the store is unreachable.
    """
    request = msgspec.json.decode(question, type=DeleteRequest)
    delete_directory(request.location, request.properties)
    return []


RESTRICTED_FILE_FUNCTIONS: Mapping[str, Callable[..., list[bytes]]] = {
    "restrict-file": restricted_file_write,
    "restrict-verify": reported_files_describe,
    "restrict-find": descriptions_find,
    "restrict-delete": directory_delete,
}
"""The offloaded functions by name."""
