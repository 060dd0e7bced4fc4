"""Places where a test can kill or stop the process: the boundaries of a mutation, and of a purge.

May import only the standard library. Armed by `LIMNOS_FAULT=<point>:<count>` in the environment: the process kills
itself the count-th time it reaches the point; with `:stop` behind it, it stops there until it gets SIGCONT. Armed late,
after start-up, by the same words in the file that `LIMNOS_FAULT_FILE` names, once that file is there. Unarmed, a point
costs one comparison.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

POINTS = ("file-written", "begin", "locked", "permitted", "written", "drafted", "before-commit", "after-commit")
"""In the order a mutation passes them; `file-written` is Iceberg's, before the transaction."""
DEED_POINT = "deed-done"
"""Passed by a transaction of several operations after each of them, between `permitted` and `written`."""
PURGE_POINT = "file-deleted"
"""Passed by a purge after each file."""


class _InjectedFault:
    """What is armed: one point, how many passes are left, and what happens then."""

    def __init__(self, words: str) -> None:
        self.point, _, rest = words.strip().partition(":")
        count, _, how = rest.partition(":")
        self.left = int(count or 1)
        self.signal = signal.SIGSTOP if how == "stop" else signal.SIGKILL


_fault = _InjectedFault(os.environ.get("LIMNOS_FAULT", ""))
_file = os.environ.get("LIMNOS_FAULT_FILE", "")


def fault_point(point: str) -> None:
    """Die or stop here if the environment says so."""
    if _file:
        _look()
    if _fault.point == point:
        _fault.left -= 1
        if _fault.left == 0:
            signal.pthread_kill(threading.get_ident(), _fault.signal)  # this very thread goes no further


def _look() -> None:
    """Arm what the file says, once: it is taken away so that each arming counts from its own start."""
    global _fault  # noqa: PLW0603 - one fault for the process is the point
    path = Path(_file)
    if path.exists():
        _fault = _InjectedFault(path.read_text())
        path.unlink()
