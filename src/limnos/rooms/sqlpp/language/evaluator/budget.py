# SPDX-License-Identifier: Apache-2.0
"""Limits of one statement: the counts of visited rows and of rows in memory, and a time limit that the caller checks.

Must not know plans. Steps are counted instead of time, so the limit is the same on every machine. `stop` is called
every 1024 steps and may raise, for a deadline or a disconnected caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limnos.rooms.sqlpp.language.errors import BudgetSpent, SqlppError, compilation
from limnos.rooms.sqlpp.language.functions.costs import CALL, COMPARED_EACH, PRINTED_EACH, Cost, weight_of
from limnos.rooms.sqlpp.language.values.model import Value

STEPS_MAX = 20_000_000
KEPT_MAX = 2_000_000
WARNINGS_MAX = 100
_ASKED_EVERY = 1024
ROW_UNITS = 8
SLOTS_SHIFT = 4
"""A row costs one more unit for every `1 << SLOTS_SHIFT` variables of the statement."""
KEPT_UNITS = 16
"""The units for each row in memory: its share of a sort."""


class Budget:
    """The remaining evaluation steps and in-memory rows of a statement, and its warnings."""

    __slots__ = ("_worked", "rows_left", "steps", "stop", "warnings")

    def __init__(
        self, *, steps: int = STEPS_MAX, rows_max: int = KEPT_MAX, stop: Callable[[], None] | None = None
    ) -> None:
        self.steps = steps
        self.rows_left = rows_max
        self.stop = stop
        self._worked = 0
        self.warnings: dict[str, SqlppError] = {}
        """Warnings of the statement, each message once."""

    def warn(self, warning: SqlppError) -> None:
        """Add a warning. Warnings beyond a maximum count are dropped."""
        if len(self.warnings) < WARNINGS_MAX:
            self.warnings.setdefault(warning.text, warning)

    def step(self) -> None:
        """Count one visited row. Raises SqlppError if there were too many, and the exceptions of `stop`."""
        self.steps -= 1
        if self.steps < 0:
            raise compilation("The query reads too many rows for the evaluator; make it select less")
        if self.stop is not None and self.steps % _ASKED_EVERY == 0:
            self.stop()

    def work(self, values: int) -> None:
        """Call `stop` for every 1024 values of a single step's work. Raises its exceptions."""
        self._worked += values
        if self._worked >= _ASKED_EVERY:
            self._worked = 0
            if self.stop is not None:
                self.stop()

    def keep(self, count: int = 1) -> None:
        """Count rows that are in memory at the same time. Raises SqlppError if there are too many."""
        self.rows_left -= count
        if self.rows_left < 0:
            raise compilation("The query keeps too many rows for the evaluator; make it select less")


class MeteredBudget(Budget):
    """A budget in units of work, charged before each step, for evaluation on an event loop.

    Every node of the plan, every call and every row is charged, in proportion to the size of its values. So no
    statement takes longer than its units allow. Raises BudgetSpent when the units are used up.
    """

    __slots__ = ("row_units", "units")

    def __init__(self, units: int, *, slots: int = 0) -> None:
        super().__init__()
        self.units = units
        self.row_units = ROW_UNITS + (slots >> SLOTS_SHIFT)

    def spend(self, units: int) -> None:
        """Charge units. Raises BudgetSpent if too few are left."""
        self.units -= units
        if self.units < 0:
            raise BudgetSpent

    def step(self) -> None:
        """Charge one visited row and its copy. Raises BudgetSpent if too few units are left."""
        self.units -= self.row_units
        if self.units < 0:
            raise BudgetSpent

    def keep(self, count: int = 1) -> None:
        """Charge rows that are stored in memory and may be sorted. Raises BudgetSpent if too few units are left."""
        self.spend(count * KEPT_UNITS)

    def charge(self, cost: Cost | None, arguments: Sequence[Value], *, base: int = CALL) -> None:
        """Charge a function call with these arguments. Raises BudgetSpent if too few units are left.

        A function without a declared cost (None) always raises it.
        """
        if cost is None:
            raise BudgetSpent
        self.units -= base
        if self.units < 0:
            raise BudgetSpent
        self.units -= cost(arguments, self.units)
        if self.units < 0:
            raise BudgetSpent

    def compare(self, value: Value) -> None:
        """Charge building the comparison key of a value. Raises BudgetSpent if too few units are left."""
        self.spend(COMPARED_EACH * (1 + weight_of(value, self.units // COMPARED_EACH)))

    def charge_json(self, value: Value) -> None:
        """Charge the encoding of a value as JSON. Raises BudgetSpent if too few units are left."""
        self.spend(PRINTED_EACH * (1 + weight_of(value, self.units // PRINTED_EACH)))
