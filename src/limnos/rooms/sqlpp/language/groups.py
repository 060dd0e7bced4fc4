# SPDX-License-Identifier: Apache-2.0
"""Aggregate pushdown: the engine computes GROUP BY, the evaluator the remaining clauses of the block.

A block that groups one dataset becomes a block over the engine's groups, one row each. Only groupings with exactly the
same result in the engine are pushed down. A grouping by a key that may be NULL or MISSING is not pushed down: these are
two groups in SQL++, but both are null in a column. In a table that SQL++ did not create null always means MISSING, so
the grouping is pushed down. The evaluator computes HAVING, LET, SELECT and ORDER BY over the groups. Must not know an
engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from msgspec import Struct, structs

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.conditions import Condition, conditions_of, path_of
from limnos.rooms.sqlpp.language.engine_semantics import (
    AGGREGATES,
    GROUPED,
    aggregates_in,
    column_type,
    is_exact,
    result_of,
)
from limnos.rooms.sqlpp.language.functions import FUNCTIONS
from limnos.rooms.sqlpp.language.stored import RecordType, type_at

Node = TypeVar("Node")


class GroupMeasure(Struct, frozen=True, kw_only=True):
    """An aggregate over the values at a path that are not NULL or MISSING; over rows if `path` is None."""

    name: str
    function: str
    path: tuple[str, ...] | None
    distinct: bool
    type: str
    """The type of the result."""


class EngineGrouping(Struct, frozen=True):
    """A grouping for the engine: keys, each with its name, path and type, and aggregates."""

    keys: tuple[tuple[str, tuple[str, ...], str], ...]
    measures: tuple[GroupMeasure, ...]


class EngineGroupBlock(NamedTuple):
    """A block that reads groups computed by an engine, with the conditions that the engine applies before grouping."""

    block: plan.Block
    order: tuple[plan.Order, ...]
    conditions: tuple[Condition, ...]
    grouped: EngineGrouping


def delegate_groups(block: plan.Block, order: tuple[plan.Order, ...], *, record: RecordType) -> EngineGroupBlock | None:
    """Rewrite a block to read the engine's groups instead of rows; None if an engine cannot compute the groups."""
    group = block.group
    if group is None or len(block.sources) != 1 or block.lets or group.slot is not None:
        return None
    (source,) = block.sources
    if source.kind != "scan" or source.position is not None or group.sets != (tuple(range(len(group.keys))),):
        return None
    conditions = conditions_of(block.where, source.slot)
    if conditions is None or not all(is_exact(record, each) for each in conditions):
        return None
    keys = tuple(_keys(group, source.slot, record=record))
    measures = _MeasureCollector(source.slot, record)
    after = (block.group_lets, block.having, block.select, block.windows, order)
    if len(keys) != len(group.keys) or not all(map(measures.take, aggregates_in(after))):
        return None
    lets = tuple(
        plan.Let(group.at, slot, _group_field(group, source.slot, name=name))
        for (slot, _), (name, _, _) in zip(group.keys, keys, strict=True)
    )
    new_block = structs.replace(
        block,
        lets=(*lets, *measures.put(block.group_lets)),
        where=None,
        group=None,
        group_lets=(),
        having=measures.put(block.having),
        select=measures.put(block.select),
        windows=measures.put(block.windows),
    )
    return EngineGroupBlock(
        new_block, measures.put(order), conditions, EngineGrouping(keys, tuple(measures.by_key.values()))
    )


def _keys(group: plan.Group, slot: int, *, record: RecordType) -> Iterator[tuple[str, tuple[str, ...], str]]:
    for at, (_, value) in enumerate(group.keys):
        path = path_of(value, slot)
        scalar = None if path is None else column_type(record, path)
        if path is None or scalar is None or scalar.name not in GROUPED:
            continue
        field = type_at(record, path)
        if record.foreign or (field is not None and not field.optional):
            yield f"k{at}", path, scalar.name


def _group_field(at: plan.PlanNode, slot: int, *, name: str) -> plan.Expression:
    """Return the expression for a field of an engine's group."""
    return plan.FieldOf(at.at, plan.Local(at.at, slot, "group"), name)


def _measure_field(at: plan.PlanNode, slot: int, *, name: str) -> plan.Expression:
    """Return the expression for an aggregate of an engine's group; MISSING becomes NULL."""
    field = _group_field(at, slot, name=name)
    return plan.FunctionCall(at.at, FUNCTIONS["if_missing"], (field, plan.Constant(at.at, None)))


class _MeasureCollector:
    """Collects the distinct aggregates of a block."""

    def __init__(self, slot: int, record: RecordType) -> None:
        self._slot = slot
        self._record = record
        self.by_key: dict[tuple[str, tuple[str, ...] | None, bool], GroupMeasure] = {}

    def take(self, node: plan.Aggregate) -> bool:
        """Add an aggregate to the measures. Returns False if the engine cannot compute it."""
        key = self._key(node)
        if key is None:
            return False
        function, path, distinct = key
        type_ = "bigint"
        if path is not None:
            scalar = column_type(self._record, path)
            if scalar is None or scalar.name not in AGGREGATES[function]:
                return False
            type_ = result_of(function, scalar.name)
        self.by_key.setdefault(
            key, GroupMeasure(name=f"m{len(self.by_key)}", function=function, path=path, distinct=distinct, type=type_)
        )
        return True

    def _key(self, node: plan.Aggregate) -> tuple[str, tuple[str, ...] | None, bool] | None:
        function = node.function.name
        if function not in AGGREGATES or node.filter is not None or (node.distinct and function != "count"):
            return None
        if node.argument is None:
            return (function, None, False) if function == "count" and not node.distinct else None
        path = path_of(node.argument, self._slot)
        return None if path is None else (function, path, node.distinct)

    def put(self, node: Node) -> Node:
        """Return a copy of the node in which each aggregate is replaced by the group's field with its result."""
        return self._put(node)  # type: ignore[return-value]

    def _put(self, content: object) -> object:
        if isinstance(content, plan.Aggregate):
            key = self._key(content)
            if key is None:
                raise TypeError("an aggregate that was not collected")
            return _measure_field(content, self._slot, name=self.by_key[key].name)
        if isinstance(content, plan.PlanNode) and not isinstance(content, plan.Block):
            changes = {name: self._put(getattr(content, name)) for name in content.__struct_fields__[1:]}
            return structs.replace(content, **changes)
        return tuple(self._put(item) for item in content) if type(content) is tuple else content
