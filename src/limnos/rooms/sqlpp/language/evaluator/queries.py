# SPDX-License-Identifier: Apache-2.0
"""Compiles queries: rows from sources, filtered, grouped, ordered and limited.

Must not know the origin of a dataset's objects: a function for that is passed in. A row is a list with a value for each
variable. Each source copies the row, so stored rows do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import cast

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.evaluator.budget import Budget
from limnos.rooms.sqlpp.language.evaluator.context import EvaluationContext, Key, Row
from limnos.rooms.sqlpp.language.evaluator.expressions import compile_expression, source_items
from limnos.rooms.sqlpp.language.evaluator.joins import (
    JoinKeys,
    JoinPartners,
    SurroundingSlots,
    is_uncorrelated,
    keys_of,
    surrounding_slots_of,
)
from limnos.rooms.sqlpp.language.evaluator.windows import windows_of
from limnos.rooms.sqlpp.language.functions.costs import linear_cost
from limnos.rooms.sqlpp.language.functions.numbers import to_integer
from limnos.rooms.sqlpp.language.values.model import MISSING, Value, is_unknown, object_of, type_name
from limnos.rooms.sqlpp.language.values.text import real_text


def working_of(
    rows: Callable[[tuple[str, ...], str], Iterable[Value]], *, budget: Budget, slots: int
) -> EvaluationContext:
    """Create the evaluation context of one statement. `rows` returns the objects of a dataset."""
    return EvaluationContext(rows, budget=budget, slots=slots, queries=query_of)


def query_of(node: plan.Query, working: EvaluationContext) -> Callable[[Row], Iterator[Value]]:
    """Compile a query to a function that yields its results for a row of outer variables."""
    lets = [(let.slot, compile_expression(let.value, working)) for let in node.lets]
    order = ordering_of(node.order, working)
    arms = [_arm(arm, order if node.output is None else None, working=working) for arm in node.arms]
    limit = None if node.limit is None else compile_expression(node.limit, working)
    offset = None if node.offset is None else compile_expression(node.offset, working)

    def run(row: Row) -> Iterator[Value]:
        working.budget.step()
        inside = row.copy()
        for slot, value in lets:
            inside[slot] = value(inside)
        results: Iterator[Value] = (value for arm in arms for value in arm(inside))
        if node.output is not None and order is not None:
            results = iter(_ordered_output(results, inside, slot=node.output, order=order, working=working))
        return _cut(results, _count(limit, inside), offset=_count(offset, inside) or 0)

    return run


def _arm(
    node: plan.Block | plan.Query, order: Callable[[Row], Key] | None, *, working: EvaluationContext
) -> Callable[[Row], Iterator[Value]]:
    return query_of(node, working) if isinstance(node, plan.Query) else block_of(node, order, working=working)


def _count(work: Callable[[Row], Value] | None, row: Row) -> int | None:
    """Evaluate LIMIT or OFFSET; None if the clause is absent. NULL, MISSING and negative numbers count as 0.

    Raises SqlppError for a value that is not an integer.
    """
    if work is None:
        return None
    value = work(row)
    number = to_integer(value)
    if number is None:
        if is_unknown(value):
            return 0
        if isinstance(value, float):
            raise SqlppError(NO_INTEGER, f"Expected integer value, got {real_text(value)}")
        raise SqlppError(
            NO_NUMBER, f"Type mismatch: expected value of type integer, but got the value of type {type_name(value)}"
        )
    if abs(number) > ROWS_MAX:
        text = (
            f"Source value {number} is out of range that integer can hold - integer.MAX_VALUE: {ROWS_MAX},"
            f" integer.MIN_VALUE: {-ROWS_MAX - 1}"
        )
        raise SqlppError(OUT_OF_RANGE, text)
    return max(0, number)


def _cut(results: Iterator[Value], limit: int | None, *, offset: int) -> Iterator[Value]:
    if limit == 0:
        return
    number = 0
    for at, value in enumerate(results):
        if at < offset:
            continue
        yield value
        number += 1
        if number == limit:
            return


# Order.


NO_INTEGER, OUT_OF_RANGE, NO_NUMBER = 39, 21, 1091
ROWS_MAX = (1 << 31) - 1
"""The largest value of LIMIT and OFFSET."""


class _DescendingKey(bytes):
    """A sort key that compares in descending order."""

    __slots__ = ()

    def __lt__(self, other: bytes) -> bool:
        return bytes.__gt__(self, other)

    def __gt__(self, other: bytes) -> bool:
        return bytes.__lt__(self, other)


def ordering_of(items: tuple[plan.Order, ...], working: EvaluationContext) -> Callable[[Row], Key] | None:
    """Compile ORDER BY to a function that returns a row's sort key; None if there is no ORDER BY."""
    if not items:
        return None
    parts = [(compile_expression(item.value, working), item.descending, item.nulls_first) for item in items]

    def place(row: Row) -> Key:
        results: Key = []
        for work, descending, nulls_first in parts:
            value = work(row)
            aside = 0 if nulls_first is None or not is_unknown(value) else -1 if nulls_first else 1
            key = working.key(value)
            results.append((aside, _DescendingKey(key) if descending else key))
        return results

    return place


def _ordered_output(
    results: Iterator[Value], row: Row, *, slot: int, order: Callable[[Row], Key], working: EvaluationContext
) -> list[Value]:
    keyed_values: list[tuple[Key, Value]] = []
    for value in results:
        working.budget.keep()
        row[slot] = value
        keyed_values.append((order(row), value))
    keyed_values.sort(key=lambda one: one[0])
    return [value for _, value in keyed_values]


# Blocks.


def block_of(
    node: plan.Block, order: Callable[[Row], Key] | None, *, working: EvaluationContext
) -> Callable[[Row], Iterator[Value]]:
    """Compile a block to a function that yields its results, with the query's ORDER BY if that uses the block's
    rows.
    """
    sources = [
        _source_of(source, None if node.lets else node.where, around=around, working=working)
        for source, around in zip(node.sources, surrounding_slots_of(node), strict=True)
    ]
    lets = _steps_of(node.lets, working)
    where = None if node.where is None else compile_expression(node.where, working)
    group = None if node.group is None else _group_of(node.group, working)
    group_lets = _steps_of(node.group_lets, working)
    having = None if node.having is None else compile_expression(node.having, working)
    windows = windows_of(node.windows, working, ordering=ordering_of)
    select = _select_of(node.select, working)

    def rows(row: Row) -> Iterator[Row]:
        result: Iterator[Row] = iter((row.copy(),))
        for source in sources:
            result = source(result)
        for one in lets(result):
            if where is None or where(one) is True:
                yield one

    def groups(result: Iterator[Row], row: Row) -> Iterator[Row]:
        for one in group_lets(result if group is None else group(result, row)):
            if having is None or having(one) is True:
                yield one

    def run(row: Row) -> Iterator[Value]:
        result = groups(rows(row), row)
        if windows is not None:
            result = iter(windows(result))
        if order is not None:
            result = iter(_sort_rows(result, order, working=working))
        results = map(select, result)
        return _distinct_values(results, working) if node.select.distinct else results

    return run


def _steps_of(
    steps: tuple[plan.Let | plan.WindowCall, ...], working: EvaluationContext
) -> Callable[[Iterator[Row]], Iterator[Row]]:
    """Compile LET and window functions to a function that adds their values to rows.

    If there is a window function, it collects all rows first.
    """
    works: list[Callable[[Iterable[Row]], Iterable[Row]]] = []
    for step in steps:
        if isinstance(step, plan.Let):
            works.append(_let_of(step, working))
        else:
            windows = windows_of((step,), working, ordering=ordering_of)
            works += () if windows is None else (windows,)

    def run(rows: Iterator[Row]) -> Iterator[Row]:
        for work in works:
            rows = iter(work(rows))
        return rows

    return run


def _let_of(let: plan.Let, working: EvaluationContext) -> Callable[[Iterable[Row]], Iterator[Row]]:
    slot, value = let.slot, compile_expression(let.value, working)

    def run(rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            row[slot] = value(row)
            yield row

    return run


def _sort_rows(rows: Iterator[Row], order: Callable[[Row], Key], *, working: EvaluationContext) -> list[Row]:
    outer = []
    for row in rows:
        working.budget.keep()
        outer.append(row)
    outer.sort(key=order)
    return outer


def _distinct_values(results: Iterable[Value], working: EvaluationContext) -> Iterator[Value]:
    seen_keys: set[bytes] = set()
    for value in results:
        key = working.key(value)
        if key not in seen_keys:
            working.budget.keep()
            seen_keys.add(key)
            yield value


def _select_of(node: plan.Select, working: EvaluationContext) -> Callable[[Row], Value]:
    """Compile SELECT. If several fields have the same name, which only `value.*` can cause, the last wins."""
    if node.value is not None:
        return compile_expression(node.value, working)
    projections = [(projection.name, compile_expression(projection.value, working)) for projection in node.projections]
    exclude = node.exclude

    def select(row: Row) -> Value:
        result: Value
        fields: dict[str, Value] = {}
        for name, work in projections:
            value = work(row)
            if name is not None:
                if value is not MISSING:
                    fields[name] = value
            elif isinstance(value, dict):
                if working.meter is not None:
                    working.meter.spend(len(value))
                fields |= value
        result = fields
        for path in exclude:
            if working.meter is not None:
                working.meter.charge(linear_cost, (result,))
            result = without(result, path)
        return result

    return select


def without(value: Value, path: tuple[str, ...]) -> Value:
    """Return a value without the field at a path. If the path leads through an array, it is removed from each item."""
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(without(item, path) for item in value)
    if not isinstance(value, dict) or path[0] not in value:
        return value
    if len(path) == 1:
        return {name: content for name, content in value.items() if name != path[0]}
    return {name: without(content, path[1:]) if name == path[0] else content for name, content in value.items()}


# Sources.


def _source_of(
    node: plan.ForEach, where: plan.Expression | None, *, around: SurroundingSlots, working: EvaluationContext
) -> Callable[[Iterator[Row]], Iterator[Row]]:
    """Compile a source of FROM to a function that joins rows of earlier sources with the items of this source.

    Args:
        node: The source.
        where: The WHERE condition, whose equalities help to find matching items.
        around: The slots of earlier and later sources.
        working: The context.
    """
    source = compile_expression(node.source, working)
    condition = None if node.condition is None else compile_expression(node.condition, working)
    keeps = node.kind in ("left", "outer unnest")
    is_apart = node.kind in ("inner", "left", "cross") or is_uncorrelated(node, around)
    join_condition = None if keeps or node.kind == "right" else where
    find_keys = cache(
        lambda: keys_of(node, join_condition, around=around, working=working)
    )  # only a second row needs them
    if node.kind == "right":
        return _right(node, source, condition=condition, find_keys=find_keys, working=working)

    is_dataset = isinstance(node.source, plan.Scan)  # it has the same items each time that a subquery is evaluated
    last_partners: JoinPartners | None = None

    def run(rows: Iterator[Row]) -> Iterator[Row]:
        nonlocal last_partners
        partners = last_partners
        for row in rows:
            if partners is None or not is_apart:
                partners = _partners(node, source(row), find_keys=find_keys if is_apart else _no_keys, working=working)
                last_partners = partners if is_dataset and is_apart else None
            met = False
            for at, item in partners.of(row):
                working.budget.step()
                elements = _with_item(row, node, item=item, at=at)
                if condition is None or condition(elements) is True:
                    met = True
                    yield elements
            if keeps and not met:
                yield _with_item(row, node, item=MISSING, at=None)

    return run


def _no_keys() -> None:
    """Return None: there are no join keys, because the source depends on the row."""


def _partners(
    node: plan.ForEach, value: Value, *, find_keys: Callable[[], JoinKeys | None], working: EvaluationContext
) -> JoinPartners:
    return JoinPartners(
        source_items(value, node, working=working),
        find_keys,
        put=lambda row, item, at: _with_item(row, node, item=item, at=at),
        working=working,
    )


def _with_item(row: Row, node: plan.ForEach, *, item: Value, at: int | None) -> Row:
    new_row = row.copy()
    new_row[node.slot] = item
    if node.position is not None:
        new_row[node.position] = MISSING if at is None else at + node.first
    return new_row


def _right(
    node: plan.ForEach,
    source: Callable[[Row], Value],
    *,
    condition: Callable[[Row], Value] | None,
    find_keys: Callable[[], JoinKeys | None],
    working: EvaluationContext,
) -> Callable[[Iterator[Row]], Iterator[Row]]:
    """Compile a right join. Items without a matching row come last, with MISSING on the left side."""

    def run(rows: Iterator[Row]) -> Iterator[Row]:
        left = list(rows)
        working.budget.keep(len(left))
        if not left:
            return
        partners = _partners(node, source(left[0]), find_keys=find_keys, working=working)
        elements = partners.held
        met = [False] * len(elements)
        for row in left:
            for at, item in partners.of(row):
                working.budget.step()
                results = _with_item(row, node, item=item, at=at)
                if condition is None or condition(results) is True:
                    met[at] = True
                    yield results
        for at, item in enumerate(elements):
            working.budget.step()
            if not met[at]:
                results = _with_item(left[0], node, item=item, at=at)
                for slot in node.others:
                    results[slot] = MISSING
                yield results

    return run


# Groups.


def _group_of(node: plan.Group, working: EvaluationContext) -> Callable[[Iterator[Row], Row], Iterator[Row]]:
    """Compile GROUP BY: the groups in the order of their keys, one grouping set after another."""
    keys = [(slot, compile_expression(value, working)) for slot, value in node.keys]
    slots = [slot for slot, _ in node.keys]
    fields = [(name, compile_expression(value, working)) for name, value in node.members]

    def run(rows: Iterator[Row], outer: Row) -> Iterator[Row]:
        entry: list[tuple[Row, list[Value]]] = []
        for row in rows:
            working.budget.keep()
            entry.append((row, [work(row) for _, work in keys]))
        for set_number, chosen in enumerate(node.sets):
            groups: dict[bytes, tuple[list[Value], list[Row]]] = {}
            if not chosen:
                groups[b""] = ([None] * len(keys), [])
            for row, values in entry:
                working.budget.step()
                of_set = [values[at] if at in chosen else None for at in range(len(keys))]
                groups.setdefault(b"".join(working.key(value) for value in of_set) if chosen else b"", (of_set, []))[
                    1
                ].append(row)
            for _, (of_set, members) in sorted(groups.items()):
                if keys and not members:
                    continue
                grouped = _group_row(outer, of_set, members=members)
                if node.number is not None:
                    grouped[node.number] = set_number
                yield grouped

    def _group_row(outer: Row, values: list[Value], *, members: list[Row]) -> Row:
        new_row = outer.copy()
        for slot, value in zip(slots, values, strict=True):
            new_row[slot] = value
        # A list of rows instead of a value; only `Aggregate` reads this slot.
        new_row[working.group_slot] = cast("Value", members)
        if node.slot is not None:
            if working.meter is not None:
                working.meter.spend(len(members) * (1 + len(node.members)))
            new_row[node.slot] = tuple(object_of((name, work(row)) for name, work in fields) for row in members)
        return new_row

    return run
