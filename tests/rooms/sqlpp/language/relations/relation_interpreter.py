# SPDX-License-Identifier: Apache-2.0
"""An interpreter of relations in plain Python with Spark's semantics: NULL in three-valued logic, joins by nested
loops.

Tests compare the rewriting with it, without an engine.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from limnos.rooms.sqlpp.language.functions.table import FUNCTIONS
from limnos.rooms.sqlpp.language.functions.times import civil
from limnos.rooms.sqlpp.language.relations import RelationalQuery
from limnos.rooms.sqlpp.language.relations.nodes import (
    DatasetRead,
    Extension,
    Filter,
    Join,
    Measure,
    OrderTerm,
    Relation,
    RowGrouping,
    RowLimit,
    Sort,
    Union,
    Unnest,
    Window,
    WindowColumn,
    outputs,
)
from limnos.rooms.sqlpp.language.relations.terms import CallTerm, ColumnTerm, LambdaTerm, LiteralTerm, Term
from limnos.rooms.sqlpp.language.stored import read_open_part
from limnos.rooms.sqlpp.language.stored.rows import _PLAINS
from limnos.rooms.sqlpp.language.values.model import type_name
from limnos.rooms.sqlpp.language.values.text import like

Held: TypeAlias = Any
"""A column's value, whose type only its term knows."""
Row = dict[int, Held]
Tables = Callable[[tuple[str, ...], str], list[dict[str, Held]]]


class Overflow(Exception):
    """An integer overflow."""


def worked_out(carried: RelationalQuery, tables: Tables) -> Iterator[Held]:
    """Return the results of a query, from the rows of its datasets as `stored` has them."""
    layout = carried.layout
    yield from layout.values([term(one, row) for one, _ in layout.columns] for row in _rows(carried.relation, tables))


def _rows(node: Relation, tables: Tables) -> list[Row]:
    match node:
        case DatasetRead():
            return [{n: row.get(name) for n, name in node.columns} for row in tables(node.dataverse, node.name)]
        case Filter():
            return [row for row in _rows(node.source, tables) if term(node.condition, row) is True]
        case Extension():
            return [{**row, **{n: term(t, row) for n, t in node.columns}} for row in _rows(node.source, tables)]
        case Join():
            return _joined(node, _rows(node.left, tables), _rows(node.right, tables))
        case RowGrouping():
            return _gathered(node, _rows(node.source, tables))
        case Unnest():
            return list(_unnested(node, _rows(node.source, tables)))
        case Window():
            return _windowed(node, _rows(node.source, tables))
        case Sort():
            return _sorted(_rows(node.source, tables), node.places)
        case RowLimit():
            end = None if node.limit is None else node.offset + node.limit
            return _rows(node.source, tables)[node.offset : end]
        case Union():
            return [
                {number: row[own] for own, number in zip(columns, node.columns, strict=True)}
                for arm, columns in node.arms
                for row in _rows(arm, tables)
            ]


def _joined(node: Join, left: list[Row], right: list[Row]) -> list[Row]:
    def fits(one: Row, other: Row) -> bool:
        return node.condition is None or term(node.condition, {**one, **other}) is True

    if node.kind in ("semi", "anti"):
        return [one for one in left if any(fits(one, other) for other in right) is (node.kind == "semi")]
    joined_rows = [{**one, **other} for one in left for other in right if fits(one, other)]
    if node.kind == "left":
        empty = dict.fromkeys(outputs(node.right))
        joined_rows += [{**one, **empty} for one in left if not any(fits(one, other) for other in right)]
    if node.kind == "right":
        empty = dict.fromkeys(outputs(node.left))
        joined_rows += [{**empty, **other} for other in right if not any(fits(one, other) for one in left)]
    return joined_rows


def _gathered(node: RowGrouping, rows: list[Row]) -> list[Row]:
    groups: dict[Held, tuple[Row, list[Row]]] = {}
    if not node.keys:
        groups[()] = ({}, [])
    for row in rows:
        keys = {number: term(one, row) for number, one in node.keys}
        groups.setdefault(tuple(map(_place, keys.values())), (keys, []))[1].append(row)
    return [
        {**keys, **{one.id: _measure(one, group_rows) for one in node.measures}} for keys, group_rows in groups.values()
    ]


def _measure(one: Measure, rows: list[Row]) -> Held:
    return _aggregate(
        one.function, [1 if one.term is None else term(one.term, row) for row in rows], distinct=one.distinct
    )


def _aggregate(function: str, values: list[Held], *, distinct: bool = False) -> Held:
    if function == "first":
        return values[0] if values else None
    known_values = [value for value in values if value is not None]
    if distinct:
        known_values = list({_place(value): value for value in known_values}.values())
    if function == "count":
        return len(known_values)
    if not known_values:
        return None
    match function:
        case "sum":
            return math.fsum(known_values) if isinstance(known_values[0], float) else _fits(sum(known_values))
        case "avg":
            return math.fsum(map(float, known_values)) / len(known_values)
        case "min" | "max":
            return (min if function == "min" else max)(known_values, key=_place)
        case "stddev_samp":
            return statistics.stdev(known_values) if len(known_values) > 1 else None
        case "stddev_pop":
            return statistics.pstdev(known_values)
        case "var_samp":
            return statistics.variance(known_values) if len(known_values) > 1 else None
        case "var_pop":
            return statistics.pvariance(known_values)
    raise NotImplementedError(function)


def _unnested(node: Unnest, rows: list[Row]) -> Iterator[Row]:
    for row in rows:
        items = term(node.array, row) or ()
        for at, item in enumerate(items):
            yield {**row, node.item: item, node.place: at}
        if node.outer and not items:
            yield {**row, node.item: None, node.place: None}


def _windowed(node: Window, rows: list[Row]) -> list[Row]:
    windowed_rows = [dict(row) for row in rows]
    for call in node.calls:
        parts: dict[Held, list[Row]] = {}
        for row in windowed_rows:
            parts.setdefault(tuple(_place(term(one, row)) for one in call.partition), []).append(row)
        for part in parts.values():
            sorted_rows = _sorted(part, call.order)
            places = [_order(row, call.order) for row in sorted_rows]
            for at, row in enumerate(sorted_rows):
                row[call.id] = _over(call, sorted_rows, places, at=at)
    return windowed_rows


def _over(call: WindowColumn, rows: list[Row], places: list[Held], *, at: int) -> Held:
    first = places.index(places[at])
    last = len(places) - places[::-1].index(places[at])
    size = len(rows)
    match call.function:
        case "row_number":
            return at + 1
        case "rank":
            return first + 1
        case "dense_rank":
            return len({str(place) for place in places[: at + 1]})
        case "percent_rank":
            return first / (size - 1) if size > 1 else 0.0
        case "cume_dist":
            return last / size
    frame = rows[: last if call.order else size]
    if call.rows is not None:
        low, high = call.rows
        frame = rows[0 if low is None else max(0, at + low) : size if high is None else max(0, at + high + 1)]
    return _aggregate(call.function, [term(call.arguments[0], row) if call.arguments else 1 for row in frame])


def _sorted(rows: list[Row], places: tuple[OrderTerm, ...]) -> list[Row]:
    sorted_rows = list(rows)
    for place in reversed(places):
        sorted_rows.sort(key=lambda row: _order(row, (place,)))
    return sorted_rows


class _ReversedKey:
    """A key with the reverse order."""

    def __init__(self, place: Held) -> None:
        self.place = place

    def __lt__(self, other: _ReversedKey) -> bool:
        return bool(other.place < self.place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ReversedKey) and self.place == other.place

    def __hash__(self) -> int:
        return hash(self.place)

    def __str__(self) -> str:
        return f"-{self.place}"


def _order(row: Row, places: tuple[OrderTerm, ...]) -> list[Held]:
    sort_keys: list[Held] = []
    for place in places:
        value = term(place.term, row)
        aside = 0 if value is not None else -1 if place.nulls_first else 1
        sort_key = _place(value)
        sort_keys.append((aside, _ReversedKey(sort_key) if place.descending and value is not None else sort_key))
    return sort_keys


def _place(value: Held) -> Held:
    """Return the key by which a value is compared, grouped and ordered: NaN equals itself and is greater than all."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2, 0.0) if math.isnan(value) else (1, value)
    return (1, value)


# Terms.


def term(one: Term, row: Row) -> Held:
    """Return a term's value in a row."""
    match one:
        case ColumnTerm():
            return row[one.id]
        case LiteralTerm():
            if one.value is None:
                return None
            return _PLAINS.get(type_name(one.value), lambda value: value)(one.value)  # type: ignore[arg-type]
        case CallTerm():
            return _called(one, row)
    raise NotImplementedError(one)


def _called(one: CallTerm, row: Row) -> Held:
    if one.name == "exists":
        return _exists(one, row)
    if one.name == "if":
        return term(one.arguments[1 if term(one.arguments[0], row) is True else 2], row)
    values = [term(each, row) for each in one.arguments]
    if one.name in _LENIENT:
        return _LENIENT[one.name](one, *values)
    return None if any(value is None for value in values) else _STRICT[one.name](one, *values)


def _exists(one: CallTerm, row: Row) -> Held:
    items, body = term(one.arguments[0], row), one.arguments[1]
    if items is None or not isinstance(body, LambdaTerm):
        return None
    outcomes = [term(body.body, {**row, body.item: item}) for item in items]
    return True if True in outcomes else None if None in outcomes else False


def _and(_: CallTerm, *values: Held) -> Held:
    return False if False in values else None if None in values else True


def _or(_: CallTerm, *values: Held) -> Held:
    return True if True in values else None if None in values else False


def _said_null(_: CallTerm, opened: Held, name: Held) -> Held:
    open_fields = {} if opened is None else read_open_part(opened)
    return name in open_fields and open_fields[name] is None


_LENIENT: Mapping[str, Callable[..., Held]] = {
    "isnan": lambda _, value: isinstance(value, float) and math.isnan(value),
    "and": _and,
    "or": _or,
    "is_null": lambda _, value: value is None,
    "coalesce": lambda _, *values: next((value for value in values if value is not None), None),
    "said_null": _said_null,
    "greatest": lambda _, *values: max((v for v in values if v is not None), key=_place, default=None),
    "least": lambda _, *values: min((v for v in values if v is not None), key=_place, default=None),
}


def _fits(value: int, bits: int = 64) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise Overflow(value)
    return value


def _worked(name: str) -> Callable[..., Held]:
    work = {"+": operator.add, "-": operator.sub, "*": operator.mul}[name]

    def run(_: CallTerm, left: Held, right: Held) -> Held:
        result = work(left, right)
        return result if isinstance(result, float) else _fits(result)

    return run


def _cast(one: CallTerm, value: Held) -> Held:
    bits = {"tinyint": 8, "smallint": 16, "integer": 32, "bigint": 64}.get(one.word)
    return float(value) if bits is None else _fits(int(value), bits)


def _mod(_: CallTerm, left: Held, right: Held) -> Held:
    if isinstance(left, float):
        return math.nan if math.isinf(left) else math.fmod(left, right)
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


def _rounded(one: CallTerm, value: float, scale: float) -> float:
    moved = value * scale
    if not math.isfinite(moved):
        return value
    how = {
        "ceil": lambda: math.copysign(math.ceil(moved), moved),
        "floor": lambda: math.copysign(math.floor(moved), moved),
        "trunc": lambda: math.copysign(math.trunc(moved), moved),
        "round": lambda: math.copysign(math.floor(abs(moved) + 0.5), moved) + 0.0,
    }
    return how[one.name]() / scale


def _civil(one: CallTerm, value: Held) -> Held:
    if one.word == "string":
        return FUNCTIONS[one.name].run(value)
    parts = civil(value if one.word == "date" else value // 86_400_000_000)
    return parts[("get_year", "get_month", "get_day").index(one.name)]


_COMPARE: Mapping[str, Callable[[Held, Held], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _compared(one: CallTerm, left: Held, right: Held) -> bool:
    return _COMPARE[one.word or one.name](_place(left), _place(right))


def _exact(one: CallTerm, left: int, right: float) -> bool:
    if math.isnan(right):
        return one.word in ("<", "<=", "!=")
    return _COMPARE[one.word](left, right)  # Python compares them exactly


_STRICT: Mapping[str, Callable[..., Held]] = {
    **dict.fromkeys(_COMPARE, _compared),
    **{name: _worked(name) for name in "+-*"},
    **dict.fromkeys(("ceil", "floor", "trunc", "round"), _rounded),
    **dict.fromkeys(("get_year", "get_month", "get_day"), _civil),
    "exact": _exact,
    "not": lambda _, value: not value,
    "in": lambda _, value, *items: _place(value) in map(_place, items),
    "/": lambda _, left, right: left / right,
    "div": lambda _, left, right: _fits(abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)),
    "mod": _mod,
    "negative": lambda _, value: -value if isinstance(value, float) else _fits(-value),
    "cast": _cast,
    "field": lambda one, value: value.get(one.word),
    "concat": lambda _, *values: "".join(values),
    "like": lambda _, value, pattern: like(value, pattern),
    "lower": lambda _, value: value.lower(),
    "upper": lambda _, value: value.upper(),
    "length": lambda _, value: len(value),
    "contains": lambda _, value, other: other in value,
    "starts_with": lambda _, value, other: value.startswith(other),
    "ends_with": lambda _, value, other: value.endswith(other),
    "position": lambda _, value, other: value.find(other),
    "substr": lambda _, value, start, *count: value[start - 1 : None if not count else start - 1 + count[0]],
    "abs": lambda _, value: abs(value) if value else value,  # -0.0 remains
    "sqrt": lambda _, value: math.sqrt(value) if value >= 0 else math.nan,
    "size": lambda _, value: len(value),
    "count_known": lambda _, value: sum(item is not None for item in value),
    "milliseconds": lambda _, value: value // 1000 * 1000,
    "unix_time_from_date_in_days": lambda _, value: value,
    "unix_time_from_datetime_in_ms": lambda _, value: value // 1000,
}
