"""An event loop whose time is its own: where it would wait, its clock jumps, so that no test depends on a real one.

Timers and sleeps only: what waits for a thread or a socket would never be woken by a jump.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for nothing, and counts for how long it was asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let the time pass that somebody wanted to wait."""
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop whose seconds pass when nothing else is left to do."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """The loop's own time."""
        return self._jumping.now


def run(work: Coroutine[object, object, T]) -> T:
    """Run a story on such a loop."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)
