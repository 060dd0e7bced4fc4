# SPDX-License-Identifier: Apache-2.0
"""The evaluator executes bound statements in plain Python. It defines the semantics of SQL++ in Limnos.

Must not know stores, users or engines: the caller supplies a function that returns a dataset's objects, and a budget
that limits the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.binder import BoundQuery
from limnos.rooms.sqlpp.language.errors import too_deep
from limnos.rooms.sqlpp.language.evaluator.budget import Budget, MeteredBudget
from limnos.rooms.sqlpp.language.evaluator.expressions import compile_expression
from limnos.rooms.sqlpp.language.evaluator.queries import query_of, working_of
from limnos.rooms.sqlpp.language.values.model import MISSING, Value

__all__ = ["Budget", "MeteredBudget", "results"]


def results(
    bound: BoundQuery,
    rows: Callable[[tuple[str, ...], str], Iterable[Value]],
    *,
    budget: Budget | None = None,
    arguments: Mapping[int, Value] | None = None,
) -> Iterator[Value]:
    """Yield the results of a query, or the one value of a bare expression.

    Args:
        bound: The query.
        rows: Returns the objects of a dataset, by dataverse and name.
        budget: Limits the work; None for a default budget.
        arguments: Values of the variables that the caller binds, by slot.

    Raises:
        SqlppError: During iteration, if a value has a wrong type, a number overflows, or the budget is used up.
        BudgetSpent: A metered budget is used up.
    """
    working = working_of(rows, budget=budget or Budget(), slots=bound.slots)
    first: list[Value] = [MISSING] * (bound.slots + 1)
    for slot, value in (arguments or {}).items():
        first[slot] = value
    try:
        if isinstance(bound.expression, plan.Subquery):
            yield from query_of(bound.expression.query, working)(first)
        else:
            yield compile_expression(bound.expression, working)(first)
    except RecursionError:
        raise too_deep() from None
