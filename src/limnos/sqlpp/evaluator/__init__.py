"""The evaluator: works bound statements out in plain Python. It defines what SQL++ means here.

May import plans, functions and `values`. Must not know a store, a caller or an engine: objects of datasets come from a function that it is
given, and a budget bounds what it may do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.sqlpp import plan
from limnos.sqlpp.errors import BudgetSpent, too_deep
from limnos.sqlpp.evaluator.budget import Budget, MeteredBudget
from limnos.sqlpp.evaluator.expressions import work_of
from limnos.sqlpp.evaluator.queries import query_of, working_of
from limnos.sqlpp.values.model import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from limnos.sqlpp.binder import BoundQuery
    from limnos.sqlpp.values.model import Value

__all__ = ["Budget", "BudgetSpent", "MeteredBudget", "results"]


def results(
    bound: BoundQuery,
    rows: Callable[[tuple[str, ...], str], Iterable[Value]],
    *,
    budget: Budget | None = None,
    given: Mapping[int, Value] | None = None,
) -> Iterator[Value]:
    """Give the results of a query one by one; of a bare expression its one value.

    `rows` gives the objects of a dataset, by dataverse and name; `given` has values of variables that are bound from outside. Raises SqlppError while results are taken: for what is no collection
    where one is needed, a number that overflows, a budget that is used up (BudgetSpent for a metered one).
    """
    working = working_of(rows, budget=budget or Budget(), slots=bound.slots)
    first: list[Value] = [MISSING] * (bound.slots + 1)
    for slot, value in (given or {}).items():
        first[slot] = value
    try:
        if isinstance(bound.expression, plan.Subquery):
            yield from query_of(bound.expression.query, working)(first)
        else:
            yield work_of(bound.expression, working)(first)
    except RecursionError:
        raise too_deep() from None
