"""What one statement may cost: rows that are gone through, values that are kept, and a time that somebody else watches.

May import `errors`. Must not know plans. Steps are counted, not clocks: the same statement is refused on every machine. `stop` is asked now
and then, and raises what it likes (a deadline that has passed, a caller that has gone).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.sqlpp.errors import compilation

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS_MAX = 20_000_000
KEPT_MAX = 2_000_000
_ASKED_EVERY = 1024


class Budget:
    """What is left for a statement."""

    __slots__ = ("kept", "steps", "stop")

    def __init__(self, *, steps: int = STEPS_MAX, kept: int = KEPT_MAX, stop: Callable[[], None] | None = None) -> None:
        self.steps = steps
        self.kept = kept
        self.stop = stop

    def step(self) -> None:
        """One row more was looked at."""
        self.steps -= 1
        if self.steps < 0:
            raise compilation("The query goes through too many rows for the evaluator; make it select less")
        if self.stop is not None and self.steps % _ASKED_EVERY == 0:
            self.stop()

    def keep(self, count: int = 1) -> None:
        """So many rows more are held at once."""
        self.kept -= count
        if self.kept < 0:
            raise compilation("The query keeps too many rows for the evaluator; make it select less")
