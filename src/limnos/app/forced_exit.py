"""The last resort of a process that was told to stop: when the time for it is over, it says what is left and leaves.

May import `telemetry`. Must not know what the process does. A thread in a call that never returns (a file on a dead
mount, a database that has gone silent) would otherwise keep the process for ever: threads cannot be ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

log = get_logger("limnos.server")
WORKING_PART, TELLING_PART = 0.9, 0.05
"""Of the time there is, for work and for closing; and for saying what did not end, to a log that may block, too. The rest is for the system to end the process."""


def exit_within(seconds: float) -> None:
    """Leave within so many seconds, with exit code 0 as nothing is wrong with a stop; unless the process has ended before."""
    timer = threading.Timer(WORKING_PART * seconds, _leave, [TELLING_PART * seconds])
    timer.daemon = True
    timer.name = "limnos-leave"
    timer.start()


def exit_now(code: int) -> NoReturn:
    """End the process without the interpreter's own end, which takes the longer the more is in memory, and ends no thread that hangs."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


@contextmanager
def handle_signals_on_thread(signals: Collection[int], then: Callable[[], None]) -> Iterator[None]:
    """Call `then` on a thread when such a signal arrives, even while the main thread is held and runs no handler.

    The interpreter writes each signal's number to one descriptor at once, whatever it is doing. That is the loop's; for the
    time of the body it is ours, and what is read there is handed on to the loop.
    """
    heard, hear = os.pipe()
    os.set_blocking(hear, False)
    before = signal.set_wakeup_fd(hear, warn_on_full_buffer=False)
    listening = threading.Thread(
        target=_listen,
        args=(heard, before),
        kwargs={"signals": signals, "then": then},
        daemon=True,
        name="limnos-leave",
    )
    listening.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        os.close(hear)
        listening.join()
        os.close(heard)


def _listen(heard: int, onward: int, *, signals: Collection[int], then: Callable[[], None]) -> None:
    while numbers := os.read(heard, 4096):
        if any(number in signals for number in numbers):
            then()
        if onward != -1:
            with suppress(BlockingIOError):  # the loop has more than enough to wake it
                os.write(onward, numbers)


def _leave(telling_s: float) -> None:
    telling = threading.Thread(target=_tell, daemon=True, name="limnos-leave")
    telling.start()
    telling.join(telling_s)
    os._exit(0)


def _tell() -> None:
    log.warning("stopped with work under way: the drain time is over", left=thread_positions())


def thread_positions() -> list[str]:
    """Say for each thread where it is: `name: function (file:line)`."""
    frames = sys._current_frames()  # noqa: SLF001 - the documented way to see other threads
    told = []
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if frame is not None and thread.name != "limnos-leave":
            summary = traceback.extract_stack(frame, limit=1)
            told += [f"{thread.name}: {at.name} ({at.filename}:{at.lineno})" for at in summary]
    return told
