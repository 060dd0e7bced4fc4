# SPDX-License-Identifier: Apache-2.0
"""A file of keys that only its owner may read: one key in base64 on each line, the newest last.

Must not know what the keys are used for. The file is replaced atomically, so a reader sees the old or the new content.
"""

from __future__ import annotations

import base64
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from limnos.model.errors import CannotStart
from limnos.model.sealed_secrets import parse_key

_HEAD: Final = (
    "# Keys that seal secrets of catalogs, one per line; the last one seals, all open. Keep a copy apart from backups"
    " of the database:\n# without its key a sealed secret is lost.\n"
)


def keys_read(path: Path) -> tuple[bytes, ...]:
    """Read the keys of a file, oldest first; empty if the file does not exist.

    Raises CannotStart if other users may read the file, or if its content is malformed.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode) or mode & 0o077:
                raise _key_file_error(
                    path,
                    f"it is open to other users of this machine (mode {stat.S_IMODE(mode):o}), or not a file",
                    advice=f"chmod 600 {path}",
                )
            lines = file.read(1 << 20).decode("ascii", "replace").splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise _key_file_error(path, str(error.strerror), advice="let the server's user read it") from error
    try:
        return tuple(parse_key(line) for line in lines if line.strip() and not line.startswith("#"))
    except ValueError as error:
        raise _key_file_error(
            path, f"one of its lines is not a key: {error}", advice="write one key per line, or remove the line"
        ) from error


def add_key(path: Path, key: bytes, *, only_first: bool = False) -> None:
    """Append a key to a file; creates the file if it does not exist.

    Args:
        path: The file.
        key: The key.
        only_first: Whether to do nothing if the file has a key already.

    Raises:
        CannotStart: The file cannot be used or written.
    """
    try:
        with _exclusive_lock(path.parent):
            entry = keys_read(path)
            if not (entry and only_first):
                _write_keys(path, [*entry, key])
    except OSError as error:
        raise _key_file_error(
            path, str(error.strerror), advice="let the server's user write into its directory"
        ) from error


def _key_file_error(path: Path, why: str, *, advice: str) -> CannotStart:
    return CannotStart(f"The key file {path} cannot be used", why=why, advice=advice)


@contextmanager
def _exclusive_lock(directory: Path) -> Iterator[None]:
    """Lock a directory exclusively during the `with` block, so that no other process changes its key files.

    Syncs the directory at the end.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_keys(path: Path, keys: Sequence[bytes]) -> None:
    text = _HEAD + "".join(f"{base64.b64encode(each).decode()}\n" for each in keys)
    # mkstemp creates the file with mode 600.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
