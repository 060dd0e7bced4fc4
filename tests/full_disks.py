"""Full disks for tests, by replacing system calls of SQLite's VFS, which SQLite allows for tests.

While `is_full` is set, every write of SQLite fails with ENOSPC, as on a full disk; everything else is real. This needs
no file system of its own and no right to mount one.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import errno
from collections.abc import Callable
from typing import Any

_INTS, _CALLS_BEFORE = 3, 13
_WRITE = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, use_errno=True)
_PWRITE = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)
_CALLS = {b"write": _WRITE, b"pwrite": _PWRITE, b"pwrite64": _PWRITE}


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
    """Simulates full disks for SQLite in this process while `is_full` is set; `give_back` ends it."""

    def __init__(self, is_full: Callable[[], bool]) -> None:
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._is_full = is_full
        self._vfs = library.sqlite3_vfs_find(None)
        self._kept: dict[bytes, tuple[object, int]] = {}
        self.refused = 0
        """Number of refused writes."""
        for name, kind in _CALLS.items():
            address = self._vfs.contents.get_call(self._vfs, name)
            if address:
                own = kind(self._instead_of(kind(address)))
                self._kept[name] = (own, address)
                self._vfs.contents.set_call(self._vfs, name, ctypes.cast(own, ctypes.c_void_p))
        assert self._kept, "SQLite's writes were not found"

    def _instead_of(self, real: Callable[..., int]) -> Callable[..., int]:
        def write(*arguments: Any) -> int:  # noqa: ANN401 - as C hands them over
            if self._is_full():
                self.refused += 1
                ctypes.set_errno(errno.ENOSPC)
                return -1
            return real(*arguments)

        return write

    def give_back(self) -> None:
        """Restore SQLite's own system calls."""
        for name, (_, address) in self._kept.items():
            self._vfs.contents.set_call(self._vfs, name, address)
