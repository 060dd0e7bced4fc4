# SPDX-License-Identifier: Apache-2.0
"""Settings of the demo's own process: signals, proxies, and the output of a starting Spark.

Job: three context managers that restore everything. May import the standard library only.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

_NO_PROXY = ("NO_PROXY", "no_proxy")
TERMINATED = 128 + signal.SIGTERM
"""Exit code of a process that was asked to end."""


@dataclass(slots=True)
class StopRequest:
    """Whether the process was asked to end: libraries may turn the exit into another error."""

    asked: bool = False

    def ask(self, number: int, frame: FrameType | None) -> NoReturn:
        """Record the request, and raise SystemExit."""
        self.asked = True
        raise SystemExit(TERMINATED)


@contextmanager
def terminable(stop: StopRequest) -> Iterator[None]:
    """Let SIGTERM unwind the program like an exception, so that servers and Spark are stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop.ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def direct_loopback() -> Iterator[None]:
    """Prevent HTTP libraries from using a proxy of the environment for loopback."""
    before = {key: os.environ.get(key) for key in _NO_PROXY}
    known = before["NO_PROXY"] or before["no_proxy"]
    value = f"{known},127.0.0.1" if known else "127.0.0.1"
    os.environ.update(dict.fromkeys(_NO_PROXY, value))
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = old


@contextmanager
def quiet_start(log: Path) -> Iterator[None]:
    """Redirect standard error, which child processes inherit, to `log`; if the body fails, print the log."""
    sys.stderr.flush()
    terminal = os.dup(2)
    with log.open("wb") as out:
        os.dup2(out.fileno(), 2)
    try:
        yield
    except BaseException:
        os.write(terminal, log.read_bytes())
        raise
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
