# SPDX-License-Identifier: Apache-2.0
"""A private file tree: the process's mount namespace gets a new root that contains only the allowed files.

Must run in a process that is its only user: it replaces the root directory. Other files then have no path: their
attributes cannot be read or changed, and their sockets cannot be connected to. Readable parts are mounted read-only, so
that their attributes cannot be changed either.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from limnos.confinement.file_rules import DEVICES, FileRules
from limnos.confinement.system_calls import call, check_result

TEMPORARY: Final = ("/tmp", "/dev/shm")  # noqa: S108 - of the private tree
"""Directories that are empty at the start and in memory. A process may write to them."""
TEMPORARY_BYTES: Final = 256 << 20
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXECUTION = 1, 2, 4, 8
_BIND, _RECURSIVE, _REMOUNT, _PRIVATE = 1 << 12, 1 << 14, 1 << 5, 1 << 18
_DETACH: Final = 2
_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_PIVOT_ROOT, _MOUNT_SETATTR = 155, 442
_PIVOT_ROOT_OF = {"aarch64": 41, "riscv64": 41}
_OLD: Final = "/.outside"
_LINKS_MAX: Final = 40
_PROC: Final = Path("/proc")


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


class _Step(NamedTuple):
    """One mount of the new tree. Sorted, a deeper path follows the ones that contain it."""

    depth: int
    order: int
    real: str
    """The path outside, with all links resolved."""
    path: Path
    """The path as a program names it."""


_READABLE, _CLOSED, _OPENED, _WRITABLE = range(4)


def enter_file_tree(rules: FileRules) -> None:
    """Replace the root directory by one with only the files of the rules, a /proc of the process's own, devices without
    effect, and empty temporary directories.

    The process must be in a mount namespace of its own, and in a PID namespace of its own. Its working directory is
    then the new root. Raises OSError.
    """
    steps = sorted(_steps(rules))
    base = str(_PROC)  # any directory that exists: the new tree is there until it becomes the root
    _mount("none", "/", flags=_PRIVATE | _RECURSIVE)
    _mount("tmpfs", base, kind="tmpfs", flags=_NO_SUID | _NO_DEVICES, data="mode=755,size=1m")
    Path(f"{base}{_OLD}").mkdir(mode=0o700)
    number = _PIVOT_ROOT_OF.get(os.uname().machine, _PIVOT_ROOT)
    result = call(number, ctypes.c_char_p(base.encode()), ctypes.c_char_p(f"{base}{_OLD}".encode()))
    check_result(result, "pivot_root")
    os.chdir("/")
    masks = _fill(steps)
    for path in masks:
        _mount("none", path, flags=_REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)
    check_result(
        int(ctypes.CDLL(None, use_errno=True).umount2(ctypes.c_char_p(_OLD.encode()), ctypes.c_int(_DETACH))),
        "umount",
    )
    Path(_OLD).rmdir()
    _mount("none", "/", flags=_REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)


def _steps(rules: FileRules) -> Iterator[_Step]:
    shut = [Path(path).resolve() for path in rules.closed]
    kinds = (rules.readable, rules.closed, rules.opened, rules.writable)
    for order, paths in enumerate(kinds):
        for path in _absolute(paths):
            real = path.resolve()
            is_shut = any(each == real or each in real.parents for each in shut)
            if path != _PROC and os.access(real, os.F_OK) and not (order == _READABLE and is_shut):
                yield _Step(len(real.parts), order, str(real), path)


def _absolute(paths: Iterable[str]) -> Iterator[Path]:
    """Yield absolute paths; instead of the root its entries, because the new tree has a root of its own."""
    for text in dict.fromkeys(paths):
        path = Path(text).absolute()
        if path.resolve() == Path("/"):
            yield from (each for each in Path("/").iterdir() if each.name not in ("proc", "dev"))
        else:
            yield path


def _fill(steps: list[_Step]) -> list[str]:
    """Mount the parts of the new tree. Returns the paths of the empty mounts that hide closed directories."""
    for path in TEMPORARY:
        Path(path).mkdir(parents=True, exist_ok=True)
        _mount("tmpfs", path, kind="tmpfs", flags=_NO_SUID | _NO_DEVICES, data=f"mode=1777,size={TEMPORARY_BYTES}")
    for device in DEVICES:
        _bind(Path(device), attributes=_NO_SUID)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        Path(f"/dev/{name}").symlink_to(f"/proc/self/{target}")
    _PROC.mkdir()
    _mount("proc", "/proc", kind="proc", flags=_READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_EXECUTION)
    masks: list[str] = []
    for step in steps:
        if step.order == _WRITABLE:
            _bind(step.path, attributes=_NO_SUID | _NO_DEVICES)
        elif step.order != _CLOSED:
            _bind(step.path, attributes=_NO_SUID | _NO_DEVICES | _READ_ONLY)
        elif os.path.lexists(step.real):
            _mount("tmpfs", step.real, kind="tmpfs", flags=_NO_SUID | _NO_DEVICES, data="mode=711,size=64k")
            masks.append(step.real)
    return masks


def _bind(path: Path, *, attributes: int) -> None:
    """Mount a file or directory of the old tree at the same path of the new one, with the links that lead to it."""
    real = _place(path)
    _mount(f"{_OLD}{real}", real, flags=_BIND | _RECURSIVE)
    requested = _MountAttributes(attributes, 0, 0, 0)
    where, size = ctypes.c_char_p(os.fsencode(real)), ctypes.c_size_t(ctypes.sizeof(requested))
    call_flags = ctypes.c_uint(_AT_RECURSIVE)
    result = call(_MOUNT_SETATTR, ctypes.c_int(_AT_FDCWD), where, call_flags, ctypes.byref(requested), size)
    check_result(result, "mount_setattr")


def _place(path: Path) -> str:
    """Create the directories and links of a path, as the old tree has them. Returns the path without links.

    Raises OSError if it has too many links.
    """
    done, left, links = "", list(path.parts[1:]), 0
    while left:
        part = left.pop(0)
        if part == "..":
            done = done.rpartition("/")[0]
            continue
        here = f"{done}/{part}"
        mode = os.lstat(f"{_OLD}{here}").st_mode
        if stat.S_ISLNK(mode):
            target = str(Path(f"{_OLD}{here}").readlink())
            links += 1
            if links > _LINKS_MAX:
                raise OSError(0, f"{path} has too many links")
            if not os.path.lexists(here):
                Path(here).symlink_to(target)
            left = [each for each in target.split("/") if each not in ("", ".")] + left
            done = "" if target.startswith("/") else done
            continue
        done = here
        if os.path.lexists(here):
            continue
        if stat.S_ISDIR(mode):
            Path(here).mkdir(mode=0o755)
        else:
            os.close(os.open(here, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    return done or "/"


def _mount(source: str, target: str, *, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    texts = [None if each is None else ctypes.c_char_p(os.fsencode(each)) for each in (source, target, kind, data)]
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]))
    check_result(result, f"mount of {kind or target.removeprefix(_OLD)}")
