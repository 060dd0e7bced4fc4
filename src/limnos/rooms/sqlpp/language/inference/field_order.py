# SPDX-License-Identifier: Apache-2.0
"""The order of fields if `compiler.ordered.fields` is false: fields of known types come before the others.

Must not know rows or engines. AsterixDB's compiler stores fields whose types it infers as declared fields, which
precede the open ones. If the option is true, the default, fields have the order of SELECT, and plans are not rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar, cast

from msgspec import structs

from limnos.rooms.sqlpp.language import plan, tree
from limnos.rooms.sqlpp.language.functions import FUNCTIONS
from limnos.rooms.sqlpp.language.inference.plan_types import DatasetTypes, PlanTypes, constant_name
from limnos.rooms.sqlpp.language.plan.traversal import replace_children

T = TypeVar("T")
ORDERED: Final = frozenset({"object_add", "object_put"})
"""Functions whose optional last argument is the names of the fields that come first."""


def with_known_fields_first(
    expression: plan.Expression, datasets: DatasetTypes, *, variables: Mapping[int, tree.RecordType] | None = None
) -> plan.Expression:
    """Return a plan in which each object is constructed with its fields of known types before the others.

    Args:
        expression: The plan.
        datasets: The declared types of the datasets that it reads.
        variables: The types of variables that the plan does not bind, by slot.
    """
    types = PlanTypes(expression, datasets, variables=variables or {})
    return cast("plan.Expression", _FieldOrder(types).rewrite(expression))


class _FieldOrder:
    def __init__(self, types: PlanTypes) -> None:
        self._types = types

    def rewrite(self, node: plan.PlanNode) -> plan.PlanNode:
        """Return a plan in which fields of known types come first in each object."""
        new_node = node
        match node:
            case plan.ObjectOf(pairs=pairs):
                new_node = structs.replace(node, pairs=self._known_first(pairs, _split_pair))
            case plan.Group(members=members):
                new_node = structs.replace(node, members=self._known_first(members, lambda member: member))
            case plan.Select(projections=projections) if projections:
                new_node = structs.replace(node, projections=self._projections(projections))
        names = tuple(name for name, _ in self._types.of(node).fields)
        return _with_fields_first(replace_children(new_node, self.rewrite), names)

    def _projections(self, projections: tuple[plan.Projection, ...]) -> tuple[plan.Projection, ...]:
        """Order each run of named projections; a projection of the form `value.*` keeps its position."""
        ordered_projections: list[plan.Projection] = []
        for run in _runs(projections):
            ordered_projections += self._known_first(run, _split_projection)
        return tuple(ordered_projections)

    def _known_first(
        self, fields: tuple[T, ...], split: Callable[[T], tuple[str | None, plan.Expression]]
    ) -> tuple[T, ...]:
        """Return the fields with those of known types first; unchanged if two fields have the same name."""
        parts = [split(one) for one in fields]
        names = [name for name, _ in parts if name is not None]
        if len(set(names)) < len(names):
            return fields
        is_known = [name is not None and self._types.of(value).is_known for name, value in parts]
        known_fields = [one for one, first in zip(fields, is_known, strict=True) if first]
        return (*known_fields, *(one for one, first in zip(fields, is_known, strict=True) if not first))


def _with_fields_first(node: plan.PlanNode, names: tuple[str, ...]) -> plan.PlanNode:
    """Rewrite a function call, UNION ALL or SELECT so that the fields `names` of its results come first.

    AsterixDB orders the results of UNION ALL and of functions that change a field by their common type. The results of
    `SELECT a.*, b.*` are merged objects, in which the fields of the last operand come first. Other nodes are returned
    unchanged.
    """
    match node:
        case plan.FunctionCall(function=function, arguments=(_, _, _)) if names and function.name in ORDERED:
            return structs.replace(node, arguments=(*node.arguments, plan.Constant(node.at, names)))
        case plan.Query(arms=arms) if names and len(arms) > 1:
            return structs.replace(node, arms=tuple(_arm(arm, names) for arm in arms))
        case plan.Select(projections=projections, exclude=exclude) if len(runs := _runs(projections)) > 1:
            if any(len(path) > 1 for path in exclude):
                return node
            value = _call("object_concat", *(_object(run) for run in runs))
            if exclude:
                unwanted = plan.Constant(node.at, tuple(name for (name,) in exclude))
                value = _call("object_remove_fields", value, unwanted)
            return structs.replace(node, value=value, projections=(), exclude=())
    return node


def _runs(projections: tuple[plan.Projection, ...]) -> list[tuple[plan.Projection, ...]]:
    """Split projections into runs, each of which becomes one object: named projections, or one `value.*`."""
    runs: list[tuple[plan.Projection, ...]] = []
    for each in projections:
        if runs and each.name is not None and runs[-1][-1].name is not None:
            runs[-1] = (*runs[-1], each)
        else:
            runs.append((each,))
    return runs


def _object(run: tuple[plan.Projection, ...]) -> plan.Expression:
    """Return the expression for the object of a run; `value.*` is empty for a value that is not an object."""
    at = run[0].at
    if run[0].name is None:
        return _call("if_missing_or_null", _call("to_object", run[0].value), plan.ObjectOf(at, ()))
    return plan.ObjectOf(at, tuple((plan.Constant(each.at, each.name), each.value) for each in run))


def _call(function: str, *arguments: plan.Expression) -> plan.FunctionCall:
    return plan.FunctionCall(arguments[0].at, FUNCTIONS[function], arguments)


def _arm(arm: plan.Block | plan.Query, names: tuple[str, ...]) -> plan.Block | plan.Query:
    """Return an operand of UNION ALL in whose results the fields `names` come first, if it returns objects."""
    if isinstance(arm, plan.Query):
        return structs.replace(arm, arms=tuple(_arm(each, names) for each in arm.arms))
    select = arm.select
    match select.value:
        case None if len(_runs(select.projections)) == 1:
            select = structs.replace(select, projections=_by_name(select.projections, _split_projection, names=names))
        case plan.ObjectOf(pairs=pairs) as value:
            value = structs.replace(value, pairs=_by_name(pairs, _split_pair, names=names))
            select = structs.replace(select, value=value)
        case plan.Local() as value:
            first = tuple((plan.Constant(value.at, name), plan.FieldOf(value.at, value, name)) for name in names)
            select = structs.replace(select, value=_call("object_merge", plan.ObjectOf(value.at, first), value))
    return structs.replace(arm, select=select)


def _by_name(
    fields: tuple[T, ...], split: Callable[[T], tuple[str | None, plan.Expression]], *, names: tuple[str, ...]
) -> tuple[T, ...]:
    """Sort fields: those with one of `names` first, in the order of `names`, then the others in their own order."""
    positions = {name: index for index, name in enumerate(names)}
    return tuple(sorted(fields, key=lambda one: positions.get(split(one)[0] or "", len(positions))))


def _split_projection(projection: plan.Projection) -> tuple[str | None, plan.Expression]:
    return projection.name, projection.value


def _split_pair(pair: tuple[plan.Expression, plan.Expression]) -> tuple[str | None, plan.Expression]:
    return constant_name(pair[0]), pair[1]
