"""Confinement of the engine's process: it can open only the directories that it needs.

May import the standard library. Knows Linux. Must not know the engine's work.

Landlock permanently removes rights of this process and its children. It needs no privilege: it works for an ordinary
user and for root, who also loses the capabilities. Files outside the allowed directories cannot be opened, regardless
of their owner. Processes outside cannot be traced, and their memory and environment cannot be read. Newer kernels also
block signals to them. On a kernel without Landlock no rights are removed, and `confine` returns False.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PATH_BENEATH: Final = 1
_VERSION_FLAG: Final = 1
_NO_NEW_PRIVILEGES: Final = 38
_DROP_BOUNDING: Final = 24
_SECURE_BITS: Final = 28
_NO_ROOT_LOCKED: Final = 0b11
_CAPABILITIES_3: Final = 0x20080522

EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
_FIRST = (1 << 13) - 1
_ADDED = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
"""File rights that later versions of Landlock added: refer, truncate, ioctl on devices."""
_SCOPES = 0b11
"""From version 6 on: no connections to abstract sockets and no signals outside the confined processes."""
_FILE_RIGHTS = EXECUTE | WRITE | READ | (1 << 14) | (1 << 15)

SYSTEM: Final = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc",
    "/opt",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
)
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Return the kernel's version of the Landlock interface; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    number = _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(0, number)


def confine(
    *, readable: Iterable[str], writable: Iterable[str], closed: Iterable[str], opened: Iterable[str] = ()
) -> bool:
    """Remove all file rights except the listed ones from this process and its children.

    Must be called before the process has other threads.

    Args:
        readable: Files and directories that may be read and executed.
        writable: Files and directories with all rights, also within `closed` directories.
        closed: Directories that stay inaccessible even within a `readable` directory.
        opened: Files and directories that may be read and executed even within `closed` directories.

    Returns:
        False if the kernel has no Landlock.

    Raises:
        OSError: A system call failed.
    """
    known = version()
    if known == 0:
        return False
    drop_capabilities()
    rights = _FIRST
    for since, right in _ADDED.items():
        rights |= right if known >= since else 0
    rules = _Ruleset(rights, 0, _SCOPES if known >= 6 else 0)
    size = ctypes.sizeof(_Ruleset) if known >= 6 else 8
    ruleset = _check_result(_call(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0)))
    shut = [Path(path).resolve() for path in closed]
    look = EXECUTE | READ | LIST
    for path in dict.fromkeys(readable):
        for part in open_parts(Path(path), shut):
            _allow(ruleset, part, rights=look)
    for path in dict.fromkeys(opened):
        _allow(ruleset, Path(path), rights=look)
    for path in dict.fromkeys(writable):
        _allow(ruleset, Path(path), rights=rights)
    for path in DEVICES:
        _allow(ruleset, Path(path), rights=rights)
    libc = ctypes.CDLL(None, use_errno=True)
    _check_result(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _check_result(_call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0)))
    os.close(ruleset)
    return True


def drop_capabilities() -> None:
    """Drop root's capabilities in this process and its children: with them it could read other processes' memory.

    No-op for an ordinary user.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0:
        return
    for capability in range(64):
        libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0)
    libc.prctl(_SECURE_BITS, _NO_ROOT_LOCKED, 0, 0, 0)
    head = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    _check_result(libc.capset(head, (ctypes.c_uint32 * 6)()))


def open_parts(path: Path, closed: list[Path]) -> Iterator[Path]:
    """Yield the largest directories and files below a path that contain no closed directory: the path itself if
    possible.
    """
    try:
        path = path.resolve(strict=True)
    except OSError:
        return
    if any(shut == path or shut in path.parents for shut in closed):
        return
    if not any(path in shut.parents for shut in closed):
        yield path
        return
    for child in sorted(path.iterdir()):
        if not child.is_symlink():
            yield from open_parts(child, closed)


def _allow(ruleset: int, path: Path, *, rights: int) -> None:
    try:
        number = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = rights if path.is_dir() else rights & _FILE_RIGHTS
        rule = _PathBeneath(allowed, number)
        _check_result(
            _call(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
        )
    finally:
        os.close(number)


def _call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))


def _check_result(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"The process could not be confined: {os.strerror(error)}")
    return result
