"""Places where a test can kill the process: the boundaries of a mutation.

May import only the standard library. Armed by `LIMNOS_FAULT=<point>:<count>` in the environment: the process kills
itself the count-th time it reaches the point. Unarmed, a point costs one comparison.
"""

from __future__ import annotations

import os
import signal

POINTS = ("begin", "locked", "permitted", "written", "drafted", "before-commit", "after-commit", "file-written")
"""In the order a mutation passes them; `file-written` is Iceberg's, before the transaction."""

_armed, _, _count = os.environ.get("LIMNOS_FAULT", "").partition(":")
_left = int(_count or 1)


def reach(point: str) -> None:
    """Die here if the environment says so."""
    global _left  # noqa: PLW0603 - one counter for the process is the point
    if _armed and point == _armed:
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
