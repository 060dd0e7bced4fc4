# SPDX-License-Identifier: Apache-2.0
"""Fault injection for tests: points of mutations, purges, removals of orphan files and exports (COPY TO), at which a
test can kill or stop the process.

Must not know tests. `LIMNOS_FAULT=<point>:<count>` in the environment kills the process the count-th time it reaches
the point; with `:stop` appended, the process stops there until it gets SIGCONT. After start-up the same specification
can be written to the file that `LIMNOS_FAULT_FILE` names. Without a fault, a point costs one comparison.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

POINTS = ("file-written", "begin", "locked", "permitted", "written", "drafted", "before-commit", "after-commit")
"""The fault points of a mutation, in order. Iceberg commits pass `file-written` before the transaction."""
OPERATION_POINT = "operation-done"
"""Passed after each operation of a transaction of several operations, between `permitted` and `written`."""
PURGE_POINT = "file-deleted"
"""Passed by a purge after each file."""
ORPHAN_POINT = "orphan-deleted"
"""Passed by a removal of orphan files after each file."""
EXPORT_POINTS = ("export-file-written", "export-unpublished", "export-published")
"""The fault points of COPY TO, in order; the first one is passed after each file."""


class _InjectedFault:
    """The configured fault: the point, the remaining count of passes before it fires, and the signal to send."""

    def __init__(self, words: str) -> None:
        self.point, _, rest = words.strip().partition(":")
        count, _, how = rest.partition(":")
        self.left = int(count or 1)
        self.signal = signal.SIGSTOP if how == "stop" else signal.SIGKILL


_fault = _InjectedFault(os.environ.get("LIMNOS_FAULT", ""))
_file = os.environ.get("LIMNOS_FAULT_FILE", "")


def fault_point(point: str) -> None:
    """Kill or stop the process if a fault is configured for this point."""
    if _file:
        _read_fault_file()
    if _fault.point == point:
        _fault.left -= 1
        if _fault.left == 0:
            # To this thread, so that it cannot pass this point.
            signal.pthread_kill(threading.get_ident(), _fault.signal)


def _read_fault_file() -> None:
    """Read the fault from the file if it exists, and delete the file, so that each new file starts a new count."""
    global _fault  # noqa: PLW0603 - one fault for the process is the point
    path = Path(_file)
    if path.exists():
        _fault = _InjectedFault(path.read_text())
        path.unlink()
