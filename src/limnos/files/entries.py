# SPDX-License-Identifier: Apache-2.0
"""Entries of file listings, and the identity of a local file.

Must not know stores.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple

ChooseNames = Callable[[list[str]], Sequence[str]]
"""A function that selects some of the file names of a directory."""


class FileEntry(NamedTuple):
    """A file in a directory: its relative name, its size in bytes, and its modification time (0 if the store reports
    none).
    """

    name: str
    size: int
    modified_ms: int


class FileIdentity(NamedTuple):
    """The identity and version of a local file or directory.

    Programs cannot set `changed_ns` (ctime), so every change of the file changes it.
    """

    device: int
    inode: int
    mode: int
    size: int
    modified_ns: int
    changed_ns: int

    @property
    def is_directory(self) -> bool:
        """Return whether the entry is a directory, not a link to a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """Return whether the entry is a regular file, not a link to a file."""
        return stat.S_ISREG(self.mode)
