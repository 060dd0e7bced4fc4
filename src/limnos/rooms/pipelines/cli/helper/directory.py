# SPDX-License-Identifier: Apache-2.0
"""The directory of a user's helper processes: their sockets, their locks, and the key that names them.

It belongs to the user with mode 700. Another user's directory, a symbolic link, or one that others may enter is
refused. Its files are reached through the open directory, so that a changed path leads nowhere else.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NAME = "limnos-pipeline-helper"
_KEY_BYTES = 32


class DirectoryRefused(Exception):
    """Raised for a directory that another user could read or change, with the reason."""


@dataclass(frozen=True, slots=True)
class HelperDirectory:
    """The open directory. `close` ends its use."""

    descriptor: int
    path: Path

    def close(self) -> None:
        """Close the directory."""
        os.close(self.descriptor)

    def address(self, key: str) -> str:
        """Return the path of a helper's socket, through the open directory and therefore short."""
        return f"/proc/self/fd/{self.descriptor}/{key}.sock"

    def socket_inode(self, key: str) -> int | None:
        """Return the inode of a helper's socket; None if there is none."""
        try:
            return os.stat(f"{key}.sock", dir_fd=self.descriptor, follow_symlinks=False).st_ino
        except OSError:
            return None

    def remove_socket(self, key: str) -> None:
        """Remove a helper's socket, if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(f"{key}.sock", dir_fd=self.descriptor)

    def lock(self, name: str) -> int | None:
        """Lock a file of this name, until the returned descriptor is closed; None if another process holds the lock."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(f"{name}.lock", flags, 0o600, dir_fd=self.descriptor)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return handle

    def unlock(self, name: str, handle: int) -> None:
        """Remove a lock's file and give the lock up. A process that waits for the old file locks that for nothing: the
        socket's inode says whose it is.
        """
        with suppress(FileNotFoundError):
            os.unlink(f"{name}.lock", dir_fd=self.descriptor)
        os.close(handle)

    def secret(self) -> bytes:
        """Return the key by which names of sockets are made, so that they reveal no credential."""
        for _ in range(2):
            with suppress(FileNotFoundError):
                handle = os.open("key", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.descriptor)
                with os.fdopen(handle, "rb") as file:
                    value = file.read(_KEY_BYTES + 1)
                if len(value) == _KEY_BYTES:
                    return value
                raise DirectoryRefused(f"{self.path / 'key'} is damaged: delete it")
            self._write_secret()
        raise DirectoryRefused(f"{self.path / 'key'} cannot be read")

    def _write_secret(self) -> None:
        """Write a new key, complete or not at all; the key of a faster process stays."""
        side = f"key.{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(side, flags, 0o600, dir_fd=self.descriptor), "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        try:
            with suppress(FileExistsError):
                os.link(side, "key", src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        finally:
            os.unlink(side, dir_fd=self.descriptor)


def open_directory(environ: Mapping[str, str]) -> HelperDirectory:
    """Open the directory of this user's helpers, and create it if it does not exist.

    It lies in XDG_RUNTIME_DIR, else in the directory of temporary files. Raises DirectoryRefused, and OSError.
    """
    base = environ.get("XDG_RUNTIME_DIR", "")
    user = os.geteuid()
    path = Path(base) / _NAME if base.startswith("/") else Path(tempfile.gettempdir()) / f"{_NAME}-{user}"
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except NotADirectoryError:
        raise DirectoryRefused(f"{path} is not a directory of its own") from None
    status = os.fstat(descriptor)
    if status.st_uid != user or stat.S_IMODE(status.st_mode) & 0o077:
        os.close(descriptor)
        owner = "is of another user" if status.st_uid != user else "is open to other users"
        raise DirectoryRefused(f"{path} {owner}")
    return HelperDirectory(descriptor, path)
