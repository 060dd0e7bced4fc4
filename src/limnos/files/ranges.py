# SPDX-License-Identifier: Apache-2.0
"""Range reads of files within a common byte budget, for formats with a footer (Parquet).

Must not know the content of files. A local file is opened once, after its links are resolved within the roots. From an
object store each part is read with a range request.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Protocol

from limnos.files import file_errors
from limnos.files.allowed_storage import AllowedStorage
from limnos.files.local import LocalFiles, path_of
from limnos.files.locations import is_local
from limnos.files.remote import RemoteFiles
from limnos.files.stores import store_for
from limnos.files.symbolic_links import resolve_within
from limnos.model.errors import UnsupportedOperation


class ReadBudget:
    """The maximum number of bytes that may be read from several files together."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.left = bytes_max
        self.is_used_up = False
        """Whether a read was refused."""

    @property
    def message(self) -> str:
        """The error message for a read beyond the budget."""
        size = f"{self.bytes_max >> 20} MiB" if self.bytes_max >= 1 << 20 else f"{self.bytes_max} bytes"
        return (
            f"Reading this takes more than {size} of the files, which is the limit here: ask for fewer columns, or read"
            " them with a client"
        )

    def take(self, count: int) -> None:
        """Subtract `count` bytes from the budget before they are read.

        Raises UnsupportedOperation if they exceed it.
        """
        if count > self.left:
            self.is_used_up = True
            raise UnsupportedOperation(self.message)
        self.left -= count


class RangeReader(io.RawIOBase):
    """A file opened for range reads. The bytes read count against a budget."""

    def __init__(self, source: RangeSource, budget: ReadBudget) -> None:
        self._source, self._budget, self._at = source, budget, 0

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: the reader can seek."""
        return True

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next read, and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, by default all remaining bytes.

        Raises UnsupportedOperation if the budget is exceeded, and the errors of reading the file.
        """
        left = max(0, self._source.size - self._at)
        count = left if size < 0 else min(size, left)
        self._budget.take(count)
        data = self._source.range(self._at, count) if count else b""
        self._at += len(data)
        return data

    def readall(self) -> bytes:
        """Read all remaining bytes. Raises as `read` does."""
        return self.read()

    def size(self) -> int:
        """Return the length of the file in bytes."""
        return self._source.size

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._source.close()
        super().close()


class RangeSource(Protocol):
    """An open file with random access by byte range. `size` is its length in bytes."""

    size: int

    def range(self, start: int, count: int) -> bytes:
        """Read `count` bytes from the given position."""

    def close(self) -> None:
        """Release the file."""


class _LocalSource:
    def __init__(self, location: str) -> None:
        self._location = location
        self._descriptor, self.size = LocalFiles.open_file(path_of(location))

    def range(self, start: int, count: int) -> bytes:
        try:
            return os.pread(self._descriptor, count, start)
        except OSError as error:
            raise file_errors.storage_error("read", self._location, error) from error

    def close(self) -> None:
        os.close(self._descriptor)


class _RemoteSource:
    def __init__(self, store: RemoteFiles, location: str) -> None:
        size = store.size(location)
        if size is None:
            raise file_errors.missing_error(location)
        self._store, self._location, self.size = store, location, size

    def range(self, start: int, count: int) -> bytes:
        return self._store.read_range(self._location, start=start, count=count)

    def close(self) -> None:
        pass


def open_ranges(
    location: str, properties: Mapping[str, str], *, roots: Sequence[str], allowed: AllowedStorage, budget: ReadBudget
) -> RangeReader:
    """Open a file below the roots for range reads.

    Raises the errors of `store_for`, MissingFile (also for a link that leads out of the roots), ServiceUnavailable if a
    retry may help, else StorageFailed.
    """
    if is_local(location):
        return RangeReader(_LocalSource(resolve_within(location, roots, allowed=allowed)), budget)
    store = store_for(location, properties)
    assert isinstance(store, RemoteFiles)  # noqa: S101 - every location that is not local
    return RangeReader(_RemoteSource(store, location), budget)
