# SPDX-License-Identifier: Apache-2.0
"""CPU time of an event loop's slices: the time for which one callback or step of a coroutine keeps all others waiting.

Imports the standard library only.
"""

from __future__ import annotations

import time
from asyncio import Handle
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class LoopSlices:
    """Slices of the event loop's thread, in milliseconds of its CPU."""

    every: list[float] = field(default_factory=list)

    @property
    def longest_ms(self) -> float:
        """The longest slice."""
        return max(self.every, default=0.0)

    def share_above(self, limit_ms: float) -> float:
        """Return the share of slices that are longer than a limit."""
        return sum(each > limit_ms for each in self.every) / max(1, len(self.every))


@contextmanager
def loop_slices() -> Iterator[LoopSlices]:
    """Measure the slices of the event loops that run in the body of a `with`."""
    slices, run = LoopSlices(), Handle._run

    def measured(handle: Handle) -> None:
        began = time.thread_time_ns()
        try:
            run(handle)
        finally:
            slices.every.append((time.thread_time_ns() - began) / 1e6)

    Handle._run = measured  # type: ignore[method-assign]
    try:
        yield slices
    finally:
        Handle._run = run  # type: ignore[method-assign]
