"""What one statement may cost: rows that are gone through, values that are kept, and a time that somebody else watches.

May import `errors`, the costs of functions and `values`. Must not know plans. Steps are counted, not clocks: the same statement is refused on every machine. `stop` is asked now
and then, and raises what it likes (a deadline that has passed, a caller that has gone).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.sqlpp.errors import BudgetSpent, compilation
from limnos.sqlpp.functions.costs import CALL, COMPARED_EACH, PRINTED_EACH, weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limnos.sqlpp.functions.costs import Cost
    from limnos.sqlpp.values.model import Value

STEPS_MAX = 20_000_000
KEPT_MAX = 2_000_000
_ASKED_EVERY = 1024
ROW_UNITS = 8
SLOTS_SHIFT = 4
"""A row takes one unit more for every `1 << SLOTS_SHIFT` variables of the statement."""
KEPT_UNITS = 16
"""Of a row that is kept: its part of a sort."""


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


class MeteredBudget(Budget):
    """A budget in units of work, charged before each piece of work, for evaluation on an event loop.

    Every node of the plan, every call and every row is charged, with the size of the values that it works on, so that no statement
    takes longer than its units, whatever it says. Raises BudgetSpent where a plain budget would go on.
    """

    __slots__ = ("row_units", "units")

    def __init__(self, units: int, *, slots: int = 0) -> None:
        super().__init__()
        self.units = units
        self.row_units = ROW_UNITS + (slots >> SLOTS_SHIFT)

    def spend(self, units: int) -> None:
        """Take units. Raises BudgetSpent."""
        self.units -= units
        if self.units < 0:
            raise BudgetSpent

    def step(self) -> None:
        """One row more: it is copied."""
        self.units -= self.row_units
        if self.units < 0:
            raise BudgetSpent

    def keep(self, count: int = 1) -> None:
        """So many rows more are held, and may be sorted."""
        self.spend(count * KEPT_UNITS)

    def charge(self, cost: Cost | None, arguments: Sequence[Value], *, base: int = CALL) -> None:
        """Take what a call with these arguments costs. A call without a declared cost is never made. Raises BudgetSpent."""
        if cost is None:
            raise BudgetSpent
        self.units -= base
        if self.units < 0:
            raise BudgetSpent
        self.units -= cost(arguments, self.units)
        if self.units < 0:
            raise BudgetSpent

    def compare(self, value: Value) -> None:
        """Take what the key of a value costs. Raises BudgetSpent."""
        self.spend(COMPARED_EACH * (1 + weight_of(value, self.units // COMPARED_EACH)))

    def show(self, value: Value) -> None:
        """Take what writing a value as JSON costs. Raises BudgetSpent."""
        self.spend(PRINTED_EACH * (1 + weight_of(value, self.units // PRINTED_EACH)))
