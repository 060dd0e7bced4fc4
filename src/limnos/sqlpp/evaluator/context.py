"""What the functions of one statement share while it is worked out.

May import plans, `values` and the budget. Must not know how a query is worked out: it is given the function for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.sqlpp.evaluator.budget import Budget, MeteredBudget
from limnos.sqlpp.values.order import key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from limnos.sqlpp import plan
    from limnos.sqlpp.values.model import Value

Row = list["Value"]
"""A place for each variable."""
Key = list[tuple[int, bytes]]
"""What rows are ordered by."""


class EvaluationContext:
    """Where objects come from, what is left to spend, where a group's rows lie, and how a query inside an expression is worked out."""

    __slots__ = ("_queries", "budget", "group_slot", "meter", "rows")

    def __init__(
        self,
        rows: Callable[[tuple[str, ...], str], Iterable[Value]],
        *,
        budget: Budget,
        slots: int,
        queries: Callable[[plan.Query, EvaluationContext], Callable[[Row], Iterator[Value]]],
    ) -> None:
        self.rows = rows
        self.budget = budget
        self.meter = budget if isinstance(budget, MeteredBudget) else None
        """The budget, where each piece of work is charged."""
        self.group_slot = slots
        """One more than the statement's own slots."""
        self._queries = queries

    def key(self, value: Value) -> bytes:
        """Return the key of a value, charged before it is made."""
        if self.meter is not None:
            self.meter.compare(value)
        return key(value)

    def query(self, node: plan.Query) -> Callable[[Row], Iterator[Value]]:
        """Return the function that gives a query's results for the variables around it."""
        return self._queries(node, self)
