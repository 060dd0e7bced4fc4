# SPDX-License-Identifier: Apache-2.0
"""Measurements of fault tests: seconds until a node answers again, and durations of refusals."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.nodes.wire import WireAnswer


def timed(work: Callable[[], WireAnswer]) -> tuple[WireAnswer, float]:
    """Return an answer and its duration."""
    began = time.monotonic()
    return work(), time.monotonic() - began


class TickClock:
    """Time as a process on this machine sees it that only waits, in seconds: the number of its short sleeps.

    On an idle machine it goes like other clocks. On a busy one each sleep ends late, as do the timers of a node, so a
    node that answers in time by its timers is in time by this clock.
    """

    _TICK_S = 0.05

    def __init__(self) -> None:
        self._ticks = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def _tick(self) -> None:
        while not self._is_over.wait(self._TICK_S):
            self._ticks += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """The time since the clock was started."""
        return self._ticks * self._TICK_S


def note(**seconds: float) -> None:
    """Record a measurement for the run's output."""
    if path := os.environ.get("LIMNOS_TEST_FIGURES"):
        with Path(path).open("a") as file:
            file.writelines(json.dumps([name, round(value, 2)]) + "\n" for name, value in seconds.items())
