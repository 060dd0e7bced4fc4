# SPDX-License-Identifier: Apache-2.0
"""Restricts the modes of the server's own files: 700 for its directory, 600 for the database (decision record 0018).

Must not know table files: those are read by engines and get their mode from the process's umask.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from limnos.telemetry.logs import get_logger

log = get_logger("limnos.store")
DIRECTORY = 0o700
FILE = 0o600
_BESIDE = ("", "-wal", "-shm", "-journal", ".migrate")
"""Suffixes of the files that SQLite and the server create next to a database file."""


def private_directory(path: Path, *, marks: tuple[str, ...]) -> None:
    """Create a directory for this user alone, or restrict an existing one if it belongs to the server.

    It belongs to the server if it is empty or has one of the files `marks`. A directory with other content (a home,
    /tmp) is not changed: the database's files have their own modes.
    """
    path.mkdir(mode=DIRECTORY, parents=True, exist_ok=True)
    if any((path / mark).exists() for mark in marks) or not any(path.iterdir()):
        _restrict_mode(path, DIRECTORY)
    elif _is_open(path):
        log.warning(
            "directory is open to other users of this machine, and contains other files than the server's",
            path=str(path),
        )


def private_database(path: Path) -> None:
    """Restrict a database file to this user; create it empty if it does not exist.

    SQLite creates the `-wal` and `-shm` files with the same mode. An existing file is not opened: closing any
    descriptor of it would release the locks that this process holds on it.
    """
    with suppress(FileExistsError, FileNotFoundError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE))
    for ending in _BESIDE:
        _restrict_mode(path.with_name(path.name + ending), FILE)


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o077)


def _restrict_mode(path: Path, mode: int) -> None:
    """Remove the permissions of other users from a file or directory of the server."""
    try:
        result = path.stat()
        if not result.st_mode & 0o077 or result.st_mode & stat.S_ISVTX:
            return
        path.chmod(mode)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("other users of this machine can access it", path=str(path), error=str(error))
        return
    log.warning("closed to other users of this machine", path=str(path), before=f"{stat.S_IMODE(result.st_mode):o}")
