# SPDX-License-Identifier: Apache-2.0
"""Selects the store for a location: local paths by the operating system, object stores through fsspec.

Must not know the content of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, Protocol

from limnos.files.entries import ChooseNames, FileEntry
from limnos.files.local import LocalFiles
from limnos.files.locations import LOCAL, ParsedLocation, parse
from limnos.files.remote import RemoteFiles, StoreOptions, options_from

_STORES_MAX: Final = 128
LOCAL_FILES: Final = LocalFiles()


class FileStore(Protocol):
    """Reads and writes whole files of one store.

    Methods block, and are thread-safe. Locations need not be in normal form. In addition to the errors of each method,
    all raise BadRequest (malformed location), ServiceUnavailable (temporary) and StorageFailed (the store refused);
    writes also raise NoSpace (full disk). A failed write leaves nothing under its name. Exception: if an object store's
    response was lost, an unreferenced file may remain.
    """

    def write_new(self, location: str, data: bytes, *, first: bool = False) -> None:
        """Write a file under a new name and create its parent directories. Never leaves a partial file.

        An object store accepts a second write of the same bytes, because its client may retry a request.

        Args:
            location: The new file.
            data: Its bytes.
            first: Whether its directory and the one above probably do not exist yet, which saves system calls.

        Raises:
            AlreadyExists: The name is taken.
        """

    def read(self, location: str, *, bytes_max: int | None = None) -> bytes:
        """Read a whole file. Raises MissingFile if it does not exist, TooLarge if it is longer than `bytes_max`."""

    def exists(self, location: str) -> bool:
        """Return whether a file exists at a location. A directory does not count."""

    def size(self, location: str) -> int | None:
        """Return the length of a file in bytes; None if it is missing or a directory."""

    def below(self, location: str) -> Iterator[str]:
        """Yield the files below a location at any depth, as locations. Links are not followed."""

    def holds(self, location: str) -> bool:
        """Return whether any file, or link to a file, lies below a location.

        Stops at the first file, if the store's listing allows that.
        """

    def is_empty(self, location: str) -> bool:
        """Return whether no file or link is at a location or below it.

        Stops at the first file, if the store's listing allows that.
        """

    def delete(self, location: str) -> None:
        """Delete a file. No-op if it is missing. Never deletes a directory."""

    def entries(self, location: str, *, deep: bool = False) -> list[FileEntry]:
        """List the files in a directory; empty if it is missing. Symbolic links are omitted and not followed.

        With `deep`, files at any depth are listed, under their paths relative to the directory.
        """

    def list_selected(self, location: str, choose: ChooseNames) -> list[FileEntry]:
        """List the files in a directory that `choose` selects by name.

        On a local disk, size and time are read for these files only. Symbolic links are omitted and not followed.
        """

    def directories(self, location: str) -> list[str]:
        """List the names of the directories in a location; empty if it is missing. Symbolic links are omitted."""

    def link_new(self, source: str, target: str) -> None:
        """Link or copy a file to a new name, atomically. No-op if the target already has the same bytes.

        Raises MissingFile if the source is missing, AlreadyExists if the target exists with other bytes.
        """

    def move(self, source: str, target: str) -> None:
        """Rename a file to a new name, which must not exist. No-op if the source is missing.

        In an object store the file is copied, then the source is deleted unless it was changed concurrently.
        """


def store_for(location: str, properties: Mapping[str, str]) -> FileStore:
    """Return the store for a location, with the credentials that a catalog's properties name.

    Locations with the same scheme, bucket (or account) and options share one store. Raises BadRequest (malformed
    location, unknown scheme, incomplete credentials), StorageFailed (incomplete options), UnsupportedOperation (a
    package is not installed; the message names it).
    """
    parsed_location = parse(location)
    if parsed_location.scheme == LOCAL:
        return LOCAL_FILES
    return _remote(
        parsed_location.scheme,
        str(ParsedLocation(parsed_location.scheme, parsed_location.authority, ())),
        options_from(parsed_location.scheme, properties),
    )


@lru_cache(maxsize=_STORES_MAX)
def _remote(scheme: str, root: str, options: StoreOptions) -> RemoteFiles:
    return RemoteFiles(scheme, root=root, options=options)
