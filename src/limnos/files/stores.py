"""Which store serves a location: local paths by the operating system, object stores through fsspec.

May import `model` and this room. Must not know what the files hold.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from limnos.files.entries import ChooseNames, FileEntry
from limnos.files.local import LocalFiles
from limnos.files.locations import LOCAL, ParsedLocation, parse
from limnos.files.remote import RemoteFiles, StoreOptions, options_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_STORES_MAX: Final = 128
LOCAL_FILES: Final = LocalFiles()


class FileStore(Protocol):
    """Whole files of one store. Calls block; safe from any thread. Locations need not be in normal form.

    Beside what each method names, all raise BadRequest (a malformed location), Unavailable (come again) and
    StorageFailed (the store refused). A write that failed so has put nothing under its name, except when its answer was
    lost on the way from an object store: then a file that nothing refers to may be left.
    """

    def write_new(self, location: str, data: bytes, *, first: bool = False) -> None:
        """Write a file under a fresh name, making parents; leaves nothing half written.

        `first`: its directory and the one above are most likely not there yet, which saves looking for them.

        Raises AlreadyExists. An object store lets the very same bytes pass, for it may be asked twice by itself.
        """

    def read(self, location: str, *, bytes_max: int | None = None) -> bytes:
        """Read a whole file. Raises MissingFile, and TooLarge when it is longer than `bytes_max`."""

    def exists(self, location: str) -> bool:
        """Say whether a file is there; a directory is none."""

    def size(self, location: str) -> int | None:
        """Return the length of a file in bytes; None when it is not there, or is a directory."""

    def below(self, location: str) -> Iterator[str]:
        """List the files below a location, as locations; none when nothing is there. Links are not followed."""

    def holds(self, location: str) -> bool:
        """Say whether any file lies below a location; a link to one counts. Stops at the first one, as far as the store can."""

    def is_empty(self, location: str) -> bool:
        """Say whether no file is at a location or below it; a link counts as a file. Looks no further than the first one, as far as the store can."""

    def delete(self, location: str) -> None:
        """Delete a file; that it is already gone is fine. Never deletes a directory."""

    def entries(self, location: str, *, deep: bool = False) -> list[FileEntry]:
        """List the files directly in a location, or also those `deep` below it by their names from there; none when nothing is there.

        Links are no files, and are not followed.
        """

    def chosen(self, location: str, choose: ChooseNames) -> list[FileEntry]:
        """List those files directly in a location that are chosen by their names; a local disk is asked about no other.

        Links are no files, and are not followed.
        """

    def directories(self, location: str) -> list[str]:
        """List the names of the directories in a location; none when nothing is there. Links are no directories."""

    def link_new(self, source: str, target: str) -> None:
        """Put a file's bytes under a further name, whole or not at all; that they are there under it already is fine.

        Raises MissingFile when there is no source, AlreadyExists when the name holds other bytes.
        """

    def move(self, source: str, target: str) -> None:
        """Give a file a fresh name; that there is no source is fine. In an object store the name is there before the source goes, which is left if it has become another file."""


def store_for(location: str, properties: Mapping[str, str]) -> FileStore:
    """Give the store that serves a location, with the credentials that a catalog's properties name.

    The same store for the same scheme, account and credentials. Raises BadRequest (a malformed location, an unknown
    scheme), Unsupported (a package is not installed; says which).
    """
    place = parse(location)
    if place.scheme == LOCAL:
        return LOCAL_FILES
    return _remote(
        place.scheme, str(ParsedLocation(place.scheme, place.authority, ())), options_from(place.scheme, properties)
    )


@lru_cache(maxsize=_STORES_MAX)
def _remote(scheme: str, root: str, options: StoreOptions) -> RemoteFiles:
    return RemoteFiles(scheme, root=root, options=options)
