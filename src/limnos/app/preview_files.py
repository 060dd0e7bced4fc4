"""Offloaded work: reads the first rows of a data file, by ranges and within a budget of bytes.

May import `files`, `formats.restricting` and `model`. Runs in a worker process with a memory limit, which is killed at
the deadline of the preview. Messages name no file, because names of files may contain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import msgspec

from limnos.files import AllowedStorage, RangeReader, ReadBudget, is_within, open_ranges
from limnos.formats.restricting.heads import HeadRequest, file_head
from limnos.model.errors import LimnosError, MissingFile, StorageFailed, UnsupportedOperation

_ELSEWHERE: Final = "A file of the table is outside of the table's location, where the server reads no files: read the table with a client"
_UNREADABLE: Final = (
    "A file of the table cannot be read here: it is damaged or has an unsupported format. Read the table with a client, or check its files "
    "with limnos table check"
)
_MISSING: Final = "A file of the table is missing: limnos table check names it and the remedy"


class PreviewRequest(msgspec.Struct, frozen=True):
    """A request for the first rows of a file, with what its file store needs.

    `roots` are the locations below which the files lie; `read_bytes_max` is the most bytes to read.
    """

    head: HeadRequest
    roots: tuple[str, ...]
    properties: dict[str, str]
    kept: tuple[str, ...]
    open_within: tuple[str, ...]
    read_bytes_max: int


def preview_file(question: bytes) -> list[bytes]:
    """Read the first rows of a file. Returns JSON: the rows, whether they are all, and the number of bytes read.

    Raises UnsupportedOperation, StorageFailed, ServiceUnavailable.
    """
    request = msgspec.json.decode(question, type=PreviewRequest)
    allowed = AllowedStorage((), own_directories=request.kept, open_within=request.open_within)
    budget = ReadBudget(request.read_bytes_max)
    opened: list[RangeReader] = []

    def open_file(location: str) -> RangeReader:
        if not is_within(location, list(request.roots)):
            raise UnsupportedOperation(_ELSEWHERE) from OSError(location)
        file = open_ranges(location, request.properties, roots=request.roots, allowed=allowed, budget=budget)
        opened.append(file)
        return file

    try:
        with _told_without_names(budget):
            head = file_head(request.head, open_file=open_file)
    finally:
        for file in opened:
            file.close()
    return [msgspec.json.encode([head.rows, head.is_whole, budget.bytes_max - budget.left])]


@contextmanager
def _told_without_names(budget: ReadBudget) -> Iterator[None]:
    """Replace errors by errors that do not name files. The originals are attached as causes, for the log."""
    try:
        yield
    except MissingFile as error:
        raise StorageFailed(_MISSING) from OSError(str(error))
    except (LimnosError, MemoryError):
        raise
    except Exception as error:
        if budget.is_used_up:  # the reader of Parquet wraps the refusal of the budget
            raise UnsupportedOperation(budget.message) from error
        raise UnsupportedOperation(_UNREADABLE) from error


PREVIEW_FUNCTIONS: Mapping[str, Callable[..., list[bytes]]] = {"preview-file": preview_file}
"""The functions by name."""
