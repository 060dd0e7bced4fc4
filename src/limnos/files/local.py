# SPDX-License-Identifier: Apache-2.0
"""Files on a local disk, by system calls.

Must not know other stores.

Files are not synced to disk. A metadata document is served from the store's own database, and writers of data files do
not sync either.
"""
# `exists` is called on every load of a table, and pathlib costs more than the system call.
# ruff: noqa: PTH108, PTH116

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from limnos.files import file_errors
from limnos.files.entries import ChooseNames, FileEntry, FileIdentity
from limnos.files.locations import parse
from limnos.model.errors import AlreadyExists

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_OPEN: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe must not block the reader forever
_PATH_ONLY: Final = os.O_PATH | os.O_CLOEXEC if hasattr(os, "O_PATH") else None
_DELETED: Final = " (deleted)"
"""The text that Linux appends to the path of a deleted file."""
_READ_SIZE: Final = 1 << 20
_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_PATHS_MAX: Final = 8192


class LocalFiles:
    """The FileStore of `file:` locations and absolute paths."""

    __slots__ = ()

    def write_new(self, location: str, data: bytes, *, first: bool = False) -> None:
        path = _new_path(location)
        try:
            if first:
                _make_with_parent(_parent_of(path))
            descriptor = _create(path)
            try:
                _write_all(descriptor, data)
            except BaseException:
                os.unlink(path)  # safe: O_EXCL ensures that this call created the file
                raise
            finally:
                os.close(descriptor)
        except FileExistsError as error:
            raise file_errors.taken_error(location) from error
        except OSError as error:
            if first:
                _remove_with_parent(_parent_of(path))
            raise file_errors.storage_error("write", location, error) from error

    def make_directory(self, location: str) -> None:
        """Create a directory with its missing parents. No-op if the directory exists.

        Raises BadRequest for a malformed or too long location, else StorageFailed, NoSpace or ServiceUnavailable.
        """
        try:
            _make(_path(location))
        except OSError as error:
            raise file_errors.storage_error("make directory", location, error) from error

    def read(self, location: str, *, bytes_max: int | None = None) -> bytes:
        try:
            descriptor = os.open(_path(location), _OPEN)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise file_errors.missing_error(location, "it is not a file")
                if bytes_max is not None and status.st_size > bytes_max:
                    raise file_errors.too_large_error(location, bytes_max)
                return _read_all(descriptor, status.st_size)
            finally:
                os.close(descriptor)
        except OSError as error:
            if file_errors.is_missing(error):
                raise file_errors.missing_error(location) from error
            raise file_errors.storage_error("read", location, error) from error

    @staticmethod
    def open_file(path: str) -> tuple[int, int]:
        """Open a file for reading.

        Returns its descriptor and its length in bytes. Raises MissingFile if it does not exist or is not a regular
        file, ServiceUnavailable if a retry may help, else StorageFailed.
        """
        try:
            descriptor = os.open(path, _OPEN)
        except OSError as error:
            if file_errors.is_missing(error):
                raise file_errors.missing_error(path) from error
            raise file_errors.storage_error("read", path, error) from error
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise file_errors.missing_error(path, "it is not a file")
        return descriptor, status.st_size

    def exists(self, location: str) -> bool:
        return self.size(location) is not None

    def size(self, location: str) -> int | None:
        try:
            status = os.stat(_path(location))
        except OSError as error:
            if file_errors.is_missing(error):
                return None
            raise file_errors.storage_error("check", location, error) from error
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def identity_of(self, location: str) -> FileIdentity | None:
        """Return the identity of a file or directory, without following links; None if it cannot be read."""
        try:
            result = os.lstat(_path(location))
        except OSError:
            return None
        return FileIdentity(
            device=result.st_dev,
            inode=result.st_ino,
            mode=result.st_mode,
            size=result.st_size,
            modified_ns=result.st_mtime_ns,
            changed_ns=result.st_ctime_ns,
        )

    def below(self, location: str) -> Iterator[str]:
        path = _path(location)
        for directory, _, names in os.walk(path):
            for name in names:
                yield f"file://{directory}/{name}"

    def holds(self, location: str) -> bool:
        return _has_file(_path(location))

    def is_empty(self, location: str) -> bool:
        path = _path(location)
        try:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                return False
            return not any(names or any(map(os.path.islink, inner)) for names, inner in _walk_files(path))
        except OSError as error:
            if file_errors.is_missing(error):
                return True
            raise file_errors.storage_error("check", location, error) from error

    def entries(self, location: str, *, deep: bool = False) -> list[FileEntry]:
        top = _path(location)
        results = _stat_or_none(location, top)
        if deep:
            for directory, inner, _ in os.walk(top):
                for name in inner:
                    path = f"{directory}/{name}"
                    if not os.path.islink(path):  # noqa: PTH114 - names may be any bytes
                        results += [
                            (f"{path[len(top) + 1 :]}/{each}", status) for each, status in _stat_or_none(location, path)
                        ]
        return [
            FileEntry(name, status.st_size, status.st_mtime_ns // 1_000_000)
            for name, status in results
            if stat.S_ISREG(status.st_mode)
        ]

    def list_selected(self, location: str, choose: ChooseNames) -> list[FileEntry]:
        path = _path(location)
        try:
            with os.scandir(path) as iterator:
                names = [each.name for each in iterator if each.is_file(follow_symlinks=False)]
        except OSError as error:
            if file_errors.is_missing(error):
                return []
            raise file_errors.storage_error("list", location, error) from error
        entries = []
        for name in choose(names):
            with suppress(FileNotFoundError):  # deleted since the directory was read
                status = os.lstat(f"{path}/{name}")
                entries.append(FileEntry(name, status.st_size, status.st_mtime_ns // 1_000_000))
        return entries

    def directories(self, location: str) -> list[str]:
        try:
            with os.scandir(_path(location)) as iterator:
                return [each.name for each in iterator if each.is_dir(follow_symlinks=False)]
        except OSError as error:
            if file_errors.is_missing(error):
                return []
            raise file_errors.storage_error("list", location, error) from error

    def link_new(self, source: str, target: str) -> None:
        for _ in range(file_errors.TRIES_MAX):
            try:
                if self._create_link(source, target):
                    return
            except FileNotFoundError:  # the target or the source was deleted concurrently
                continue
            break
        raise file_errors.taken_error(target)

    def _create_link(self, source: str, target: str) -> bool:
        """Create a hard link `target` to the file `source`. Returns False if the target exists with other bytes.

        Copies the file if the file system has no hard links. Raises MissingFile if the source is missing or not a
        regular file, FileNotFoundError if one of the two files is deleted while they are compared, and the errors of
        `storage_error`.
        """
        here, path = _path(source), _path(target)
        try:
            if not stat.S_ISREG(os.lstat(here).st_mode):
                raise file_errors.missing_error(source, "it is not a file")
            os.link(here, path, follow_symlinks=False)
        except FileExistsError:
            return Path(here).samefile(path) or Path(here).read_bytes() == Path(path).read_bytes()
        except OSError as error:
            if file_errors.is_missing(error):
                raise file_errors.missing_error(source) from error
            if error.errno not in _NO_LINKS:
                raise file_errors.storage_error("link", target, error) from error
            self._copy_new(source, target)
        return True

    def _copy_new(self, source: str, target: str) -> None:
        """Copy a file to a new name.

        Raises MissingFile if the source is missing, AlreadyExists if the target exists with different content.
        """
        data = self.read(source)
        try:
            self.write_new(target, data)
        except AlreadyExists:
            if self.read(target) != data:
                raise

    def move(self, source: str, target: str) -> None:
        try:
            _make(_parent_of(_path(target)))
            os.rename(_path(source), _path(target))  # noqa: PTH104 - as above
        except FileNotFoundError:
            return
        except OSError as error:
            raise file_errors.storage_error("move", source, error) from error

    def undo_create(self, location: str) -> None:
        """Undo the creation of a table: delete its first metadata file, then the two parent directories if they are
        empty.
        """
        self.delete(location)
        _remove_with_parent(_parent_of(_path(location)))

    def delete(self, location: str) -> None:
        try:
            os.unlink(_path(location))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise file_errors.storage_error("delete", location, error) from error


def _has_file(directory: str) -> bool:
    """Return whether a directory contains a file or a link to a non-directory, at any depth. Stops at the first one."""
    inner: list[str] = []
    try:
        with os.scandir(directory) as iterator:
            for each in iterator:
                if not each.is_dir():
                    return True
                if not each.is_symlink():
                    inner.append(each.path)
    except OSError:
        return False  # unreadable: the caller gets the error when it opens a file there
    return any(_has_file(each) for each in inner)


def _walk_files(top: str) -> Iterator[tuple[list[str], list[str]]]:
    """For `top` and each directory below it, yield its file names and the paths of its subdirectories.

    Raises OSError if a directory is unreadable.
    """

    def refuse(error: OSError) -> None:
        raise error

    for directory, inner, names in os.walk(top, onerror=refuse):
        yield names, [f"{directory}/{each}" for each in inner]


def _stat_or_none(location: str, path: str) -> list[tuple[str, os.stat_result]]:
    try:
        with os.scandir(path) as iterator:
            return [(each.name, each.stat(follow_symlinks=False)) for each in iterator]
    except OSError as error:
        if file_errors.is_missing(error):
            return []
        raise file_errors.storage_error("list", location, error) from error


def path_of(location: str) -> str:
    """Return the file system path of a local location: `/x` for `file:///x`."""
    return _path(location)


def real_path(location: str) -> str:
    """Return a local location with all symbolic links resolved, as a location. Its last parts need not exist."""
    path = _path(location)
    return f"file://{_kernel_path(path) or os.path.realpath(path)}"


def _kernel_path(path: str) -> str | None:
    """Return the path of an existing file without links, as the kernel states it for a descriptor: three calls, where
    `os.path.realpath` needs one for each level. None if it does not exist, or if the kernel does not state a path.
    """
    if _PATH_ONLY is None:
        return None
    try:
        descriptor = os.open(path, _PATH_ONLY)  # opens neither devices nor pipes
    except (OSError, ValueError):
        return None
    try:
        result = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - names may be any bytes
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return result if result.startswith("/") and not result.endswith(_DELETED) else None


def sweep_empty(location: str, beat: Callable[[], None]) -> int:
    """Delete the empty directories at and below a local location, bottom up. Links are not followed.

    Args:
        location: The directory.
        beat: Called after each directory, so that the caller can renew its lease.

    Returns:
        The number of deleted directories.
    """
    removed = 0
    for directory, _, _ in os.walk(_path(location), topdown=False):
        with suppress(OSError):  # not empty, or a file was just added
            os.rmdir(directory)  # noqa: PTH106 - names may be any bytes
            removed += 1
        beat()
    return removed


_PLAIN_NAMES: Final = re.compile(r"(?:/[A-Za-z0-9][A-Za-z0-9._-]*){3}")
"""The last three components of a metadata file's path (table, `metadata`, file) if they are in normal form."""


@lru_cache(maxsize=_PATHS_MAX)
def _path(location: str) -> str:
    return "/" + "/".join(parse(location).segments)


def _new_path(location: str) -> str:
    """Return the file system path of a new file.

    Caches only the path of the directory that contains the table's directory, because the rest of the path is unique.
    """
    above = location.rsplit("/", 3)[0]
    names = location[len(above) :]
    if not above or above[-1] in "/:" or _PLAIN_NAMES.fullmatch(names) is None:
        return _path(location)
    return _path(above) + names


def _parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _create(path: str) -> int:
    try:
        return os.open(path, _CREATE, 0o666)
    except FileNotFoundError:
        _make(_parent_of(path))
        return os.open(path, _CREATE, 0o666)


def _make(directory: str) -> None:
    """Create a directory and its missing parents, with as few system calls as possible."""
    missing: list[str] = []
    while not _make_one(directory):
        missing.append(directory)
        directory = _parent_of(directory)
    for each in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(each)  # noqa: PTH102 - a third of the time of pathlib


def _make_one(directory: str) -> bool:
    """Create a directory. Returns True if it exists now, False if its parent is missing."""
    try:
        os.mkdir(directory)  # noqa: PTH102 - as above
    except FileExistsError:
        return True
    except FileNotFoundError:
        return False
    return True


def _make_with_parent(directory: str) -> None:
    """Create a directory whose parent probably does not exist either: the parent first."""
    _make(_parent_of(directory))
    _make(directory)


def _remove_with_parent(directory: str) -> None:
    """Remove a directory and its parent if they are empty: a new table's metadata directory and its own."""
    with suppress(OSError):
        os.rmdir(directory)  # noqa: PTH106 - as above
        os.rmdir(_parent_of(directory))  # noqa: PTH106 - as above


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _read_all(descriptor: int, size: int) -> bytes:
    """Read a file to its end. One system call suffices unless the file is huge or still grows."""
    pieces = [os.read(descriptor, size + 1)]
    while pieces[-1]:
        pieces.append(os.read(descriptor, _READ_SIZE))
    return b"".join(pieces)
