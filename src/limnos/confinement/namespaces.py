# SPDX-License-Identifier: Apache-2.0
"""Namespaces of Linux for a process and its children: they see no other process, no other file, and no network unless
they may.

An ordinary user gets a user namespace as well, where the machine allows it. The first process of the PID namespace is
this package's (`run_first_process`): when it ends, the kernel kills all others, wherever they have hidden.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import pwd
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from limnos.confinement.file_rules import SYSTEM, FileRules
from limnos.confinement.file_tree import enter_file_tree
from limnos.confinement.system_calls import (
    die_with_parent,
    drop_capabilities,
    forbid_new_privileges,
    has_admin_capability,
    set_dumpable,
)

_NEW_MOUNTS: Final = 0x00020000
_NEW_IPC: Final = 0x08000000
_NEW_USER: Final = 0x10000000
_NEW_PIDS: Final = 0x20000000
_NEW_NETWORK: Final = 0x40000000
_GET_INTERFACE_FLAGS, _SET_INTERFACE_FLAGS, _UP = 0x8913, 0x8914, 1
_SIGNALLED: Final = 128
_ADVICE: Final = {
    errno.EPERM: (
        "a container needs CAP_SYS_ADMIN or a seccomp profile with unshare and mount, and a /proc without masks; "
        "a service needs RestrictNamespaces= without pid, mnt, ipc, user and net"
    ),
    errno.EACCES: "AppArmor may forbid them to ordinary users: kernel.apparmor_restrict_unprivileged_userns",
    errno.ENOSPC: "user.max_user_namespaces is too low",
}


def become_user(account: pwd.struct_passwd) -> None:
    """Change to another user, with that user's groups, for good. Requires root."""
    os.initgroups(account.pw_name, account.pw_gid)
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)


def enter_pid_namespace(account: pwd.struct_passwd | None = None) -> bool:
    """Make the next child of this process the first one of a new PID namespace.

    Without CAP_SYS_ADMIN this process also enters a user namespace; before that it becomes the user of `account`, if
    one is given, because it cannot later. Returns whether it did so. Raises OSError with the reason if the machine
    forbids namespaces.
    """
    if has_admin_capability():
        _unshare(_NEW_PIDS, "PID namespaces")
        return False
    if account is not None and account.pw_uid != os.geteuid():
        become_user(account)
    _enter_user_namespace(_NEW_PIDS, "user and PID namespaces")
    return True


def close_network(account: pwd.struct_passwd | None = None) -> None:
    """Enter a network namespace without access to any network, and no other namespace unless the machine requires it.

    Like `enter_pid_namespace` it may first become the user of `account`. Raises OSError if the machine forbids it.
    """
    what = "a process without network, and jobs.network is off"
    if has_admin_capability():
        _unshare(_NEW_NETWORK, what)
    else:
        if account is not None and account.pw_uid != os.geteuid():
            become_user(account)
        _enter_user_namespace(_NEW_NETWORK, what)
    _start_loopback()


def _enter_user_namespace(flags: int, what: str) -> None:
    """Enter new namespaces, a user namespace in which this process keeps its user among them."""
    user, group = os.geteuid(), os.getegid()
    _unshare(flags | _NEW_USER, what)
    set_dumpable(value=True)  # else the files below belong to root
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text, encoding="utf-8")


def enter_namespaces(rules: FileRules, *, network: bool) -> None:
    """Enter new mount and IPC namespaces with a private file tree, and, without `network`, a network namespace with a
    loopback interface of its own.

    For the first process of a PID namespace. Raises OSError.
    """
    _unshare(_NEW_MOUNTS | _NEW_IPC | (0 if network else _NEW_NETWORK), "mount, IPC and network namespaces")
    if not network:
        _start_loopback()
    enter_file_tree(rules)


def run_first_process(child: int) -> int:
    """Reap all processes of the PID namespace until `child` has ended. Returns its status, as waitpid does.

    Forwards SIGTERM to the child's process group.
    """

    def forward(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(child, number)

    signal.signal(signal.SIGTERM, forward)
    set_dumpable(value=False)
    while True:
        number, status = os.waitpid(-1, 0)
        if number == child:
            return status


def isolate(rules: FileRules) -> str:
    """Continue in a child process in new PID, mount and IPC namespaces with a private file tree.

    This process, and the first process of the PID namespace, wait for the child and end as it ends; if this process is
    killed, all others are. Must be called before the process has other threads.

    Returns an empty string in the child. If the machine allows no namespaces, this process continues as it is, and the
    result is the reason. Raises OSError.
    """
    reason = obstacle()
    if reason:
        return reason
    enter_pid_namespace()
    first = os.fork()
    if first:
        _end_like(os.waitpid(first, 0)[1])
    die_with_parent()
    enter_namespaces(rules, network=True)
    child = os.fork()
    if child:
        _end_like(run_first_process(child))
    return ""


def _end_like(status: int) -> NoReturn:
    """End as a child ended. The first process of a PID namespace cannot end by a signal of its own: it exits with 128
    and the signal's number, and its parent ends by the signal.
    """
    code = os.waitstatus_to_exitcode(status)
    number = -code if code < 0 else code - _SIGNALLED
    if number > 0:
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        code = _SIGNALLED + number
    os._exit(code)


def obstacle(account: pwd.struct_passwd | None = None, *, network: bool = True) -> str:
    """Return why this machine cannot confine a process in namespaces; empty if it can.

    Tries it in a child process, so the caller must have no other threads.
    """
    source, target = os.pipe()
    child = os.fork()
    if child == 0:
        _try(account, target, network=network)
    os.close(target)
    with os.fdopen(source, encoding="utf-8", errors="replace") as reader:
        reason = reader.read()
    os.waitpid(child, 0)
    return reason


def obstacle_text(error: OSError) -> str:
    """Return the text of an error of this package, with what an operator can change on the machine."""
    text = error.strerror or str(error)
    return f"{text}: {_ADVICE[error.errno]}" if error.errno in _ADVICE else text


def _try(account: pwd.struct_passwd | None, target: int, *, network: bool) -> NoReturn:
    try:
        enter_pid_namespace(account)
        first = os.fork()
        if first:
            os.waitpid(first, 0)
        else:
            die_with_parent()
            enter_namespaces(FileRules(readable=SYSTEM), network=network)
            drop_capabilities()
            forbid_new_privileges()
    except OSError as error:
        os.write(target, obstacle_text(error).encode())
    finally:
        os._exit(0)


def _unshare(flags: int, what: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(ctypes.c_int(flags)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"this machine does not allow {what} ({os.strerror(code)})")


def _start_loopback() -> None:
    """Start the loopback interface of a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as control:
        request = fcntl.ioctl(control, _GET_INTERFACE_FLAGS, struct.pack("16sh14x", b"lo", 0))
        (flags,) = struct.unpack_from("h", request, 16)
        fcntl.ioctl(control, _SET_INTERFACE_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


def main() -> None:
    """Print why this machine cannot confine a process of the user in the first argument, and exit."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        account = pwd.getpwnam(name) if name else None
    except KeyError:
        sys.stdout.write(f"this machine has no user {name}")
    else:
        sys.stdout.write(obstacle(account))


if __name__ == "__main__":
    main()
