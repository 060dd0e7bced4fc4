# SPDX-License-Identifier: Apache-2.0
"""Keys of files, for comparing the different forms of a file's name in listings and in metadata.

A local file's key is the identity of its directory and its name, so that symbolic links and mounts of a directory make
no difference. An object's key is its key in the register of storage locations, case-folded. Two files whose names
differ only in case have the same key, so compare keys only where a false match is harmless.
"""

from __future__ import annotations

import os
import unicodedata
from typing import Final

from limnos.files.local import path_of
from limnos.files.locations import is_local, normalise, place_key

FileKey = tuple[object, ...]
_MISSING: Final = "missing"


class FileKeys:
    """Computes keys of files.

    Caches the identities of directories, so use an instance for one comparison only. Methods block.
    """

    def __init__(self) -> None:
        self._directories: dict[str, tuple[object, ...]] = {}

    def of(self, location: str) -> FileKey:
        """Return the key of a file, which need not exist. Raises BadRequest for a malformed location."""
        if not is_local(location):
            return (_fold_case(place_key(location)),)
        directory, _, name = normalise(location).removeprefix("file://").rpartition("/")
        return (*self._identity(directory or "/"), _fold_case(name))

    def target_of(self, location: str) -> FileKey | None:
        """Return the key of the target of a local symbolic link; None if the location is not one."""
        if not is_local(location):
            return None
        path = path_of(location)
        return self.of(f"file://{os.path.realpath(path)}") if os.path.islink(path) else None  # noqa: PTH114

    def _identity(self, directory: str) -> tuple[object, ...]:
        identity = self._directories.get(directory)
        if identity is None:
            try:
                status = os.stat(directory)  # noqa: PTH116 - names may be any bytes
                identity = (status.st_dev, status.st_ino)
            except OSError:
                identity = (_MISSING, _fold_case(directory))
            self._directories[directory] = identity
        return identity


def _fold_case(text: str) -> str:
    return text.casefold() if text.isascii() else unicodedata.normalize("NFC", text).casefold()
