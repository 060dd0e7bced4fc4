# SPDX-License-Identifier: Apache-2.0
"""System calls that Python has no function for, and capabilities.

Every function raises OSError, whose text names the call that failed.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_NO_NEW_PRIVILEGES: Final = 38
_DROP_BOUNDING: Final = 24
_SECURE_BITS: Final = 28
_NO_ROOT_LOCKED: Final = 0b11
_CAPABILITIES_3: Final = 0x20080522
_SYS_ADMIN: Final = 21
_BITS_MAX: Final = 64
_DIE_WITH_PARENT: Final = 1
_DUMPABLE: Final = 4
_KILL: Final = 9


def call(number: int, *arguments: object) -> int:
    """Make a system call by its number. Returns its result, which is negative after an error (`ctypes.get_errno`)."""
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))


def check_result(result: int, what: str = "confinement") -> int:
    """Return the result of a call. Raises OSError if it is negative; `what` names the step in the error's text."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"The process could not be confined ({what}: {os.strerror(error)})")
    return result


def set_process_option(option: int, value: int) -> int:
    """Call prctl with one option. Returns its result, which is negative after an error."""
    arguments = (ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    return int(ctypes.CDLL(None, use_errno=True).prctl(ctypes.c_int(option), *arguments))


def forbid_new_privileges() -> None:
    """Make the process and its children ignore setuid bits and file capabilities, for good."""
    check_result(set_process_option(_NO_NEW_PRIVILEGES, 1), "no_new_privs")


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent ends. Must follow every change of the process's user."""
    check_result(set_process_option(_DIE_WITH_PARENT, _KILL), "pdeathsig")


def set_dumpable(*, value: bool) -> None:
    """Set whether other processes of the same user may trace this one, and own its files below /proc."""
    check_result(set_process_option(_DUMPABLE, int(value)), "dumpable")


def has_admin_capability() -> bool:
    """Return whether this process may create namespaces and mounts without a user namespace (CAP_SYS_ADMIN)."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        line = next(each for each in lines if each.startswith("CapEff:"))
        return bool(int(line.split()[1], 16) >> _SYS_ADMIN & 1)
    return False


def drop_capabilities() -> None:
    """Drop all capabilities in this process and its children: with them it could read other processes' memory, and undo
    mounts.

    A program of user 0 does not get them again.
    """
    for capability in range(_BITS_MAX):
        set_process_option(_DROP_BOUNDING, capability)  # fails without capabilities, which is as good
    set_process_option(_SECURE_BITS, _NO_ROOT_LOCKED)
    head = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    check_result(int(ctypes.CDLL(None, use_errno=True).capset(head, (ctypes.c_uint32 * 6)())), "capset")
