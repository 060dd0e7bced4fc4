# SPDX-License-Identifier: Apache-2.0
"""The file in the data directory with the URL of the running server, for commands of the same user on this machine.

The server holds a lock on the file while it runs. So a command sends the admin's token to that server only, and not to
a program of another user that listens on the address of a stopped server. The directory and the file are the server's
user's alone: reading them proves that a command runs as that user.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

ADDRESS_FILE: Final = "server.url"
TOKEN_FILE: Final = "admin.token"  # noqa: S105 - a file name


class NoLocalServer(Exception):
    """No server of this user runs with the data directory. The message says what is wrong with which file.

    `is_absent` if no server runs with the directory, whoever calls.
    """

    def __init__(self, message: str, *, is_absent: bool = False) -> None:
        super().__init__(message)
        self.is_absent = is_absent


def write_address(data: Path, url: str) -> int | None:
    """Write the server's URL, and lock the file until this process ends. Returns the open file; None if another server
    with the same data directory has the lock.
    """
    descriptor = os.open(data / ADDRESS_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{url}\n".encode(), 0)
    return descriptor


def read_local_server(data: Path) -> tuple[str, str]:
    """Return the URL of the server that runs with a data directory, and its admin's token. Raises NoLocalServer."""
    none = NoLocalServer(f"no server runs with the data directory {data}", is_absent=True)
    if not os.path.lexists(data / ADDRESS_FILE):
        raise none
    with closing(_open(data / ADDRESS_FILE)) as file:
        with suppress(BlockingIOError):
            fcntl.flock(file.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            raise none
        url = file.text()
    with closing(_open(data / TOKEN_FILE)) as file:
        return url, file.text()


class _OwnFile:
    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def text(self) -> str:
        return os.pread(self.descriptor, 65_536, 0).decode().strip()

    def close(self) -> None:
        os.close(self.descriptor)


def _open(path: Path) -> _OwnFile:
    """Open a file that belongs to this user. Raises NoLocalServer."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise NoLocalServer(f"{path} cannot be read: {error.strerror}") from None
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() and os.geteuid() != 0:
        os.close(descriptor)
        raise NoLocalServer(f"{path} belongs to another user of this machine")
    if status.st_mode & 0o077:
        os.close(descriptor)
        raise NoLocalServer(f"{path} can be read or written by other users of this machine")
    return _OwnFile(descriptor)
