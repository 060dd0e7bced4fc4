# SPDX-License-Identifier: Apache-2.0
"""Operators of expressions: their computation and costs, and AND and OR, which short-circuit.

Must not know plans.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.rooms.sqlpp.language.evaluator.budget import MeteredBudget
from limnos.rooms.sqlpp.language.evaluator.context import Row
from limnos.rooms.sqlpp.language.functions.costs import (
    OPERATOR,
    Cost,
    compare_cost,
    linear_cost,
    match_cost,
    product_cost,
)
from limnos.rooms.sqlpp.language.functions.times import shift_time
from limnos.rooms.sqlpp.language.values import arithmetic, comparison, text
from limnos.rooms.sqlpp.language.values.model import Value


def _add_values(left: Value, right: Value) -> Value:
    result = arithmetic.add(left, right)
    return shift_time(left, right, sign=1) if result is None and left is not None and right is not None else result


def _subtract_values(left: Value, right: Value) -> Value:
    subtract = arithmetic.subtract(left, right)
    return shift_time(left, right, sign=-1) if subtract is None and left is not None and right is not None else subtract


OPERATOR_COSTS: dict[str, Cost] = {
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"), compare_cost),
    **dict.fromkeys(("in", "not in"), match_cost),
    **dict.fromkeys(("like", "not like"), product_cost),
    **dict.fromkeys(("||", "+", "-", "*", "/", "div", "mod", "^"), linear_cost),
}
"""The cost of an operator without its operands."""
OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "=": comparison.equal,
    "!=": comparison.not_equal,
    "<": comparison.less,
    "<=": comparison.less_or_equal,
    ">": lambda left, right: comparison.less(right, left),
    ">=": lambda left, right: comparison.less_or_equal(right, left),
    "in": lambda left, right: comparison.includes(right, left),
    "not in": lambda left, right: comparison.negated(comparison.includes(right, left)),
    "is distinct from": comparison.distinct,
    "is not distinct from": lambda left, right: not comparison.distinct(left, right),
    "like": text.like,
    "not like": lambda left, right: comparison.negated(text.like(left, right)),
    "||": text.concatenate,
    "+": _add_values,
    "-": _subtract_values,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "div": arithmetic.div,
    "mod": arithmetic.mod,
    "^": arithmetic.power,
}


def charge_chain(
    operators: tuple[str, ...], operands: list[Callable[[Row], Value]], *, meter: MeteredBudget
) -> Callable[[Row], Value]:
    """Compile operators that are applied from left to right; each is charged before it is applied."""
    first, *rest = operands
    chain = [
        (OPERATORS[operator], OPERATOR_COSTS[operator], operand)
        for operator, operand in zip(operators, rest, strict=True)
    ]

    def work(row: Row) -> Value:
        value = first(row)
        for run, cost, operand in chain:
            other = operand(row)
            meter.charge(cost, (value, other), base=OPERATOR)
            value = run(value, other)
        return value

    return work


def conjunction(operands: list[Callable[[Row], Value]]) -> Callable[[Row], Value]:
    """Compile AND; operands after a false one are not evaluated."""

    def work(row: Row) -> Value:
        result: Value = True
        for operand in operands:
            result = comparison.both(result, operand(row))
            if result is False:
                return False
        return result

    return work


def disjunction(operands: list[Callable[[Row], Value]]) -> Callable[[Row], Value]:
    """Compile OR; operands after a true one are not evaluated."""

    def work(row: Row) -> Value:
        either: Value = False
        for operand in operands:
            either = comparison.either(either, operand(row))
            if either is True:
                return True
        return either

    return work
