# SPDX-License-Identifier: Apache-2.0
"""Files of one object on an executor: sizes and contents, with the credentials that the server has vended.

Must not know formats. Only files below the object's own locations are opened or looked at, because the writer of a
manifest must not learn about files elsewhere. Local files and S3; other stores raise UnsupportedOperation.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from pyarrow import fs

from limnos.model.errors import InvalidTable, MissingFile, OutsideRoots, TooLarge, UnsupportedOperation
from limnos.names.hidden_segments import has_dot_segments

MISSING, DIRECTORY, OUTSIDE, UNREADABLE = "missing", "a directory", "outside", "unreadable"
_ALIASES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
_LOCAL: Final = re.compile(r"file:(?=/(?!/))|file://(?=/)")
_S3: Final = "s3"
BYTES_MAX: Final = 16 << 30
"""The maximum number of bytes that are read of the metadata of one object. A sparse file costs its writer nothing."""
_TIMEOUT_S: Final = 20


class FileState(NamedTuple):
    """The length of a file in bytes, or the problem with it."""

    size: int | None
    problem: str = ""


class ObjectFiles(Protocol):
    """Files of one store, by locations that were compared with the object's roots."""

    def states(self, locations: Sequence[str]) -> list[FileState]:
        """Return the state of each file."""
        ...

    def open(self, location: str) -> Any:  # noqa: ANN401 - pyarrow's files have no types
        """Open a file for reading at any position. Raises OSError."""
        ...


def location_key(location: str) -> str:
    """Return a form of a location that is the same for the spellings of different clients, such as `s3a://` and
    `s3://`.
    """
    if location.startswith(("/", "file:")):
        return "file://" + _local_path(location)
    scheme, separator, rest = location.partition("://")
    return f"{_ALIASES.get(scheme, scheme)}{separator}{rest.rstrip('/')}"


def files_for(roots: Iterable[str], properties: Mapping[str, str]) -> TableStorage:
    """Return the reader of an object's files below its locations, with the properties that the server has vended.

    Raises UnsupportedOperation for a store that executors do not read, and without credentials for S3.
    """
    distinct_roots = tuple(dict.fromkeys(roots))
    scheme = location_key(distinct_roots[0]).partition("://")[0]
    if scheme == "file":
        return TableStorage(distinct_roots, _LocalFiles(distinct_roots))
    if scheme != _S3 or "s3.access-key-id" not in properties:
        raise UnsupportedOperation(f"executors got no credentials for files in {scheme}")
    return TableStorage(distinct_roots, _S3Files(properties))


class TableStorage:
    """Reads the files of one object, and nothing outside its locations."""

    def __init__(self, roots: Sequence[str], files: ObjectFiles) -> None:
        self._prefixes = tuple([f"{location_key(each)}/" for each in roots])
        self._files = files
        self._bytes_read = 0

    def covers(self, location: str) -> bool:
        """Return whether a file lies below one of the object's locations, in every reading of its name."""
        return location_key(location).startswith(self._prefixes) and not has_dot_segments(location)

    def states(self, locations: Sequence[str]) -> list[FileState]:
        """Return the state of each file, `OUTSIDE` for one that is not looked at."""
        covered_locations = [each for each in locations if self.covers(each)]
        states_by_file = (
            dict(zip(covered_locations, self._files.states(covered_locations), strict=True))
            if covered_locations
            else {}
        )
        return [states_by_file.get(each, FileState(None, OUTSIDE)) for each in locations]

    def read(self, location: str, *, bytes_max: int) -> bytes:
        """Read a whole file. Raises OutsideRoots, MissingFile, InvalidTable for a directory, TooLarge for a large file,
        and for each one after files of more than `BYTES_MAX`.
        """
        (state,) = self.states([location])
        if state.problem == OUTSIDE:
            raise OutsideRoots("it is outside of the locations of the table")
        if state.problem == MISSING:
            raise MissingFile("it does not exist")
        if state.problem:
            raise InvalidTable(f"it is {state.problem}")
        if self._bytes_read > BYTES_MAX:
            raise TooLarge(f"the files before it have more than {BYTES_MAX:,} bytes, the most that is read")
        try:
            with self._files.open(location) as file:
                data: bytes = file.read(bytes_max + 1)
        except FileNotFoundError:
            raise MissingFile("it does not exist") from None
        if len(data) > bytes_max:
            raise TooLarge(f"it has more than {bytes_max:,} bytes, the most that is read")
        self._bytes_read += len(data)
        return data

    def open(self, location: str) -> Any:  # noqa: ANN401 - pyarrow's files have no types
        """Open a file below the object's locations. Raises OutsideRoots, OSError."""
        if self.states([location])[0].problem:
            raise OutsideRoots("it cannot be opened")
        return self._files.open(location)


class _LocalFiles:
    """Local files. A link that leads out of the object's locations counts as outside."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple([os.path.realpath(_local_path(each)) + os.sep for each in roots])
        self._directories: dict[str, bool] = {}

    def states(self, locations: Sequence[str]) -> list[FileState]:
        return [self._state(_local_path(each)) for each in locations]

    def _state(self, path: str) -> FileState:
        directory = posixpath.dirname(path)
        inside = self._directories.get(directory)
        if inside is None:
            inside = self._directories[directory] = (os.path.realpath(directory) + os.sep).startswith(self._roots)
        try:
            facts = os.lstat(path)
            if stat.S_ISLNK(facts.st_mode):
                inside = inside and os.path.realpath(path).startswith(self._roots)
                facts = Path(path).stat() if inside else facts
        except (FileNotFoundError, NotADirectoryError):
            return FileState(None, MISSING if inside else OUTSIDE)
        except OSError as error:
            return FileState(None, f"{UNREADABLE}: {error.strerror}")
        if not inside:
            return FileState(None, OUTSIDE)
        if stat.S_ISREG(facts.st_mode):
            return FileState(facts.st_size)
        return FileState(None, DIRECTORY if stat.S_ISDIR(facts.st_mode) else f"{UNREADABLE}: it is a special file")

    def open(self, location: str) -> Any:  # noqa: ANN401 - pyarrow's files have no types
        return Path(_local_path(location)).open("rb")


class _S3Files:
    """Objects of S3, by Arrow's client, which requests many sizes at the same time."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        endpoint = properties.get("s3.endpoint", "")
        scheme, separator, host = endpoint.partition("://")
        is_path_style = properties.get("s3.path-style-access", "true").lower() != "false"
        self._store = fs.S3FileSystem(
            access_key=properties["s3.access-key-id"],
            secret_key=properties.get("s3.secret-access-key"),
            session_token=properties.get("s3.session-token"),
            region=properties.get("s3.region") or properties.get("client.region"),
            endpoint_override=host if separator else endpoint or None,
            scheme=scheme if separator else "https",
            force_virtual_addressing=not is_path_style,
            connect_timeout=_TIMEOUT_S,
            request_timeout=_TIMEOUT_S,
        )

    def states(self, locations: Sequence[str]) -> list[FileState]:
        return [self._state(each) for each in self._store.get_file_info([_key_of(each) for each in locations])]

    @staticmethod
    def _state(facts: Any) -> FileState:  # noqa: ANN401 - pyarrow has no types
        if facts.type == fs.FileType.File:
            return FileState(facts.size)
        return FileState(None, DIRECTORY if facts.type == fs.FileType.Directory else MISSING)

    def open(self, location: str) -> Any:  # noqa: ANN401 - pyarrow's files have no types
        return self._store.open_input_file(_key_of(location))


def _key_of(location: str) -> str:
    return location.partition("://")[2]


def _local_path(location: str) -> str:
    return "/" + posixpath.normpath(_LOCAL.sub("", location, count=1)).lstrip("/")
