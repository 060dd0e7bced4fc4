# SPDX-License-Identifier: Apache-2.0
"""Failing disks for tests, by replacing system calls of SQLite's VFS, which SQLite allows for tests.

A test decides which reads or writes of SQLite fail, and how: with ENOSPC as on a full disk, or with EIO as on a broken
one. Everything else is real. This needs no file system of its own and no right to mount one.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import errno
from collections.abc import Callable
from typing import Any, Literal

Access = Literal["read", "write"]

_INTS, _CALLS_BEFORE = 3, 13
_WRITE = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, use_errno=True)
_PWRITE = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)
_CALLS: dict[bytes, tuple[Callable[..., Any], Access]] = {
    b"write": (_WRITE, "write"),
    b"pwrite": (_PWRITE, "write"),
    b"pwrite64": (_PWRITE, "write"),
    b"read": (_WRITE, "read"),
    b"pread": (_PWRITE, "read"),
    b"pread64": (_PWRITE, "read"),
}


class _Vfs(ctypes.Structure):
    """SQLite's `sqlite3_vfs`, version 3."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("size", ctypes.c_int),
        ("path_max", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("others", ctypes.c_void_p * _CALLS_BEFORE),
        ("set_call", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)),
        ("get_call", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)),
    )


class Disk:
    """Lets reads and writes of SQLite in this process fail, until `give_back`.

    `fails` gets the access and returns the error number, such as ENOSPC, or 0 for the real disk.
    """

    def __init__(self, fails: Callable[[Access], int]) -> None:
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._fails = fails
        self._vfs = library.sqlite3_vfs_find(None)
        self._kept: dict[bytes, tuple[object, int]] = {}
        self.refused = 0
        """Number of failed calls."""
        for name, (kind, access) in _CALLS.items():
            address = self._vfs.contents.get_call(self._vfs, name)
            if address:
                own = kind(self._instead_of(kind(address), access))
                self._kept[name] = (own, address)
                self._vfs.contents.set_call(self._vfs, name, ctypes.cast(own, ctypes.c_void_p))
        assert self._kept, "SQLite's system calls were not found"

    def _instead_of(self, real: Callable[..., int], access: Access) -> Callable[..., int]:
        def call(*arguments: Any) -> int:  # noqa: ANN401 - as C hands them over
            if number := self._fails(access):
                self.refused += 1
                ctypes.set_errno(number)
                return -1
            return real(*arguments)

        return call

    def give_back(self) -> None:
        """Restore SQLite's own system calls."""
        for name, (_, address) in self._kept.items():
            self._vfs.contents.set_call(self._vfs, name, address)


def full(is_full: Callable[[], bool]) -> Callable[[Access], int]:
    """Return the failures of a disk without free space while `is_full` returns true."""
    return lambda access: errno.ENOSPC if access == "write" and is_full() else 0
