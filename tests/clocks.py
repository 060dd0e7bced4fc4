# SPDX-License-Identifier: Apache-2.0
"""An event loop with simulated time: instead of waiting it advances its clock, so tests do not depend on real time.

It supports timers and sleeps only. A jump never wakes a task that waits for a thread or a socket.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that never waits, and sums up the requested waiting times."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Advance the clock by the timeout."""
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time advances when nothing else is left to do."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """The simulated time."""
        return self._jumping.now


def run(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine on such a loop."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)
