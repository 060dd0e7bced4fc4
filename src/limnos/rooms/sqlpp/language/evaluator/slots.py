# SPDX-License-Identifier: Apache-2.0
"""Free variables of expressions, as slots, and a cache of the last result of a subquery.

Must not know how an expression is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.evaluator.context import EvaluationContext, Row
from limnos.rooms.sqlpp.language.values.model import Value


def slots_in(node: plan.PlanNode) -> frozenset[int] | None:
    """Return the slots of the variables that an expression reads; None if its value is not deterministic."""
    waiting: list[object] = [node]
    results = set()
    while waiting:
        item = waiting.pop()
        if isinstance(item, plan.Local):
            results.add(item.slot)
        elif isinstance(item, plan.FunctionCall) and not item.function.is_deterministic:
            return None
        elif isinstance(item, tuple):
            waiting.extend(item)
        if isinstance(item, plan.PlanNode) and not isinstance(item, plan.Constant):
            waiting.extend([getattr(item, name) for name in item.__struct_fields__])
    return frozenset(results)


def with_last_result(
    node: plan.Subquery, run: Callable[[Row], Iterator[Value]], *, working: EvaluationContext
) -> Callable[[Row], Value]:
    """Return a function that evaluates a subquery and caches its last result until a variable that it reads changes.

    A subquery that depends only on the outer of two nested queries then runs once for each row of the outer query. With
    a metered budget each evaluation is charged, so nothing is cached.
    """
    read = slots_in(node.query)
    if read is None or working.meter is not None:
        return lambda row: tuple(run(row))
    slots = (*read, working.group_slot)
    last: list[Value] = []
    result: Value = ()

    def work(row: Row) -> Value:
        nonlocal last, result
        values = [row[slot] for slot in slots]
        if not last or not all(one is other for one, other in zip(values, last, strict=True)):
            result, last = tuple(run(row)), values
        return result

    return work
