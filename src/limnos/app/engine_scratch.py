# SPDX-License-Identifier: Apache-2.0
"""Scratch directories of engines. The directories of a killed server are removed by a later one.

Must not know the files of an engine. A directory belongs to the server that holds the lock of its file `owner`. The
operating system releases the lock when the process ends, so the next server of the same user removes the directory.
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
    """The scratch directory of one engine. If it cannot be created, the constructor raises OSError and removes what it
    has created.
    """

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
        """Remove the directory with its content, and release the lock."""
        shutil.rmtree(self._home, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)
        self._lock = -1


def _lock_owner_file(home: Path) -> int:
    """Create the locked file that marks the directory's owner. Returns its file descriptor.

    The file gets its final name only after the lock is acquired.
    """
    path = home / f".{OWNER}"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(lock, f"{os.getpid()}\n".encode())
        path.rename(home / OWNER)
    except OSError:
        os.close(lock)
        raise
    return lock


def remove_stale() -> int:
    """Remove scratch directories of this user whose server has ended. Returns their count.

    Directories without the file `owner` stay, because their owner is unknown.
    """
    removed = 0
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _is_ours(entry) and _is_abandoned(Path(entry.path)):
                shutil.rmtree(entry.path, ignore_errors=True)
                removed += 1
    return removed


def _is_ours(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    except OSError:
        return False


def _is_abandoned(home: Path) -> bool:
    """Return whether the process that created a directory has ended."""
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
