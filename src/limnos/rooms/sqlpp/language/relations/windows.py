# SPDX-License-Identifier: Apache-2.0
"""Translates window functions over typed columns.

Must not know clauses. Ranking functions and aggregates over ROWS frames are translated. EXCLUDE and frames by value or
groups are left to the evaluator.
"""

from __future__ import annotations

from typing import Final

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.plan.queries import Frame, FrameBound
from limnos.rooms.sqlpp.language.relations import operators
from limnos.rooms.sqlpp.language.relations.expressions import fold_constant, shape
from limnos.rooms.sqlpp.language.relations.functions import KINDS, result_type
from limnos.rooms.sqlpp.language.relations.nodes import Window, WindowColumn
from limnos.rooms.sqlpp.language.relations.orders import order_terms_of
from limnos.rooms.sqlpp.language.relations.shapes import CellShape, Shape, UntranslatableExpression, missing_of
from limnos.rooms.sqlpp.language.relations.terms import ColumnTerm, Term
from limnos.rooms.sqlpp.language.relations.translator import BlockTranslator

_PLACES: Final = {
    "row_number": "bigint",
    "rank": "bigint",
    "dense_rank": "bigint",
    "percent_rank": "double",
    "cume_dist": "double",
}
_DISTANCE_MAX = 1 << 20


def add_windows(calls: tuple[plan.WindowCall, ...], carrier: BlockTranslator) -> None:
    """Translate window functions, and add their values to the rows as columns.

    Raises UntranslatableExpression.
    """
    columns, shapes = [], {}
    for node in calls:
        one, result = _call(node, carrier)
        columns.append(one)
        shapes[node.slot] = result
    carrier.rows = Window(carrier.relation, tuple(columns))
    carrier.known.shapes.update(shapes)


def _call(node: plan.WindowCall, carrier: BlockTranslator) -> tuple[WindowColumn, Shape]:
    if node.distinct or node.filter is not None or node.from_last or node.ignore_nulls:
        raise UntranslatableExpression("a window function with DISTINCT, FILTER, FROM LAST or IGNORE NULLS")
    partition = tuple(term for each in node.partition for term in _partition_terms(each, carrier))
    order = order_terms_of(node.order, carrier)
    name, number = node.function.name, carrier.new()
    if name in _PLACES:
        if not order:
            raise UntranslatableExpression(f"{name} without ORDER BY")
        cell = CellShape(ColumnTerm(number), _PLACES[name], known=True)  # type: ignore[arg-type]
        return WindowColumn(id=number, function=name, arguments=(), partition=partition, order=order, rows=None), cell
    if node.function.kind != "aggregate":
        raise UntranslatableExpression(f"the window function {name}")
    arguments, type_ = _measure_window(node, carrier)
    rows = None if node.frame is None else _rows(node.frame)
    is_known = name == "count"
    cell = CellShape(ColumnTerm(number), type_, known=is_known)  # type: ignore[arg-type]
    return WindowColumn(
        id=number, function=name, arguments=arguments, partition=partition, order=order, rows=rows
    ), cell


def _measure_window(node: plan.WindowCall, carrier: BlockTranslator) -> tuple[tuple[Term, ...], str]:
    name = node.function.name
    if not node.arguments:
        return (), "bigint"
    value = operators.cell(shape(node.arguments[0], carrier))
    if name == "count":
        return (operators.typed_term(value, "boolean"),), "bigint"
    if value.type not in KINDS.get(name, ()):
        raise UntranslatableExpression(f"{name} of values of type {value.type}")
    return (value.term,), result_type(name, value.type)


def _partition_terms(node: plan.Expression, carrier: BlockTranslator) -> tuple[Term, ...]:
    """Return the terms of a partition key, with a flag that distinguishes MISSING from NULL."""
    value = operators.cell(shape(node, carrier))
    flag = missing_of(value)
    return (operators.typed_term(value, "boolean"), *(() if isinstance(flag, bool) else (flag,)))


def _rows(frame: Frame) -> tuple[int | None, int | None] | None:
    """Return the bounds of a ROWS frame as row offsets; None for the default frame.

    Raises UntranslatableExpression for other frames.
    """
    if frame.exclude != "no others":
        raise UntranslatableExpression("EXCLUDE in a window")
    is_unbounded = frame.start.value is None and frame.end.value is None
    if frame.mode == "range" and is_unbounded and (frame.start.side, frame.end.side) == ("preceding", "current row"):
        return None
    if frame.mode != "rows":
        raise UntranslatableExpression("a window's frame by value or by groups")
    return _edge(frame.start), _edge(frame.end)


def _edge(bound: FrameBound) -> int | None:
    if bound.side == "current row":
        return 0
    if bound.value is None:
        return None
    constant = bound.value if isinstance(bound.value, plan.Constant) else fold_constant(bound.value)
    if constant is None or type(constant.value) is not int or not 0 <= constant.value < _DISTANCE_MAX:
        raise UntranslatableExpression("a window's frame whose bound is not constant")
    return -constant.value if bound.side == "preceding" else constant.value
