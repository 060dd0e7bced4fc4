"""The last resort of a process that was told to stop: when the time for it is over, it says what is left and leaves.

May import `telemetry`. Must not know what the process does. A thread in a call that never returns (a file on a dead
mount, a database that has gone silent) would otherwise keep the process for ever: threads cannot be ended.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback

from limnos.telemetry.logs import get_logger

log = get_logger("limnos.server")
TELLING_S = 1.0
"""A log that nobody reads any more may block, too."""


def leave_after(seconds: float) -> None:
    """Leave in so many seconds, with exit code 0 as nothing is wrong with a stop; unless the process has ended before."""
    timer = threading.Timer(seconds, _leave)
    timer.daemon = True
    timer.name = "limnos-leave"
    timer.start()


def _leave() -> None:
    telling = threading.Thread(target=_tell, daemon=True, name="limnos-leave")
    telling.start()
    telling.join(TELLING_S)
    os._exit(0)


def _tell() -> None:
    log.warning("stopped with work under way: the drain time is over", left=what_is_left())


def what_is_left() -> list[str]:
    """Say for each thread where it is: `name: function (file:line)`."""
    frames = sys._current_frames()  # noqa: SLF001 - the documented way to see other threads
    told = []
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if frame is not None and thread.name != "limnos-leave":
            summary = traceback.extract_stack(frame, limit=1)
            told += [f"{thread.name}: {at.name} ({at.filename}:{at.lineno})" for at in summary]
    return told
