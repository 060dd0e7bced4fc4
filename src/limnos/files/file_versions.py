# SPDX-License-Identifier: Apache-2.0
"""Versions of files: values that change whenever a file is written again, or replaced by another.

Must not know the content of files. Files of tables are written once, but whoever may write them can also replace them.
Two equal versions, of which the first was taken before a read and the second after it, show that the read found the
same bytes as other reads between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from limnos.files.entries import FileIdentity
from limnos.files.locations import LOCAL, normalise, parse
from limnos.files.remote import RemoteFiles
from limnos.files.stores import LOCAL_FILES, store_for

FileVersion: TypeAlias = tuple[FileIdentity, ...] | tuple[str, ...]
"""The version of a file: identities for a file of this machine, else what the object store says of it."""


def file_versions(
    locations: Iterable[str], properties: Mapping[str, str], *, roots: Sequence[str]
) -> dict[str, FileVersion | None]:
    """Return the version of each file; None for a missing one, and for one that is a symbolic link. Blocks.

    An object store that dates files by the second, and keeps no versions of them, does not show a file that is replaced
    and restored within that second.

    Args:
        locations: The files.
        properties: The properties of their catalog, with the connection to its object store.
        roots: The locations below which the files are. On this machine the version of a file includes the directories
            from the outermost of these that is above it to the one above its own, since a directory on its path may be
            replaced, too. Its own directory changes whenever other files are added.

    Raises:
        BadRequest: A location is malformed.
        StorageFailed: The store refuses or fails.
        ServiceUnavailable: The store does not answer.
    """
    directories: dict[str, FileIdentity | None] = {}
    return {each: _version(each, properties, roots=roots, directories=directories) for each in locations}


def _version(
    location: str, properties: Mapping[str, str], *, roots: Sequence[str], directories: dict[str, FileIdentity | None]
) -> FileVersion | None:
    if parse(location).scheme == LOCAL:
        return _local_version(normalise(location), roots=list(map(normalise, roots)), directories=directories)
    store = store_for(location, properties)
    return store.version(location) if isinstance(store, RemoteFiles) else None


def _local_version(
    location: str, *, roots: Sequence[str], directories: dict[str, FileIdentity | None]
) -> tuple[FileIdentity, ...] | None:
    own = LOCAL_FILES.identity_of(location)
    if own is None or not own.is_file:
        return None
    above = []
    for directory in _directories(location, roots):
        if directory not in directories:
            directories[directory] = LOCAL_FILES.identity_of(directory)
        identity = directories[directory]
        if identity is None or not identity.is_directory:
            return None
        above.append(identity)
    return own, *above


def _directories(location: str, roots: Sequence[str]) -> list[str]:
    """Return the directories from the outermost root of a file to the one above its own; the latter alone for a file
    that is below none of the roots in this spelling.
    """
    results = []
    directory = location.rpartition("/")[0]
    above = [each for each in roots if location.startswith(f"{each}/")]
    root = min(above, key=len, default=directory.rpartition("/")[0])
    while directory.startswith(f"{root}/"):
        directory = directory.rpartition("/")[0]
        results.append(directory)
    return results
