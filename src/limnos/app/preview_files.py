# SPDX-License-Identifier: Apache-2.0
"""Offloaded work: reads the beginning of a table's data file or of a fileset's file, within a budget of bytes.

Runs in a worker process with a memory limit, which is killed at the deadline of the preview. Messages about tables name
no file to restricted users, because names of files may contain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import msgspec

from limnos.files import AllowedStorage, RangeReader, ReadBudget, is_within, open_ranges
from limnos.files.file_errors import missing_error
from limnos.formats.file_heads import HeadLimits, file_content
from limnos.formats.restricting.heads import HeadRequest, file_head
from limnos.model.errors import LimnosError, MissingFile, StorageFailed, UnsupportedOperation

_ELSEWHERE: Final = (
    "A file of the table is outside of the table's location, where the server reads no files: read the table with a"
    " client"
)
_UNREADABLE: Final = (
    "A file of the table cannot be read here: it is damaged or has an unsupported format. Read the table with a client,"
    " or check its files with limnos table check"
)
_MISSING: Final = "A file of the table is missing: limnos table check names it and the remedy"
_NAMED_MISSING: Final = "A file of the table is missing, {location}: limnos table check lists all, and the remedy"
_DAMAGED: Final = (
    "The file cannot be read as what its name says: it is damaged, or the name is wrong. Read it with another program"
)


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the first rows of a file, with the connection to its file store.

    `roots` are the locations below which the files lie; `read_bytes_max` is the largest count of bytes to read.
    `names_files`: messages may name a missing file, because no restriction applies to the user.
    """

    head: HeadRequest
    roots: tuple[str, ...]
    properties: dict[str, str]
    kept: tuple[str, ...]
    open_within: tuple[str, ...]
    read_bytes_max: int
    names_files: bool = False


def preview_file(question: bytes) -> list[bytes]:
    """Read the first rows of a file. Returns JSON: the rows, whether the file has no further rows, and the bytes read.

    Raises UnsupportedOperation, StorageFailed, ServiceUnavailable.
    """
    request = msgspec.json.decode(question, type=PreviewRequest)
    allowed_storage = AllowedStorage((), own_directories=request.kept, open_within=request.open_within)
    budget = ReadBudget(request.read_bytes_max)
    readers: list[RangeReader] = []

    def open_file(location: str) -> RangeReader:
        if not is_within(location, list(request.roots)):
            raise UnsupportedOperation(_ELSEWHERE) from OSError(location)
        try:
            file = open_ranges(
                location, request.properties, roots=request.roots, allowed=allowed_storage, budget=budget
            )
        except MissingFile as error:  # a local file's error has its path, and the table has its URL
            raise missing_error(location) from error
        readers.append(file)
        return file

    try:
        with _without_file_names(budget, names_missing=request.names_files):
            head = file_head(request.head, open_file=open_file)
    finally:
        for file in readers:
            file.close()
    return [msgspec.json.encode([head.rows, head.is_whole, budget.bytes_max - budget.left])]


@contextmanager
def _without_file_names(budget: ReadBudget, *, names_missing: bool) -> Iterator[None]:
    """Replace exceptions by UnsupportedOperation or StorageFailed, whose messages do not name files, except a missing
    one if `names_missing`. The originals are attached as causes, for the log.
    """
    try:
        with _replace_library_errors(budget, _UNREADABLE):
            yield
    except MissingFile as error:
        location = str(error.context.get("location", "")) if names_missing else ""
        raise StorageFailed(_NAMED_MISSING.format(location=location) if location else _MISSING) from OSError(str(error))


@contextmanager
def _replace_library_errors(budget: ReadBudget, text: str) -> Iterator[None]:
    """Replace exceptions of libraries by UnsupportedOperation with this text, or with the budget's message if the
    budget is used up.
    """
    try:
        yield
    except (LimnosError, MemoryError):
        raise
    except Exception as error:
        raise UnsupportedOperation(budget.message if budget.is_used_up else text) from error


class FilesetFileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the beginning of a fileset's file, with the connection to its file store.

    `root` is the fileset's storage location; a symbolic link that leads outside of it is refused.
    """

    location: str
    root: str
    properties: dict[str, str]
    kept: tuple[str, ...]
    open_within: tuple[str, ...]
    read_bytes_max: int
    limits: HeadLimits


def preview_fileset_file(question: bytes) -> list[bytes]:
    """Read the beginning of a file. Returns its content as JSON, or null if there is no such file.

    Raises UnsupportedOperation, StorageFailed, ServiceUnavailable.
    """
    request = msgspec.json.decode(question, type=FilesetFileRequest)
    allowed_storage = AllowedStorage((), own_directories=request.kept, open_within=request.open_within)
    budget = ReadBudget(request.read_bytes_max)
    try:
        with (
            _replace_library_errors(budget, _DAMAGED),
            open_ranges(
                request.location, request.properties, roots=(request.root,), allowed=allowed_storage, budget=budget
            ) as file,
        ):
            return [msgspec.json.encode(file_content(request.location, file, limits=request.limits))]
    except MissingFile:
        return [b"null"]


def preview_ready() -> list[bytes]:
    """No-op: the call makes the worker import this module, which loads the libraries of previews in advance."""
    return []


PREVIEW_FUNCTIONS: Mapping[str, Callable[..., list[bytes]]] = {
    "preview-ready": preview_ready,
    "preview-file": preview_file,
    "preview-fileset-file": preview_fileset_file,
}
"""The offloaded functions by name."""
