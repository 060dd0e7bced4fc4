# SPDX-License-Identifier: Apache-2.0
"""The evaluation context: the state that the functions of one statement share during evaluation.

Must not know the evaluation of queries: a function for that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.evaluator.budget import Budget, MeteredBudget
from limnos.rooms.sqlpp.language.values.model import Value
from limnos.rooms.sqlpp.language.values.order import key

Row = list["Value"]
"""The values of all variables, by slot."""
Key = list[tuple[int, bytes]]
"""The sort key of a row."""


class EvaluationContext:
    """The shared state of one evaluation: the source of datasets' objects, the budget, the slot of a group's rows, and
    the evaluation of subqueries.
    """

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
        """The budget if it is metered, else None."""
        self.group_slot = slots
        """The slot after the statement's own, for the rows of the current group."""
        self._queries = queries

    def key(self, value: Value) -> bytes:
        """Return the comparison key of a value; a metered budget is charged first."""
        if self.meter is not None:
            self.meter.compare(value)
        return key(value)

    def query(self, node: plan.Query) -> Callable[[Row], Iterator[Value]]:
        """Compile a subquery to a function that yields its results for a row of outer variables."""
        return self._queries(node, self)
