# SPDX-License-Identifier: Apache-2.0
"""Declared types of expressions, for `get_object_fields`, inferred from the types of datasets.

Must not know rows. Each call of the function gets a second argument, which describes the declared type of the first. If
the type of the argument is unknown, its fields count as declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from limnos.rooms.sqlpp.language import plan, tree
from limnos.rooms.sqlpp.language.plan.traversal import replace_children, walk
from limnos.rooms.sqlpp.language.stored import BUILT_IN

FUNCTION: Final = "get_object_fields"
OPEN: Final = "open"
"""The description of a field that is not declared, and of all fields below it."""
Types = Mapping[tuple[tuple[str, ...], str], tree.RecordType]
_Type = tree.TypeExpression | str | None


def with_field_types(expression: plan.Expression, types: Types) -> plan.Expression:
    """Return a plan in which each call of `get_object_fields` has a second argument, the declared type of the first.

    Args:
        expression: The plan.
        types: The types of the datasets that it reads.
    """
    nodes = walk(expression)
    # Every plan over metadata datasets is searched, and few have such a call: the search calls no function per node.
    if not [node for node in nodes if isinstance(node, plan.FunctionCall) and node.function.name == FUNCTION]:
        return expression
    return cast("plan.Expression", _TypeAnnotation(nodes, types).rewrite(expression))


class _TypeAnnotation:
    def __init__(self, nodes: list[plan.PlanNode], types: Types) -> None:
        self._types = types
        self._items = {node.slot: node.source for node in nodes if isinstance(node, plan.ForEach)}
        self._values = {node.slot: node.value for node in nodes if isinstance(node, plan.Let)}
        for node in nodes:
            if isinstance(node, plan.LetIn):
                self._values.update(node.lets)

    def rewrite(self, node: plan.PlanNode) -> plan.PlanNode:
        """Return a plan in which each call of `get_object_fields` has a type argument."""
        new_node = replace_children(node, self.rewrite)
        if isinstance(node, plan.FunctionCall) and node.function.name == FUNCTION:
            text = msgspec.json.encode(_description(self._type_of(node.arguments[0]))).decode()
            arguments = (*cast("plan.FunctionCall", new_node).arguments, plan.Constant(node.at, text))
            return msgspec.structs.replace(new_node, arguments=arguments)
        return new_node

    def _type_of(self, expression: plan.Expression) -> _Type:
        match expression:
            case plan.Scan(dataverse=dataverse, name=name) if (dataverse, name) in self._types:
                return tree.ArrayType(expression.at, self._types[dataverse, name])
            case plan.Local(slot=slot) if slot in self._items:
                return _item(self._type_of(self._items[slot]))
            case plan.Local(slot=slot) if slot in self._values:
                return self._type_of(self._values[slot])
            case plan.ElementOf(base=base):
                return _item(self._type_of(base))
            case plan.FieldOf(base=base, name=name):
                return _field(self._type_of(base), name)
            case _:
                return None


def _item(type_: _Type) -> _Type:
    return type_.item if isinstance(type_, (tree.ArrayType, tree.BagType)) else OPEN if type_ == OPEN else None


def _field(type_: _Type, name: str) -> _Type:
    if not isinstance(type_, tree.RecordType):
        return OPEN if type_ == OPEN else None
    return next((field.type for field in type_.fields if field.name == name), OPEN)


def _description(type_: _Type) -> object:
    """Return a type as JSON: `{"type": …}` with `fields` for a record or `item` for a collection; `open` for open
    fields, null for an unknown type.
    """
    match type_:
        case tree.RecordType(fields=fields):
            return {"type": "object", "fields": {field.name: _description(field.type) for field in fields}}
        case tree.ArrayType(item=item):
            return {"type": "array", "item": _description(item)}
        case tree.BagType(item=item):
            return {"type": "multiset", "item": _description(item)}
        case tree.NamedType(name=name):
            return {"type": BUILT_IN.get(name.last.lower(), name.last.lower())}
        case _:
            return type_
