"""Window functions over typed columns.

May import plans and the sibling modules. Must not know clauses. Places of rows and aggregates over frames of rows are carried; what is left out of a frame, and frames by value, are the evaluator's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from limnos.sqlpp import plan
from limnos.sqlpp.relations import operators
from limnos.sqlpp.relations.expressions import folded, shape
from limnos.sqlpp.relations.functions import KINDS, result_type
from limnos.sqlpp.relations.nodes import Window, Windowed
from limnos.sqlpp.relations.orders import places_of
from limnos.sqlpp.relations.shapes import Cell, Shape, Uncarried, missing_of
from limnos.sqlpp.relations.terms import Column, Term

if TYPE_CHECKING:
    from limnos.sqlpp.plan.queries import Frame, FrameBound
    from limnos.sqlpp.relations.carrier import Carrier

_PLACES: Final = {
    "row_number": "bigint",
    "rank": "bigint",
    "dense_rank": "bigint",
    "percent_rank": "double",
    "cume_dist": "double",
}
_DISTANCE_MAX = 1 << 20


def windowed(calls: tuple[plan.WindowCall, ...], carrier: Carrier) -> None:
    """Add the values of window functions to the rows."""
    made, shapes = [], {}
    for node in calls:
        one, found = _call(node, carrier)
        made.append(one)
        shapes[node.slot] = found
    carrier.rows = Window(carrier.relation, tuple(made))
    carrier.known.shapes.update(shapes)


def _call(node: plan.WindowCall, carrier: Carrier) -> tuple[Windowed, Shape]:
    if node.distinct or node.filter is not None or node.from_last or node.ignore_nulls:
        raise Uncarried("a window function with DISTINCT, FILTER, FROM LAST or IGNORE NULLS")
    partition = tuple(term for each in node.partition for term in _grouped(each, carrier))
    order = places_of(node.order, carrier)
    name, number = node.function.name, carrier.new()
    if name in _PLACES:
        if not order:
            raise Uncarried(f"{name} without ORDER BY")
        cell = Cell(Column(number), _PLACES[name], known=True)  # type: ignore[arg-type]
        return Windowed(number, name, (), partition, order, None), cell
    if node.function.kind != "aggregate":
        raise Uncarried(f"the window function {name}")
    arguments, type_ = _measured(node, carrier)
    rows = None if node.frame is None else _rows(node.frame)
    known = name == "count"
    cell = Cell(Column(number), type_, known=known)  # type: ignore[arg-type]
    return Windowed(number, name, arguments, partition, order, rows), cell


def _measured(node: plan.WindowCall, carrier: Carrier) -> tuple[tuple[Term, ...], str]:
    name = node.function.name
    if not node.arguments:
        return (), "bigint"
    value = operators.cell(shape(node.arguments[0], carrier))
    if name == "count":
        return (operators.typed(value, "boolean"),), "bigint"
    if value.type not in KINDS.get(name, ()):
        raise Uncarried(f"{name} of values of type {value.type}")
    return (value.term,), result_type(name, value.type)


def _grouped(node: plan.Expression, carrier: Carrier) -> tuple[Term, ...]:
    """A key of partitions: MISSING is not NULL there."""
    value = operators.cell(shape(node, carrier))
    flag = missing_of(value)
    return (operators.typed(value, "boolean"), *(() if isinstance(flag, bool) else (flag,)))


def _rows(frame: Frame) -> tuple[int | None, int | None] | None:
    """The edges of a frame of rows; None for the frame that is there without being written."""
    if frame.exclude != "no others":
        raise Uncarried("EXCLUDE in a window")
    plain = frame.start.value is None and frame.end.value is None
    if frame.mode == "range" and plain and (frame.start.side, frame.end.side) == ("preceding", "current row"):
        return None
    if frame.mode != "rows":
        raise Uncarried("a window's frame by value or by groups")
    return _edge(frame.start), _edge(frame.end)


def _edge(bound: FrameBound) -> int | None:
    if bound.side == "current row":
        return 0
    if bound.value is None:
        return None
    known = bound.value if isinstance(bound.value, plan.Constant) else folded(bound.value)
    if known is None or type(known.value) is not int or not 0 <= known.value < _DISTANCE_MAX:
        raise Uncarried("a window's frame whose edge is not known")
    return -known.value if bound.side == "preceding" else known.value
