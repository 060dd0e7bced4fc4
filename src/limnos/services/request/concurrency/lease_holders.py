# SPDX-License-Identifier: Apache-2.0
"""Names of lease holders, by which a later process on the same machine knows that a holder has ended.

Must not know leases. A process id alone is used again, and other containers have processes with the same id. So a name
has a digest of the machine's boot and of the namespace of process ids, the process id, and the start of the process. A
random part tells the leases of one process apart and keeps the name secret. Linux only: elsewhere no holder counts as
ended, and its leases expire.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def new_holder() -> str:
    """Return a new name for leases of this process, of at most 64 characters."""
    pid, secret = os.getpid(), token_hex(13)
    machine, start = _place(), _start_of(pid)
    return secret if machine is None or not start else f"{machine}:{pid}:{start}:{secret}"


def has_ended(holder: str) -> bool:
    """Return whether the process of a holder has certainly ended.

    False for processes of another boot or namespace, and for names in another form.
    """
    machine, *rest = holder.split(":")
    if len(rest) != 3 or not rest[0].isdecimal() or machine != _place():
        return False
    start = _start_of(int(rest[0]))
    return _is_missing(int(rest[0])) if start is None else start != rest[1]


def _place() -> str | None:
    """Return a digest of this machine's boot and of the namespace of its process ids; None if they are unknown."""
    try:
        text = f"{_BOOT.read_text(encoding='ascii')}{_NAMESPACE.stat().st_ino}"
    except OSError:
        return None
    return blake2b(text.encode(), digest_size=6).hexdigest()


def _start_of(pid: int) -> str | None:
    """Return the start of a process in clock ticks after the boot; an empty text for a killed process that was not
    reaped, None if the process does not exist or is hidden.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]


def _is_missing(pid: int) -> bool:
    """Return whether no process has this id. One of another user may be hidden (`hidepid`)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
