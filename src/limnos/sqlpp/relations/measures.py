"""Aggregates as measures of groups.

May import plans and the sibling modules. Must not know where groups come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.sqlpp import plan
from limnos.sqlpp.relations.expressions import condition, shape
from limnos.sqlpp.relations.functions import KINDS, result_type
from limnos.sqlpp.relations.nodes import Measure
from limnos.sqlpp.relations.operators import cell
from limnos.sqlpp.relations.shapes import Cell, Shape, Uncarried, unknown_of
from limnos.sqlpp.relations.terms import FALSE, TRUE, Column, Flag, Literal, Term, call, term_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.sqlpp.relations.carrier import Carrier

Found = "Callable[[int], Shape]"


def measured(node: plan.Aggregate, carrier: Carrier) -> tuple[Measure, Callable[[int], Shape]]:
    """An aggregate over the rows of a group, and its shape once its column has a number."""
    kept = None if node.filter is None else call("coalesce", condition(node.filter, carrier), FALSE)
    if node.argument is None:
        term = None if kept is None else call("if", kept, TRUE, Literal(None, "boolean"))
        return Measure(carrier.new(), "count", term), _counted
    return over(node.function.name, shape(node.argument, carrier), distinct=node.distinct, kept=kept, carrier=carrier)


def over(
    function: str, value: Shape, *, distinct: bool, kept: Term | None, carrier: Carrier
) -> tuple[Measure, Callable[[int], Shape]]:
    """An aggregate of a shape's known values, among them those of rows that are `kept`."""
    if function == "count":
        return Measure(
            carrier.new(), "count", _filtered(_countable(value, distinct=distinct), kept), distinct
        ), _counted
    one = cell(value)
    if function not in KINDS or one.type not in KINDS[function]:
        raise Uncarried(f"{function} of values of type {one.type}")
    if distinct and function not in ("sum", "avg", "min", "max"):
        raise Uncarried(f"{function} of distinct values")
    type_ = result_type(function, one.type)
    found = Measure(carrier.new(), function, _filtered(_Typed(one.term, one.type), kept), distinct)

    def made(number: int) -> Shape:
        return Cell(Column(number), type_, missing=False)

    return found, made


class _Typed:
    """A term and its type."""

    def __init__(self, term: Term, type_: str) -> None:
        self.term = term
        self.type = type_


def _countable(value: Shape, *, distinct: bool) -> _Typed:
    if isinstance(value, Cell):
        return _Typed(value.term, "boolean" if value.type == "null" else value.type)
    if distinct:
        raise Uncarried("count of distinct objects or arrays")
    flag: Flag = unknown_of(value)
    return _Typed(call("if", term_of(flag), Literal(None, "boolean"), TRUE), "boolean")


def _filtered(value: _Typed, kept: Term | None) -> Term:
    return value.term if kept is None else call("if", kept, value.term, Literal(None, value.type))  # type: ignore[arg-type]


def _counted(number: int) -> Shape:
    return Cell(Column(number), "bigint", known=True)
