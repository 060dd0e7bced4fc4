# SPDX-License-Identifier: Apache-2.0
"""Static types of the expressions of a plan, from the types of the datasets that it reads.

Must not know rows. The nodes of a plan are typed from the innermost to the outermost, so a deep plan needs no
recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import structs

from limnos.rooms.sqlpp.language import plan, tree
from limnos.rooms.sqlpp.language.inference.functions import aggregate_type, call_type, list_type, window_type
from limnos.rooms.sqlpp.language.inference.operations import BOOLEAN, chain_type, negative_type
from limnos.rooms.sqlpp.language.inference.static_types import (
    ANY,
    MISSING_TYPE,
    NULL_TYPE,
    OBJECT,
    StaticType,
    array_of,
    common_type,
    declared_type,
    object_type,
    type_of_items,
    type_of_value,
)
from limnos.rooms.sqlpp.language.plan.traversal import walk

DatasetTypes = Mapping[tuple[tuple[str, ...], str], tree.RecordType]
"""The declared types of the objects of datasets, by dataverse and name."""
_BIGINT: Final = StaticType(kind="bigint")
CHANGES: Final = frozenset({"object_add", "object_put", "object_remove"})
"""The functions that return an object with one field changed."""
_LEFT_OUT: Final = frozenset({"left", "outer unnest"})
"""The kinds of sources whose variable is MISSING in rows without an item."""


class PlanTypes:
    """The static types of all expressions of one plan.

    Args:
        root: The plan.
        datasets: The declared types of the datasets that it reads.
        variables: The types of variables that the plan does not bind, by slot.
    """

    def __init__(
        self, root: plan.PlanNode, datasets: DatasetTypes, *, variables: Mapping[int, tree.RecordType] | None = None
    ) -> None:
        self._datasets = datasets
        self._nodes = walk(root)  # the types are stored by the identity of these nodes
        self._types: dict[int, StaticType] = {}
        self._slots: dict[int, Callable[[], StaticType]] = {
            slot: partial(declared_type, record) for slot, record in (variables or {}).items()
        }
        for node in self._nodes:
            self._add_variables(node)
        for node in reversed(self._nodes):
            if type(node) in _RULES:
                self._types[id(node)] = _RULES[type(node)](self, node)

    def of(self, node: plan.PlanNode) -> StaticType:
        """Return the type of a node's value, for a query that of one result; `any` if it is unknown."""
        return self._types.get(id(node), ANY)

    def all_of(self, nodes: Iterable[plan.Expression]) -> list[StaticType]:
        """Return the types of several expressions."""
        return [self.of(node) for node in nodes]

    def variable(self, slot: int) -> StaticType:
        """Return the type of a variable; `any` if it is unknown."""
        slot_type = self._slots.get(slot)
        return ANY if slot_type is None else slot_type()

    def dataset(self, node: plan.Scan) -> StaticType:
        """Return the type of a dataset as a collection of its objects."""
        record = self._datasets.get((node.dataverse, node.name))
        return array_of(ANY if record is None else declared_type(record))

    def items(self, source: plan.Expression) -> StaticType:
        """Return the type of the items of a source of FROM."""
        return self.of(source.query) if isinstance(source, plan.Subquery) else type_of_items(self.of(source))

    def _add_variables(self, node: plan.PlanNode) -> None:
        match node:
            case plan.ForEach(slot=slot, kind=kind, source=source, position=position):
                self._slots[slot] = lambda: self._item(source, is_optional=kind in _LEFT_OUT)
                if position is not None:
                    self._slots[position] = lambda: _BIGINT
            case plan.Let(slot=slot, value=value):
                self._slots[slot] = lambda: self.of(value)
            case plan.LetIn(lets=lets):
                for slot, value in lets:
                    self._slots[slot] = _later(self, value)
            case plan.WindowCall(slot=slot):
                self._slots[slot] = lambda: self.of(node)
            case plan.Group(keys=keys, slot=group, members=members, number=number):
                for slot, value in keys:
                    self._slots[slot] = _later(self, value)
                if group is not None:
                    self._slots[group] = lambda: array_of(object_type((name, self.of(each)) for name, each in members))
                if number is not None:
                    self._slots[number] = lambda: _BIGINT
            case plan.Quantified(bindings=bindings):
                for slot, source in bindings:
                    self._slots[slot] = _later_items(self, source)
            case plan.Query(output=int(slot), arms=arms):
                self._slots[slot] = lambda: common_type(self.of(arm) for arm in arms)

    def _item(self, source: plan.Expression, *, is_optional: bool) -> StaticType:
        item = self.items(source)
        return item.optional(null=False) if is_optional else item


def _later(types: PlanTypes, node: plan.Expression) -> Callable[[], StaticType]:
    return lambda: types.of(node)


def _later_items(types: PlanTypes, node: plan.Expression) -> Callable[[], StaticType]:
    return lambda: types.items(node)


def _select(types: PlanTypes, node: plan.Select) -> StaticType:
    if node.value is not None:
        return types.of(node.value)
    left_out = {path[0] for path in node.exclude if len(path) == 1}
    if any(each.name is None for each in node.projections):
        only = types.of(node.projections[0].value) if len(node.projections) == 1 else OBJECT
        return StaticType(
            kind="object", fields=tuple((name, type_) for name, type_ in only.fields if name not in left_out)
        )
    return object_type((each.name, types.of(each.value)) for each in node.projections if each.name not in left_out)


def _field(types: PlanTypes, node: plan.FieldOf) -> StaticType:
    base = types.of(node.base)
    field = base.field(node.name)
    return field.optional(null=base.null, missing=base.missing) if base.is_optional else field


def _element(types: PlanTypes, node: plan.ElementOf) -> StaticType:
    return type_of_items(types.of(node.base)).optional()


def _call(types: PlanTypes, node: plan.FunctionCall) -> StaticType:
    name, arguments = node.function.name, node.arguments
    if name == "get_object_field_value" and isinstance(arguments[1], plan.Constant):
        return types.of(arguments[0]).field(str(arguments[1].value))
    if name in CHANGES:
        return _changed_object(types, node)
    if name.startswith(("array_", "strict_")) and arguments and isinstance(arguments[0], plan.Subquery):
        listed = StaticType(
            kind="array", item=types.of(arguments[0].query)
        )  # AsterixDB aggregates them without an array
        return call_type(name, [listed, *types.all_of(arguments[1:])])
    return call_type(name, types.all_of(arguments))


def _changed_object(types: PlanTypes, node: plan.FunctionCall) -> StaticType:
    """Return the type of `object_add`, `object_put` or `object_remove`; an object without known fields if it is
    unknown.
    """
    base, name = types.of(node.arguments[0]), constant_name(node.arguments[1])
    if base.kind != "object" or name is None:
        return OBJECT.optional()
    added = types.of(node.arguments[2]) if len(node.arguments) > 2 else MISSING_TYPE
    has_field = base.field(name).is_known
    if node.function.name == "object_add" and (has_field or not added.is_known):
        return base
    fields = [(each, type_) for each, type_ in base.fields if each != name or added.is_known]
    if added.is_known:
        fields = [(each, added if each == name else type_) for each, type_ in fields]
        fields += [] if has_field else [(name, added)]
    return structs.replace(base, fields=tuple(fields))


def _aggregate(types: PlanTypes, node: plan.Aggregate) -> StaticType:
    return aggregate_type(node.function.name, _BIGINT if node.argument is None else types.of(node.argument))


def _case(types: PlanTypes, node: plan.CaseOf) -> StaticType:
    results = types.all_of(result for _, result in node.branches)
    return common_type([*results, NULL_TYPE if node.otherwise is None else types.of(node.otherwise)])


def _object(types: PlanTypes, node: plan.ObjectOf) -> StaticType:
    return object_type((constant_name(name), types.of(value)) for name, value in node.pairs)


def constant_name(node: plan.Expression) -> str | None:
    """Return a field name that is a string constant; None for another expression."""
    return node.value if isinstance(node, plan.Constant) and isinstance(node.value, str) else None


_RULES: Final[Mapping[type[plan.PlanNode], Callable[[PlanTypes, Any], StaticType]]] = {
    plan.Constant: lambda _, node: type_of_value(node.value),
    plan.Local: lambda types, node: types.variable(node.slot),
    plan.Scan: PlanTypes.dataset,
    plan.FieldOf: _field,
    plan.ElementOf: _element,
    plan.SliceOf: lambda types, node: call_type("array_slice", types.all_of((node.base,))),
    plan.FunctionCall: _call,
    plan.Aggregate: _aggregate,
    plan.WindowCall: lambda types, node: window_type(node.function.name, types.all_of(node.arguments)),
    plan.Operate: lambda types, node: chain_type(node.operators, types.all_of(node.operands)),
    plan.Negated: lambda *_: BOOLEAN.optional(),
    plan.SignOf: lambda types, node: negative_type(types.of(node.operand)) if node.minus else types.of(node.operand),
    plan.Exists: lambda *_: BOOLEAN,
    plan.Between: lambda *_: BOOLEAN.optional(),
    plan.IsTest: lambda *_: BOOLEAN,
    plan.CaseOf: _case,
    plan.Quantified: lambda *_: BOOLEAN,
    plan.ArrayOf: lambda types, node: list_type("array", types.all_of(node.items)),
    plan.BagOf: lambda types, node: list_type("multiset", types.all_of(node.items)),
    plan.ObjectOf: _object,
    plan.LetIn: lambda types, node: types.of(node.body),
    plan.Select: _select,
    plan.Block: lambda types, node: types.of(node.select),
    plan.Query: lambda types, node: common_type(types.of(arm) for arm in node.arms),
    plan.Subquery: lambda types, node: array_of(types.of(node.query)),
}
