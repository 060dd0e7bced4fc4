# SPDX-License-Identifier: Apache-2.0
"""Translates aggregates to measures of groups.

Must not know the source of groups.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.relations.expressions import condition, shape
from limnos.rooms.sqlpp.language.relations.functions import KINDS, result_type
from limnos.rooms.sqlpp.language.relations.nodes import Measure
from limnos.rooms.sqlpp.language.relations.operators import cell
from limnos.rooms.sqlpp.language.relations.shapes import CellShape, Shape, UntranslatableExpression, unknown_of
from limnos.rooms.sqlpp.language.relations.terms import (
    FALSE,
    TRUE,
    ColumnTerm,
    LiteralTerm,
    Term,
    TruthTerm,
    call,
    term_of,
)
from limnos.rooms.sqlpp.language.relations.translator import BlockTranslator


def measure_aggregate(node: plan.Aggregate, carrier: BlockTranslator) -> tuple[Measure, Callable[[int], Shape]]:
    """Translate an aggregate to a measure. Also returns a function from the id of its column to its shape.

    Raises UntranslatableExpression.
    """
    call_term = None if node.filter is None else call("coalesce", condition(node.filter, carrier), FALSE)
    if node.argument is None:
        term = None if call_term is None else call("if", call_term, TRUE, LiteralTerm(None, "boolean"))
        return Measure(carrier.new(), "count", term), _count_shape
    return measure_over(
        node.function.name, shape(node.argument, carrier), distinct=node.distinct, condition=call_term, carrier=carrier
    )


def measure_over(
    function: str, value: Shape, *, distinct: bool, condition: Term | None, carrier: BlockTranslator
) -> tuple[Measure, Callable[[int], Shape]]:
    """Return the measure over the values of a shape that are not NULL or MISSING.

    With `condition`, only rows that meet it count. Also returns a function from the id of its column to its shape.
    Raises UntranslatableExpression.
    """
    if function == "count":
        return Measure(
            carrier.new(), "count", _filter_value(_countable(value, distinct=distinct), condition), distinct
        ), _count_shape
    one = cell(value)
    if function not in KINDS or one.type not in KINDS[function]:
        raise UntranslatableExpression(f"{function} of values of type {one.type}")
    if distinct and function not in ("sum", "avg", "min", "max"):
        raise UntranslatableExpression(f"{function} of distinct values")
    type_ = result_type(function, one.type)
    measure = Measure(carrier.new(), function, _filter_value(_TypedTerm(one.term, one.type), condition), distinct)

    def shape_of(number: int) -> Shape:
        return CellShape(ColumnTerm(number), type_, missing=False)

    return measure, shape_of


class _TypedTerm:
    """A term, and the name of the type of its values."""

    def __init__(self, term: Term, type_: str) -> None:
        self.term = term
        self.type = type_


def _countable(value: Shape, *, distinct: bool) -> _TypedTerm:
    if isinstance(value, CellShape):
        return _TypedTerm(value.term, "boolean" if value.type == "null" else value.type)
    if distinct:
        raise UntranslatableExpression("count of distinct objects or arrays")
    flag: TruthTerm = unknown_of(value)
    return _TypedTerm(call("if", term_of(flag), LiteralTerm(None, "boolean"), TRUE), "boolean")


def _filter_value(value: _TypedTerm, term: Term | None) -> Term:
    return value.term if term is None else call("if", term, value.term, LiteralTerm(None, value.type))  # type: ignore[arg-type]


def _count_shape(number: int) -> Shape:
    return CellShape(ColumnTerm(number), "bigint", known=True)
