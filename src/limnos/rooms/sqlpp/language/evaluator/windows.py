# SPDX-License-Identifier: Apache-2.0
"""Window functions: a value for each row that depends on neighboring rows.

Must not know clauses. Rows are partitioned and ordered within their partition. Each function writes a value for each
row to a separate slot. The order of the result's rows does not change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import dropwhile, takewhile

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.errors import SqlppError, compilation
from limnos.rooms.sqlpp.language.evaluator.context import EvaluationContext, Key, Row
from limnos.rooms.sqlpp.language.evaluator.expressions import aggregate_of, compile_expression, compile_expressions
from limnos.rooms.sqlpp.language.evaluator.running import RunningAggregate
from limnos.rooms.sqlpp.language.functions.costs import COMPARED_EACH
from limnos.rooms.sqlpp.language.functions.numbers import number, to_integer
from limnos.rooms.sqlpp.language.functions.table import AggregateFold
from limnos.rooms.sqlpp.language.functions.times import shift_time
from limnos.rooms.sqlpp.language.plan.queries import Frame, FrameBound
from limnos.rooms.sqlpp.language.values import arithmetic, comparison
from limnos.rooms.sqlpp.language.values.model import Value, is_unknown


class WindowPartition:
    """The rows of one partition in the window's order, with the index range of each row's peers, and the start of each
    peer group.
    """

    __slots__ = ("begins", "ends", "groups", "rows")

    def __init__(self, rows: list[Row], places: list[Key] | None) -> None:
        self.rows = rows
        size = len(rows)
        self.begins, self.ends = [0] * size, [size] * size
        self.groups = [0] if size else []
        if places is None:
            return
        for at in range(size):
            self.begins[at] = self.begins[at - 1] if at and places[at] == places[at - 1] else at
        for at in range(size - 2, -1, -1):
            self.ends[at] = self.ends[at + 1] if places[at] == places[at + 1] else at + 1
        self.groups = list(dict.fromkeys(self.begins))


def windows_of(
    calls: tuple[plan.WindowCall, ...],
    working: EvaluationContext,
    *,
    ordering: Callable[[tuple[plan.Order, ...], EvaluationContext], Callable[[Row], Key] | None],
) -> Callable[[Iterable[Row]], list[Row]] | None:
    """Compile the window functions of a block to a function that fills their slots in all rows; None if there are none.

    `ordering` compiles an ORDER BY.
    """
    if not calls:
        return None
    filled = [_window_filler(call, working, ordering=ordering) for call in calls]

    def run(rows: Iterable[Row]) -> list[Row]:
        outer = []
        for row in rows:
            working.budget.keep()
            outer.append(row)
        for fill in filled:
            fill(outer)
        return outer

    return run


def _window_filler(
    call: plan.WindowCall,
    working: EvaluationContext,
    *,
    ordering: Callable[[tuple[plan.Order, ...], EvaluationContext], Callable[[Row], Key] | None],
) -> Callable[[list[Row]], None]:
    partition = compile_expressions(call.partition, working)
    order = ordering(call.order, working)
    values = _values_of(call, working)

    def fill(rows: list[Row]) -> None:
        parts: dict[bytes, list[Row]] = {}
        for row in rows:
            parts.setdefault(b"".join(working.key(work(row)) for work in partition), []).append(row)
        for part in parts.values():
            places = None
            if order is not None:
                keyed_rows = sorted(((order(row), row) for row in part), key=lambda one: one[0])
                places, part[:] = [place for place, _ in keyed_rows], [row for _, row in keyed_rows]
            for row, value in zip(part, values(WindowPartition(part, places)), strict=True):
                row[call.slot] = value

    return fill


def _values_of(call: plan.WindowCall, working: EvaluationContext) -> Callable[[WindowPartition], list[Value]]:
    """Compile a window function to a function that computes its value for each row of a partition."""
    name = call.function.name
    if call.function.kind == "aggregate":
        fold = call.function.fold
        has_all_rows = call.frame is None or call.frame.exclude == "no others"
        if fold is not None and has_all_rows and not call.distinct and working.meter is None:
            return _running_values(call, fold, working=working)
        argument = compile_expression(call.arguments[0], working) if call.arguments else None
        over = aggregate_of(call, argument, working=working)
        return _frame_values(call, working, value=lambda rows, _: over(rows))
    arguments = compile_expressions(call.arguments, working)
    if name in _BY_PLACE:
        return _BY_PLACE[name]
    if name == "ntile":
        return _ntile(arguments[0])
    if name in ("lag", "lead"):
        return _neighbor_values(call, arguments, side=1 if name == "lead" else -1)
    if name == "ratio_to_report":
        return _frame_values(call, working, value=_ratio(arguments[0]))
    return _frame_values(call, working, value=_select_row(call, arguments))


def _dense(part: WindowPartition) -> list[Value]:
    elements: list[Value] = []
    rank = 0
    for at, begin in enumerate(part.begins):
        rank += at == begin
        elements.append(rank)
    return elements


TYPE_MISMATCH = 2
_BY_PLACE: dict[str, Callable[[WindowPartition], list[Value]]] = {
    "row_number": lambda part: [at + 1 for at in range(len(part.rows))],
    "rank": lambda part: [at + 1 for at in part.begins],
    "dense_rank": _dense,
    "percent_rank": lambda part: [at / (len(part.rows) - 1) if len(part.rows) > 1 else 0.0 for at in part.begins],
    "cume_dist": lambda part: [end / len(part.rows) for end in part.ends],
}


def _ntile(count: Callable[[Row], Value]) -> Callable[[WindowPartition], list[Value]]:
    def values(part: WindowPartition) -> list[Value]:
        value = count(part.rows[0])
        if is_unknown(value):
            return [None] * len(part.rows)
        tiles = to_integer(value)
        if tiles is None or tiles < 1:
            raise SqlppError(TYPE_MISMATCH, "Type mismatch: ntile needs a whole number of at least 1")
        size, rest = divmod(len(part.rows), tiles)
        edge = rest * (size + 1)
        return [at // (size + 1) + 1 if at < edge else (at - edge) // size + rest + 1 for at in range(len(part.rows))]

    return values


def _neighbor_values(
    call: plan.WindowCall, arguments: list[Callable[[Row], Value]], *, side: int
) -> Callable[[WindowPartition], list[Value]]:
    def values(part: WindowPartition) -> list[Value]:
        elements: list[Value] = []
        for at, row in enumerate(part.rows):
            by = 1 if len(arguments) < 2 else to_integer(arguments[1](row))
            if by is None or by < 0:
                raise compilation("lag and lead need a whole number of rows")
            at_distance = _at_distance(part, arguments[0], at=at, side=side, by=by, ignore=call.ignore_nulls)
            elements.append(at_distance[0] if at_distance else arguments[2](row) if len(arguments) > 2 else None)
        return elements

    return values


def _at_distance(
    part: WindowPartition, work: Callable[[Row], Value], *, at: int, side: int, by: int, ignore: bool
) -> tuple[Value, ...]:
    """Return the value of the row that is `by` rows away, in a tuple; an empty tuple beyond the end of the partition.

    `side` is 1 for later rows, -1 for earlier ones. With `ignore`, rows with NULL or MISSING are not counted.
    """
    if not ignore:
        target = at + side * by
        return (work(part.rows[target]),) if 0 <= target < len(part.rows) else ()
    target = at
    while by:
        target += side
        if not 0 <= target < len(part.rows):
            return ()
        by -= not is_unknown(work(part.rows[target]))
    return (work(part.rows[target]),)


def _ratio(work: Callable[[Row], Value]) -> Callable[[list[Row], Row], Value]:
    """Compile ratio_to_report: the row's value divided by the sum over its frame."""

    def ratio(rows: list[Row], row: Row) -> Value:
        value = number(work(row))
        total = sum(result for one in rows if (result := number(work(one))) is not None)
        return None if value is None or not total else value / total

    return ratio


def _select_row(call: plan.WindowCall, arguments: list[Callable[[Row], Value]]) -> Callable[[list[Row], Row], Value]:
    """Compile first_value, last_value or nth_value: the value of one of the frame's rows."""
    name, value_of = call.function.name, arguments[0]

    def choose(rows: list[Row], row: Row) -> Value:
        elements = rows
        if call.ignore_nulls:
            elements = [one for one in rows if not is_unknown(value_of(one))]
        at = {"first_value": 0, "last_value": -1}.get(name)
        if at is None:
            nth = to_integer(arguments[1](row))
            if nth is None:
                raise SqlppError(TYPE_MISMATCH, "Type mismatch: nth_value takes a whole number")
            if nth < 1:
                return None
            at = -nth if call.from_last else nth - 1
        return value_of(elements[at]) if -len(elements) <= at < len(elements) else None

    return choose


# Frames.


def _frame_values(
    call: plan.WindowCall, working: EvaluationContext, *, value: Callable[[list[Row], Row], Value]
) -> Callable[[WindowPartition], list[Value]]:
    frames = _frames_of(call, working)

    def values(part: WindowPartition) -> list[Value]:
        elements: list[Value] = []
        for at, (begin, end) in enumerate(frames(part)):
            working.budget.work(end - begin)
            elements.append(value(_rows_without_excluded(part, call.frame, at=at, begin=begin, end=end), part.rows[at]))
        return elements

    return values


def _running_values(
    call: plan.WindowCall, fold: AggregateFold, *, working: EvaluationContext
) -> Callable[[WindowPartition], list[Value]]:
    frames = _frames_of(call, working)

    def values(part: WindowPartition) -> list[Value]:
        running = RunningAggregate(call, fold, rows=part.rows, working=working)
        return [running.over(begin, end) for begin, end in frames(part)]

    return values


def _frames_of(
    call: plan.WindowCall, working: EvaluationContext
) -> Callable[[WindowPartition], Iterator[tuple[int, int]]]:
    """Compile a frame to a function that yields the index range of each row's frame, before EXCLUDE: `begin <= end`."""
    edges = None if call.frame is None else _edges_of(call.frame, call, working=working)
    by_value = call.frame is not None and call.frame.mode == "range"

    def frames(part: WindowPartition) -> Iterator[tuple[int, int]]:
        size = len(part.rows)
        for at in range(size):
            working.budget.step()
            if working.meter is not None:  # the cost of finding and copying the row's frame
                working.meter.spend(size * (COMPARED_EACH * 2 if by_value else 1))
            begin, end = (0, part.ends[at]) if edges is None else edges(part, at)
            begin = max(0, begin)
            yield begin, max(begin, min(size, end))

    return frames


def _rows_without_excluded(part: WindowPartition, frame: Frame | None, *, at: int, begin: int, end: int) -> list[Row]:
    """Return the rows of a frame from `begin` to `end` without the rows that EXCLUDE removes."""
    if frame is None or frame.exclude == "no others":
        return part.rows[begin:end]
    if frame.exclude == "current row":
        left_out = {at}
    else:
        left_out = set(range(part.begins[at], part.ends[at]))
        if frame.exclude == "ties":
            left_out.discard(at)
    return [part.rows[one] for one in range(begin, end) if one not in left_out]


def _edges_of(
    frame: Frame, call: plan.WindowCall, *, working: EvaluationContext
) -> Callable[[WindowPartition, int], tuple[int, int]]:
    start, end = _compile_bound(frame.start, working), _compile_bound(frame.end, working)
    if frame.mode == "range" and any(bound.value is not None for bound in (frame.start, frame.end)):
        return _range_edges(frame, call, working=working)

    def edges(part: WindowPartition, at: int) -> tuple[int, int]:
        row = part.rows[at]
        if frame.mode == "rows":
            return start(row, (at, 0)), end(row, (at, len(part.rows) - 1)) + 1
        groups = part.groups
        mine = bisect_left(groups, part.begins[at])
        if frame.mode == "range":
            mine_start = (
                0 if frame.start.side == "preceding" else mine if frame.start.side == "current row" else len(groups)
            )
            mine_end = (
                len(groups) - 1 if frame.end.side == "following" else mine if frame.end.side == "current row" else -1
            )
        else:
            mine_start, mine_end = start(row, (mine, 0)), end(row, (mine, len(groups) - 1))
        bounds = [*groups, len(part.rows)]
        first = bounds[min(max(mine_start, 0), len(groups))]
        last = bounds[min(mine_end + 1, len(groups))] if mine_end >= 0 else 0
        return first, last

    return edges


def _compile_bound(bound: FrameBound, working: EvaluationContext) -> Callable[[Row, tuple[int, int]], int]:
    """Compile a frame bound to a function that returns an index.

    Its arguments are a row, and a pair: the row's index, and the index of an unbounded frame on this side.
    """
    work = None if bound.value is None else compile_expression(bound.value, working)

    def edge(row: Row, here: tuple[int, int]) -> int:
        at, limit = here
        if bound.side == "current row":
            return at
        if work is None:
            return limit
        by = to_integer(work(row))
        if by is None or by < 0:
            raise compilation("A frame's bound must be a non-negative whole number of rows")
        return at - by if bound.side == "preceding" else at + by

    return edge


def _range_edges(
    frame: Frame, call: plan.WindowCall, *, working: EvaluationContext
) -> Callable[[WindowPartition, int], tuple[int, int]]:
    """Compile a RANGE frame with a distance to a function that returns its edges.

    The frame has the rows whose ORDER BY value is within the distance. Raises SqlppError unless ORDER BY has one
    expression.
    """
    if len(call.order) != 1:
        raise compilation("RANGE with a distance needs one expression in ORDER BY", frame.at)
    of_row, descending = compile_expression(call.order[0].value, working), call.order[0].descending
    distances = [
        None if bound.value is None else compile_expression(bound.value, working) for bound in (frame.start, frame.end)
    ]

    def target(bound: FrameBound, distance: Callable[[Row], Value] | None, *, row: Row) -> Value:
        value = of_row(row)
        if distance is None:
            return value
        later = (bound.side == "following") is not descending
        by = distance(row)
        moved = arithmetic.add(value, by) if later else arithmetic.subtract(value, by)
        return shift_time(value, by, sign=1 if later else -1) if moved is None else moved

    last: tuple[WindowPartition, _OrderedValues] | None = None

    def edges(part: WindowPartition, at: int) -> tuple[int, int]:
        nonlocal last
        if last is None or last[0] is not part:
            last = part, _OrderedValues([of_row(row) for row in part.rows], descending=descending, working=working)
        values, row = last[1], part.rows[at]
        begin, end = 0, len(part.rows)
        if is_unknown(values.values[at]):  # no value has a distance to it: the bounds are those of CURRENT ROW
            return (
                begin if _is_unbounded(frame.start) else part.begins[at],
                end if _is_unbounded(frame.end) else part.ends[at],
            )
        if not _is_unbounded(frame.start):
            low = target(frame.start, distances[0], row=row)
            if is_unknown(low):
                return 0, 0
            begin = values.begin_at(low)
        if not _is_unbounded(frame.end):
            high = target(frame.end, distances[1], row=row)
            if is_unknown(high):
                return 0, 0
            end = values.end_at(high)
        return begin, max(begin, end)

    return edges


class _OrderedValues:
    """The sorted ORDER BY values of a partition's rows. NULL and MISSING are first or last."""

    def __init__(self, values: list[Value], *, descending: bool, working: EvaluationContext) -> None:
        self.values = values
        self._descending = descending
        self._working = working
        self._first = sum(1 for _ in takewhile(is_unknown, values))
        known_values = list(dropwhile(is_unknown, values))
        while known_values and is_unknown(known_values[-1]):
            known_values.pop()
        self._last = self._first + len(known_values)
        keys = [working.key(value) for value in known_values]
        self._keys = keys[::-1] if descending else keys

    def begin_at(self, low: Value) -> int:
        """Return the index of the first value at or after `low` in the order; the end of the values other than NULL and
        MISSING if there is none.
        """
        key = self._working.key(low)
        if self._descending:
            at = self._last - bisect_right(self._keys, key)
        else:
            at = self._first + bisect_left(self._keys, key)
        is_met = at < self._last and _has_reached(self.values[at], low, descending=self._descending)
        return at if is_met else self._last

    def end_at(self, high: Value) -> int:
        """Return the index after the last value at or before `high` in the order; the start of the values other than
        NULL and MISSING if there is none.
        """
        key = self._working.key(high)
        if self._descending:
            at = self._last - bisect_left(self._keys, key)
        else:
            at = self._first + bisect_right(self._keys, key)
        is_met = at > self._first and _has_reached(high, self.values[at - 1], descending=self._descending)
        return at if is_met else self._first


def _is_unbounded(bound: FrameBound) -> bool:
    return bound.value is None and bound.side != "current row"


def _has_reached(later: Value, earlier: Value, *, descending: bool) -> bool:
    """Return whether `later` is equal to `earlier` or comes after it in the order."""
    pair = (later, earlier) if descending else (earlier, later)
    return comparison.less_or_equal(*pair) is True
