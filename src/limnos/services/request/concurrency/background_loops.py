# SPDX-License-Identifier: Apache-2.0
"""Background loops of a node: each repeats a step for as long as the node lives, whatever the step raises.

Must not know the steps. A failed step is logged once for each streak of failures, and repeated after pauses that grow
up to a maximum. A step that neither ends nor makes progress within its time is logged once, and goes on. Pauses and
durations are times of the event loop, so the wall clock does not affect them. `/health/ready`, metrics and the console
show the loops that fail or hang.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple

from limnos.model.errors import LimnosError
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter, Gauge

log = get_logger("limnos.background")
RETRY_S: Final = 1.0
"""The longest pause after the first failure, in seconds. Each further failure doubles the pause."""
RETRY_S_MAX: Final = 30.0
REASON_CHARS_MAX: Final = 500
STEP_S_MAX: Final = 600.0
"""The time after which a step that has neither ended nor made progress is shown, in seconds, unless its loop pauses
longer.
"""
STEPS = Counter("limnos_background_steps_total", "Steps of a node's background loops that succeeded.", ("loop",))
FAILURES = Counter("limnos_background_failures_total", "Failed steps of a node's background loops.", ("loop",))
FAILING = Gauge(
    "limnos_background_failing",
    "Whether the last step of a background loop failed, or does not end: 1 or 0.",
    ("loop",),
)


class LoopFailure(NamedTuple):
    """A loop whose last step failed: since when, how often in a row, why, and the time until the next attempt. Or a
    loop whose step has not ended in its time (`is_stuck`): since when it makes no progress.
    """

    name: str
    failing_s: float
    failures: int
    reason: str
    """The class and the message of the last error, for the log and for service admins only."""
    next_try_s: float
    is_stuck: bool = False

    @property
    def error(self) -> str:
        """The class of the last error; empty for a step that has not ended."""
        return "" if self.is_stuck else self.reason.partition(":")[0]


class BackgroundLoop:
    """A loop of a node: it runs a step, records the outcome and pauses. Created by `BackgroundLoops.add`."""

    def __init__(self, name: str, *, every_s: float, retry_s_max: float) -> None:
        self.name = name
        self.every_s = every_s
        self.retry_s_max = retry_s_max
        self.step_s_max = max(STEP_S_MAX, every_s)
        self._timer: asyncio.TimerHandle | None = None
        """Fires when the running step has made no progress in its time; None while no step runs."""
        self._progress_at = 0.0
        self._is_stuck = False
        self._failures = 0
        self._failing_since = self._next_try = 0.0
        self._reason = ""
        STEPS[name,] += 0
        FAILING[name,] = 0

    @property
    def pause_s(self) -> float:
        """The time until the next step in seconds: `every_s`, or after failures a pause that grows to `retry_s_max`."""
        if not self._failures:
            return self.every_s
        return min(min(self.every_s, RETRY_S) * 2.0 ** min(self._failures - 1, 30), self.retry_s_max)

    async def run(self, step: Callable[[], Awaitable[object]], *, woken: asyncio.Event | None = None) -> None:
        """Repeat the step until cancelled. `woken` ends a pause early, unless the last step failed."""
        while True:
            await self.attempt(step)
            await self._pause(woken)

    async def attempt(self, step: Callable[[], Awaitable[object]]) -> bool:
        """Run the step once and record its outcome. Returns whether it succeeded; raises only if the loop's own task is
        cancelled.
        """
        self._watch_step()
        try:
            await step()
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self.record_failure(error)  # a shared operation that the step awaited was cancelled, not the loop
        except Exception as error:  # noqa: BLE001 - no error of a step may end its loop
            self.record_failure(error)
        else:
            self.record_success()
        finally:
            self._end_watch()
        return not self._failures

    def record_progress(self) -> None:
        """Record that the running step has done a part of its work, such as one of several tasks."""
        if self._timer is not None:
            self._end_watch()
            self._watch_step()

    def _watch_step(self) -> None:
        loop = asyncio.get_running_loop()
        self._progress_at = loop.time()
        self._timer = loop.call_later(self.step_s_max, self._record_stuck)

    def _end_watch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_stuck:
            self._is_stuck = False
            FAILING[self.name,] = 1 if self._failures else 0
            log.info("a step of background work goes on or has ended", loop=self.name)

    def _record_stuck(self) -> None:
        """Record a step that has neither ended nor made progress in its time. It is not cancelled."""
        self._is_stuck = True
        FAILING[self.name,] = 1
        log.warning("a step of background work does not end", loop=self.name, for_s=self.step_s_max)

    def record_failure(self, error: BaseException) -> None:
        """Record a failed step; the first of a streak is logged."""
        now = asyncio.get_running_loop().time()
        self._failures += 1
        self._reason = f"{type(error).__name__}: {error}"[:REASON_CHARS_MAX]
        self._next_try = now + self.pause_s
        FAILURES[self.name,] += 1
        if self._failures == 1:
            self._failing_since = now
            FAILING[self.name,] = 1
            log.warning(
                "background work failed and is tried again",
                loop=self.name,
                error=self._reason,
                again_in_s=self.pause_s,
                exc_info=None if isinstance(error, OSError | LimnosError) else error,
            )

    def record_success(self) -> None:
        """Record a step without an error, which ends a streak of failures."""
        STEPS[self.name,] += 1
        if self._failures:
            log.info("background work succeeds again", loop=self.name, failures=self._failures)
            self.reset()

    def reset(self) -> None:
        """Forget a streak of failures, because the loop ends and has no work left."""
        self._failures = 0
        FAILING[self.name,] = 0

    def failure(self) -> LoopFailure | None:
        """Return the streak of failures of this loop, or its step that does not end; None if the loop works."""
        if self._is_stuck:
            stuck_s = asyncio.get_running_loop().time() - self._progress_at
            return LoopFailure(
                name=self.name,
                failing_s=stuck_s,
                failures=self._failures,
                reason="The step has not ended",
                next_try_s=0.0,
                is_stuck=True,
            )
        if not self._failures:
            return None
        now = asyncio.get_running_loop().time()
        return LoopFailure(
            name=self.name,
            failing_s=now - self._failing_since,
            failures=self._failures,
            reason=self._reason,
            next_try_s=max(self._next_try - now, 0.0),
        )

    async def _pause(self, woken: asyncio.Event | None) -> None:
        if woken is None or self._failures:
            await asyncio.sleep(self.pause_s)
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.pause_s):  # `wait_for` of Python 3.11 loses a cancellation while woken
                    await woken.wait()
        if woken is not None:
            woken.clear()


class BackgroundLoops:
    """The background loops of a node, by name."""

    def __init__(self) -> None:
        self._loops: dict[str, BackgroundLoop] = {}

    def add(self, name: str, *, every_s: float, retry_s_max: float = RETRY_S_MAX) -> BackgroundLoop:
        """Add a loop, which replaces a loop of this name.

        Args:
            name: The subject of its work, as readiness, metrics and the console show it.
            every_s: The pause after a successful step.
            retry_s_max: The longest pause after failures.
        """
        loop = self._loops[name] = BackgroundLoop(name, every_s=every_s, retry_s_max=retry_s_max)
        return loop

    def names(self) -> tuple[str, ...]:
        """Return the names of all loops, sorted."""
        return tuple(sorted(self._loops))

    def failures(self) -> tuple[LoopFailure, ...]:
        """Return the loops whose last step failed or does not end, sorted by name."""
        results = (self._loops[name].failure() for name in self.names())
        return tuple(each for each in results if each is not None)
