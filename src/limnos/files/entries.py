"""What a store tells of a file in a list, and what tells a local file from what was there before.

May import the standard library alone.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple

ChooseNames = Callable[[list[str]], Sequence[str]]
"""Picks names of files from those that a directory has."""


class FileEntry(NamedTuple):
    """A file in a directory: its name there, its size in bytes, and when it was written, 0 when the store does not say."""

    name: str
    size: int
    modified_ms: int


class FileIdentity(NamedTuple):
    """Which file or directory is at a local place, and when it was last changed: that time nobody can set."""

    device: int
    inode: int
    mode: int
    size: int
    modified_ns: int
    changed_ns: int

    @property
    def is_directory(self) -> bool:
        """Say whether it is a directory, and no link to one."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """Say whether it is a file, and no link to one."""
        return stat.S_ISREG(self.mode)
