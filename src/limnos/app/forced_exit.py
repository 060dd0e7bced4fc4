# SPDX-License-Identifier: Apache-2.0
"""Forced exit of a stopping process: after the drain time it logs the running threads and exits.

Must not know the work of the process. A thread in a call that never returns (a dead mount, an unresponsive database)
would otherwise keep the process forever, because threads cannot be killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from limnos.telemetry.logs import get_logger

log = get_logger("limnos.server")
WORKING_PART, REPORTING_PART = 0.9, 0.05
"""Fractions of the drain time: for work and closing, and for logging the remaining threads, because the log may block,
too.

The remainder is for the operating system to end the process.
"""


def exit_within(seconds: float) -> None:
    """Log the running threads and exit with code 0 within the given seconds, unless the process ends before."""
    timer = threading.Timer(WORKING_PART * seconds, _leave, [REPORTING_PART * seconds])
    timer.daemon = True
    timer.name = "limnos-leave"
    timer.start()


def exit_now(code: int) -> NoReturn:
    """Exit without the interpreter's cleanup, which takes longer with more memory and does not end hanging threads."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


@contextmanager
def handle_signals_on_thread(signals: Collection[int], then: Callable[[], None]) -> Iterator[None]:
    """Call `then` on a thread when one of the signals arrives, even if the main thread is blocked.

    The interpreter writes the number of each signal to a wakeup descriptor, which belongs to the event loop. During
    the body of the `with`, a pipe replaces that descriptor, and the thread forwards the signals to the event loop.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    listening = threading.Thread(
        target=_listen,
        args=(reader, before),
        kwargs={"signals": signals, "then": then},
        daemon=True,
        name="limnos-leave",
    )
    listening.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        os.close(writer)
        listening.join()
        os.close(reader)


def _listen(reader: int, event_loop_fd: int, *, signals: Collection[int], then: Callable[[], None]) -> None:
    while numbers := os.read(reader, 4096):
        if any(number in signals for number in numbers):
            then()
        if event_loop_fd != -1:
            with suppress(BlockingIOError):  # the pipe is full, so the event loop will wake anyway
                os.write(event_loop_fd, numbers)


def _leave(report_s: float) -> None:
    reporter = threading.Thread(target=_log_threads, daemon=True, name="limnos-leave")
    reporter.start()
    reporter.join(report_s)
    os._exit(0)


def _log_threads() -> None:
    log.warning("stopped with work in progress: the drain time is over", left=thread_positions())


def thread_positions() -> list[str]:
    """Return the current stack position of each thread, as `name: function (file:line)`."""
    frames = sys._current_frames()  # noqa: SLF001 - the documented way to inspect other threads
    texts = []
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if frame is not None and thread.name != "limnos-leave":
            summary = traceback.extract_stack(frame, limit=1)
            texts += [f"{thread.name}: {at.name} ({at.filename}:{at.lineno})" for at in summary]
    return texts
