# SPDX-License-Identifier: Apache-2.0
"""The files that a confined process may use. The private file tree and Landlock both enforce them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SYSTEM: Final = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc",
    "/opt",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
)
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRules:
    """Files and directories of a confined process. Missing ones are left out.

    Attributes:
        readable: May be read and executed.
        writable: All rights, also within `closed` directories. Closed directories within it stay inaccessible.
        closed: Directories that stay inaccessible even within a `readable` or `writable` directory.
        opened: May be read and executed even within `closed` directories.
        temporary: Directories that only the process's private file tree has: all rights, whatever is closed.
    """

    readable: tuple[str, ...]
    writable: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    temporary: tuple[str, ...] = ()

    def readable_parts(self) -> Iterator[Path]:
        """Yield the readable directories and files without the closed directories, with all links resolved."""
        shut = [Path(path).resolve() for path in self.closed]
        for path in dict.fromkeys(self.readable):
            yield from open_parts(Path(path), shut)
        for path in dict.fromkeys(self.opened):
            yield Path(path)

    def writable_parts(self) -> Iterator[Path]:
        """Yield the writable directories and files without closed directories inside of them."""
        shut = [Path(path).resolve() for path in self.closed]
        for path in dict.fromkeys(self.writable):
            resolved = Path(path).resolve()
            yield from open_parts(resolved, [each for each in shut if resolved in each.parents])
        yield from map(Path, self.temporary)


def open_parts(path: Path, closed: list[Path]) -> Iterator[Path]:
    """Yield the largest directories and files below a path that contain no closed directory: the path itself if
    possible.
    """
    try:
        path = path.resolve(strict=True)
    except OSError:
        return
    if any(shut == path or shut in path.parents for shut in closed):
        return
    if not any(path in shut.parents for shut in closed):
        yield path
        return
    for child in sorted(path.iterdir()):
        if not child.is_symlink():
            yield from open_parts(child, closed)
