"""Modes of what the server keeps for itself: its directory 700, the database's files 600. Decision record 0018.

May import `telemetry`. What engines read (table files) is not its business: those have the modes that the process's umask
gives them.
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
"""What SQLite and we put beside a database file."""


def private_directory(path: Path, *, marks: tuple[str, ...]) -> None:
    """Make a directory for this user alone, or make an existing one so, if it is the server's own.

    It is when it holds one of the files by which the server's own is known, or nothing. One that somebody keeps other things
    in (a home, /tmp) stays as it is: the database's files are closed by themselves.
    """
    path.mkdir(mode=DIRECTORY, parents=True, exist_ok=True)
    if any((path / mark).exists() for mark in marks) or not any(path.iterdir()):
        _tighten(path, DIRECTORY)
    elif _is_open(path):
        log.warning(
            "directory is open to other users of this machine, and holds more than the server's", path=str(path)
        )


def private_database(path: Path) -> None:
    """Make a database file for this user alone, empty if it is not there; SQLite gives its companions the same mode.

    An existing file is not opened: to close any descriptor of it would drop the locks that this process has on it.
    """
    with suppress(FileExistsError, FileNotFoundError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE))
    for ending in _BESIDE:
        _tighten(path.with_name(path.name + ending), FILE)


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o077)


def _tighten(path: Path, mode: int) -> None:
    """Take away what other users may do with a file or directory of ours."""
    try:
        found = path.stat()
        if not found.st_mode & 0o077 or found.st_mode & stat.S_ISVTX:
            return
        path.chmod(mode)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("other users of this machine may get at it", path=str(path), error=str(error))
        return
    log.warning("closed to other users of this machine", path=str(path), before=f"{stat.S_IMODE(found.st_mode):o}")
