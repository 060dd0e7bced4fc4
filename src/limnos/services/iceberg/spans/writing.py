# SPDX-License-Identifier: Apache-2.0
"""Writes the restricted files of a span of a data file, in a worker process of the server or in an executor.

Must not know users, nor who may read the files. Each request has the properties that its file stores need. Decision
records 0093 and 0337.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from secrets import token_hex
from typing import Any, Final

import msgspec

from limnos.files import AllowedStorage, FileStore, RangeReader, ReadBudget, is_within, open_ranges, store_for
from limnos.formats.restricting.reading import ReadShape
from limnos.formats.restricting.rewriting import RewrittenFile, rewrite_file
from limnos.formats.restricting.spans import FileSpan
from limnos.model.errors import LimnosError, MissingFile, ServiceUnavailable, StorageFailed, UnsupportedOperation

Json = dict[str, Any]
DELETES_BYTES_MAX: Final = 512 << 20
"""The maximum size of the delete files of one data file together."""
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


class SpanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the restricted files of a scan task, or of a span of its data file: the task with its delete files,
    the table's locations, and the location to write to.
    """

    shape: ReadShape
    task: Json
    deletes: list[Json]
    span: FileSpan | None
    roots: tuple[str, ...]
    into: str
    name: str
    properties: dict[str, str] = {}
    """The properties of the catalog, with its credentials; empty for an executor."""
    credentials: dict[str, dict[str, str]] = {}
    """The properties of single locations, with vended credentials, for an executor; empty for the server."""
    kept: tuple[str, ...]
    open_within: tuple[str, ...]

    def properties_at(self, location: str) -> Mapping[str, str]:
        """Return the properties of the file store at a location."""
        return next((each for at, each in self.credentials.items() if is_within(location, [at])), self.properties)

    @property
    def allowed(self) -> AllowedStorage:
        """The server's own directories, in which no file is read."""
        return AllowedStorage((), own_directories=self.kept, open_within=self.open_within)


def span_write(request: SpanRequest) -> list[Json]:
    """Rewrite a span of a file for restricted users, and store its files.

    Returns the entry of each file: counts, bounds, `file-path`, size. Raises UnsupportedOperation, StorageFailed,
    ServiceUnavailable; then no file remains.
    """
    store = store_for(request.into, request.properties_at(request.into))
    files: list[Json] = []
    try:
        for file in _restricted_files(request):
            location = f"{request.into}/{request.name}-{token_hex(4)}.parquet"
            store.write_new(location, file.data)
            files.append(file.file_entry | {"file-path": location, "file-size-in-bytes": len(file.data)})
    except BaseException:
        files_delete(store, files)
        raise
    return files


def files_delete(store: FileStore, files: list[Json]) -> None:
    """Delete files that no description names; those that remain are deleted with their directory."""
    for each in files:
        with suppress(LimnosError):
            store.delete(each["file-path"])


def open_source(request: SpanRequest, location: str, *, budget: ReadBudget | None = None) -> RangeReader:
    """Open a file of the table. Raises UnsupportedOperation for one outside of the table's locations."""
    if not is_within(location, request.roots):
        raise UnsupportedOperation(_ELSEWHERE) from OSError(location)
    return open_ranges(
        location,
        request.properties_at(location),
        roots=request.roots,
        allowed=request.allowed,
        budget=budget or ReadBudget(_UNLIMITED),
    )


def _restricted_files(request: SpanRequest) -> Iterator[RewrittenFile]:
    """Yield the restricted files of a span; stores nothing.

    Messages have no file names; the cause has them, for the log only. Raises UnsupportedOperation, StorageFailed,
    ServiceUnavailable.
    """
    at = request.task["data-file"]["file-path"]
    deletes = ReadBudget(DELETES_BYTES_MAX)

    def open_file(location: str) -> RangeReader:
        return open_source(request, location, budget=None if location == at else deletes)

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
