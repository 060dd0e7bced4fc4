"""Scratch directories of engines: made for one engine, and removed when the server that made them has ended in whatever way.

May import the standard library. Must not know what an engine writes. A directory belongs to the server that holds the lock of its file `owner`; the operating system
gives the lock back when that process ends, so the next server of the same user removes what a killed one left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "limnos-engine-"
OWNER: Final = "owner"
WORK: Final = "work"


class ScratchDirectory:
    """One engine's scratch directory. Raises OSError when it cannot be made, and leaves nothing then."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            self._lock = _lock_owner_file(self._home)
            self.path = str(self._home / WORK)
            os.mkdir(self.path, 0o700)  # noqa: PTH102 - the mode is given at once
        except OSError:
            shutil.rmtree(self._home, ignore_errors=True)
            raise

    def remove(self) -> None:
        """Remove it with all that lies in it."""
        shutil.rmtree(self._home, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)
        self._lock = -1


def _lock_owner_file(home: Path) -> int:
    """Make the file that says whose a directory is; it gets its name once the lock is held. Returns its descriptor."""
    made = home / f".{OWNER}"
    lock = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(lock, f"{os.getpid()}\n".encode())
        made.rename(home / OWNER)
    except OSError:
        os.close(lock)
        raise
    return lock


def remove_stale() -> int:
    """Remove scratch directories of this user whose server has ended; returns how many.

    Directories without the file `owner` stay: nobody can tell whose they are.
    """
    removed = 0
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _is_ours(entry) and _is_left(Path(entry.path)):
                shutil.rmtree(entry.path, ignore_errors=True)
                removed += 1
    return removed


def _is_ours(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    except OSError:
        return False


def _is_left(home: Path) -> bool:
    """Whether the process that made a directory has ended."""
    try:
        lock = os.open(home / OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
