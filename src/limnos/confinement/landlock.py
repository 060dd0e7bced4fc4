# SPDX-License-Identifier: Apache-2.0
"""Landlock: a process gives up the right to open files outside of listed directories.

Must not know the process's work.

Landlock permanently removes rights of this process and its children. It needs no privilege: it works for an ordinary
user and for root, who also loses the capabilities. Files outside the allowed directories cannot be opened, regardless
of their owner. Processes outside cannot be traced, and their memory and environment cannot be read. Newer kernels also
block signals to them. On a kernel without Landlock no rights are removed, and `confine` returns False.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

from limnos.confinement.file_rules import DEVICES, FileRules
from limnos.confinement.system_calls import call, check_result, drop_capabilities, forbid_new_privileges

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PATH_BENEATH: Final = 1
_VERSION_FLAG: Final = 1

EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
_FIRST = (1 << 13) - 1
_ADDED = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
"""File rights that later versions of Landlock added: refer, truncate, ioctl on devices."""
_SCOPES = 0b11
"""From version 6 on: no connections to abstract sockets and no signals outside the confined processes."""
_FILE_RIGHTS = EXECUTE | WRITE | READ | (1 << 14) | (1 << 15)


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Return the kernel's version of the Landlock interface; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    number = call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(0, number)


def confine(rules: FileRules) -> bool:
    """Remove all file rights except those of the rules from this process and its children.

    Must be called before the process has other threads. Returns False if the kernel has no Landlock. Raises OSError if
    a system call failed.
    """
    landlock_version = version()
    if landlock_version == 0:
        return False
    drop_capabilities()
    rights = _FIRST
    for since, right in _ADDED.items():
        rights |= right if landlock_version >= since else 0
    ruleset = create_ruleset(fs=rights, scoped=_SCOPES if landlock_version >= 6 else 0)
    for path in rules.readable_parts():
        _allow(ruleset, path, rights=EXECUTE | READ | LIST)
    for path in rules.writable_parts():
        _allow(ruleset, path, rights=rights)
    for device in DEVICES:
        _allow(ruleset, Path(device), rights=rights)
    forbid_new_privileges()
    enforce(ruleset)
    os.close(ruleset)
    return True


def create_ruleset(*, fs: int = 0, net: int = 0, scoped: int = 0) -> int:
    """Create a set of rules that denies rights to files and TCP ports, and leaving a scope. Returns its descriptor.

    The kernel must know the rights: TCP from version 4, scopes from version 6 on. Raises OSError.
    """
    attributes = _Ruleset(fs, net, scoped)
    size = ctypes.c_size_t(ctypes.sizeof(_Ruleset) if scoped else 16 if net else 8)
    return check_result(call(_CREATE, ctypes.byref(attributes), size, ctypes.c_uint32(0)), "landlock_create_ruleset")


def add_rule(ruleset: int, kind: int, *, rule: ctypes.Structure) -> None:
    """Add a rule, which allows rights again. Raises OSError."""
    result = call(_ADD, ctypes.c_int(ruleset), ctypes.c_int(kind), ctypes.byref(rule), ctypes.c_uint32(0))
    check_result(result, "landlock_add_rule")


def enforce(ruleset: int) -> None:
    """Enforce a set of rules on this thread and what it starts, in addition to earlier sets. Raises OSError."""
    check_result(call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0)), "landlock_restrict_self")


def _allow(ruleset: int, path: Path, *, rights: int) -> None:
    try:
        number = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        path_rights = rights if path.is_dir() else rights & _FILE_RIGHTS
        add_rule(ruleset, _PATH_BENEATH, rule=_PathBeneath(path_rights, number))
    finally:
        os.close(number)
