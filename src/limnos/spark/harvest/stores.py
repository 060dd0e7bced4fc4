# SPDX-License-Identifier: Apache-2.0
"""Directories and files of a store on an executor: local paths, and S3 with the credentials of the environment.

Must not know formats. Links are never followed, so nothing outside of the root is listed or read.
"""

from __future__ import annotations

import os
import stat
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

from limnos.model.errors import InvalidTable, MissingFile, TooLarge, UnsupportedOperation
from limnos.names.hidden_segments import has_dot_segments
from limnos.spark.verification.storage import location_key

ENTRIES_MAX: Final = 1_000_000
"""The maximum number of entries of a directory that are listed."""
LOCAL: Final = "file://"
METASTORE: Final = "thrift://"
"""The scheme of a metastore, which is no store of files."""
_S3: Final = "s3://"
_ALIASES: Final = ("s3a://", "s3n://")
_TIMEOUT_S: Final = 20
_TIME_MAX_MS: Final = 253_402_300_799_000
"""The end of the year 9999."""
_OPEN: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a named pipe must not block the task


class EntryKind(Enum):
    """The kind of a directory's entry. A link is a symbolic one, whatever it leads to."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


class FileFacts(NamedTuple):
    """The size of a file in bytes, and the time of its last change in milliseconds since 1970."""

    size: int
    modified_ms: int


class DirectoryEntry(NamedTuple):
    """An entry of a directory. `facts` are those of a file, if the listing has them."""

    name: str
    kind: EntryKind
    facts: FileFacts | None = None


class HarvestStore(Protocol):
    """Lists directories, and reads files. Methods raise OSError, and what is stated."""

    def entries(self, location: str) -> list[DirectoryEntry]:
        """List a directory. Raises TooLarge for more than `ENTRIES_MAX` entries."""
        ...

    def facts(self, location: str) -> FileFacts:
        """Return the facts of a file. Raises MissingFile, InvalidTable if it is not a regular file."""
        ...

    def read(self, location: str, *, bytes_max: int) -> bytes:
        """Read a file. Raises MissingFile, InvalidTable if it is not a regular file, TooLarge."""
        ...

    def open_input(self, location: str) -> Any:  # noqa: ANN401 - pyarrow's files have no types
        """Open a file for reading at any position. Raises as `read`."""
        ...


def root_location(path: str) -> str:
    """Return the location of a root in one spelling, a local one without links: `file:///a/b`, `s3://bucket/a`.

    Raises UnsupportedOperation for a store that executors do not list.
    """
    if path.startswith("/"):
        return LOCAL + os.path.realpath(path)
    if path.startswith("file:"):
        return LOCAL + os.path.realpath("/" + path.removeprefix("file:").lstrip("/"))
    for alias in _ALIASES:
        if path.startswith(alias):
            path = _S3 + path.removeprefix(alias)
    rest = path.removeprefix(_S3).rstrip("/")
    if path.startswith(_S3) and rest and not has_dot_segments(rest):
        return _S3 + rest
    raise UnsupportedOperation("it must be a directory of this machine or s3://BUCKET/DIRECTORY")


def file_location(path: str) -> str:
    """Return the location of a file that a catalog names in one spelling; links are not resolved.

    Raises UnsupportedOperation for a store that executors do not read.
    """
    location = location_key(path)
    if location.startswith((LOCAL, _S3)) and not has_dot_segments(path):
        return location
    raise UnsupportedOperation(f"it is at {path[:300]}, and executors read local files and s3://, without '..'")


def store_of(location: str) -> HarvestStore:
    """Return the store of a location."""
    return _s3_store() if location.startswith(_S3) else LocalStore()


class LocalStore:
    """Local directories."""

    def entries(self, location: str) -> list[DirectoryEntry]:
        """List a directory; kinds come without a call for each entry."""
        results = []
        with os.scandir(_path(location)) as iterator:
            for each in iterator:
                if each.is_symlink():
                    kind = EntryKind.LINK
                elif each.is_dir(follow_symlinks=False):
                    kind = EntryKind.DIRECTORY
                else:
                    kind = EntryKind.FILE if each.is_file(follow_symlinks=False) else EntryKind.OTHER
                results.append(DirectoryEntry(each.name, kind))
                _check_count(results)
        return results

    def facts(self, location: str) -> FileFacts:
        """Return the size of a file and the time of its last change."""
        try:
            status = os.lstat(_path(location))
        except FileNotFoundError:
            raise MissingFile("it does not exist") from None
        return _facts_of(status)

    def read(self, location: str, *, bytes_max: int) -> bytes:
        """Read a file."""
        with self.open_input(location) as file:
            facts = _facts_of(os.fstat(file.fileno()))
            if facts.size > bytes_max:
                raise too_large(facts.size, bytes_max)
            data: bytes = file.read(bytes_max + 1)
        if len(data) > bytes_max:
            raise too_large(len(data), bytes_max)
        return data

    def open_input(self, location: str) -> Any:  # noqa: ANN401 - as the protocol
        """Open a file whose path has no links."""
        path = _path(location)
        directory = os.path.dirname(path)  # noqa: PTH120 - no object for each file
        if os.path.realpath(directory) != directory:
            raise InvalidTable("its path has a link")
        try:
            descriptor = os.open(path, _OPEN)
        except FileNotFoundError:
            raise MissingFile("it does not exist") from None
        try:
            _facts_of(os.fstat(descriptor))
        except InvalidTable:
            os.close(descriptor)
            raise
        return os.fdopen(descriptor, "rb")


class S3Store:
    """Directories of S3, by Arrow's client."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        self._client = client

    def entries(self, location: str) -> list[DirectoryEntry]:
        """List a directory, with the facts of its files."""
        from pyarrow import fs  # noqa: PLC0415 - not needed for local files

        results = []
        for each in self._client.get_file_info(fs.FileSelector(_key(location), recursive=False)):
            if each.type == fs.FileType.Directory:
                results.append(DirectoryEntry(each.base_name, EntryKind.DIRECTORY))
            else:
                results.append(DirectoryEntry(each.base_name, EntryKind.FILE, _facts_of_info(each)))
            _check_count(results)
        return results

    def facts(self, location: str) -> FileFacts:
        """Return the size of a file and the time of its last change."""
        from pyarrow import fs  # noqa: PLC0415 - as above

        (info,) = self._client.get_file_info([_key(location)])
        if info.type != fs.FileType.File:
            raise MissingFile("it does not exist")
        return _facts_of_info(info)

    def read(self, location: str, *, bytes_max: int) -> bytes:
        """Read a file."""
        with self.open_input(location) as file:
            data: bytes = file.read(bytes_max + 1)
        if len(data) > bytes_max:
            raise too_large(len(data), bytes_max)
        return data

    def open_input(self, location: str) -> Any:  # noqa: ANN401 - as the protocol
        """Open a file."""
        try:
            return self._client.open_input_file(_key(location))
        except FileNotFoundError:
            raise MissingFile("it does not exist") from None


@lru_cache(maxsize=1)
def _s3_store() -> S3Store:
    """Return S3 with the credentials, the region and the endpoint of the environment."""
    from pyarrow import fs  # noqa: PLC0415 - as above

    variable = os.environ.get
    endpoint = variable("AWS_ENDPOINT_URL_S3") or variable("AWS_ENDPOINT_URL") or ""
    scheme, separator, host = endpoint.partition("://")
    client = fs.S3FileSystem(
        region=variable("AWS_REGION") or variable("AWS_DEFAULT_REGION"),
        endpoint_override=host.rstrip("/") if separator else endpoint or None,
        scheme=scheme if separator else "https",
        connect_timeout=_TIMEOUT_S,
        request_timeout=_TIMEOUT_S,
    )
    return S3Store(client)


def too_large(size: int, bytes_max: int) -> TooLarge:
    """Return the error for a file that is longer than what is read."""
    return TooLarge(f"it has {size:,} bytes or more, and at most {bytes_max:,} are read")


def _check_count(entries: list[DirectoryEntry]) -> None:
    if len(entries) > ENTRIES_MAX:
        raise TooLarge(f"it has more than {ENTRIES_MAX:,} entries, the most that are listed")


def _facts_of(status: os.stat_result) -> FileFacts:
    if not stat.S_ISREG(status.st_mode):
        raise InvalidTable("it is a link, which is not followed" if stat.S_ISLNK(status.st_mode) else "it is no file")
    return FileFacts(status.st_size, _milliseconds(status.st_mtime_ns))


def _facts_of_info(info: Any) -> FileFacts:  # noqa: ANN401 - pyarrow has no types
    return FileFacts(info.size or 0, _milliseconds(info.mtime_ns or 0))


def _milliseconds(nanoseconds: int) -> int:
    """Return a time that every reader of timestamps accepts: a file's owner can set any."""
    return min(max(nanoseconds // 1_000_000, 0), _TIME_MAX_MS)


def _path(location: str) -> str:
    return location.removeprefix(LOCAL)


def _key(location: str) -> str:
    return location.removeprefix(_S3)
