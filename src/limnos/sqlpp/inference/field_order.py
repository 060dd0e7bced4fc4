"""The order of fields with `compiler.ordered.fields` set to false: fields of known types come before the others.

May import plans and their static types. Must not know rows or engines. AsterixDB's compiler stores the fields of an
object whose types it knows as declared ones, which come first. With `true`, the default, the order is that of SELECT,
and no plan comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from msgspec import structs

from limnos.sqlpp import plan, tree
from limnos.sqlpp.inference.plan_types import DatasetTypes, PlanTypes, constant_name

T = TypeVar("T")


def with_known_fields_first(
    expression: plan.Expression, datasets: DatasetTypes, *, variables: Mapping[int, tree.RecordType] | None = None
) -> plan.Expression:
    """Return a plan in which each object is built with its fields of known types before the others.

    Args:
        expression: The plan.
        datasets: The declared types of the datasets that it reads.
        variables: The types of variables that the plan does not bind, by slot.
    """
    types = PlanTypes(expression, datasets, variables=variables or {})
    return cast("plan.Expression", _Reordering(types).rewrite(expression))


class _Reordering:
    def __init__(self, types: PlanTypes) -> None:
        self._types = types

    def rewrite(self, part: object) -> object:
        """Return a part of a plan with the fields of all objects in order."""
        if isinstance(part, tuple):
            return tuple(map(self.rewrite, part))
        if not isinstance(part, plan.PlanNode):
            return part
        changes: dict[str, object] = {}
        match part:
            case plan.ObjectOf(pairs=pairs):
                changes["pairs"] = self._ordered(pairs, lambda pair: (constant_name(pair[0]), pair[1]))
            case plan.Group(members=members):
                changes["members"] = self._ordered(members, lambda member: member)
            case plan.Select(projections=projections) if projections:
                changes["projections"] = self._projections(projections)
        for name in part.__struct_fields__[1:]:
            changes[name] = self.rewrite(changes.get(name, getattr(part, name)))
        return structs.replace(part, **changes)

    def _projections(self, projections: tuple[plan.Projection, ...]) -> tuple[plan.Projection, ...]:
        """Order the projections between those of the form `value.*`, each of which is an object of its own."""
        ordered: list[plan.Projection] = []
        run: list[plan.Projection] = []
        for each in projections:
            if each.name is None:
                ordered += (*self._ordered(tuple(run), _named), each)
                run = []
            else:
                run.append(each)
        return (*ordered, *self._ordered(tuple(run), _named))

    def _ordered(
        self, fields: tuple[T, ...], split: Callable[[T], tuple[str | None, plan.Expression]]
    ) -> tuple[T, ...]:
        """Return fields with those of known types first; fields of which two have one name stay as they are."""
        parts = [split(one) for one in fields]
        names = [name for name, _ in parts if name is not None]
        if len(set(names)) < len(names):
            return fields
        is_known = [name is not None and self._types.of(value).is_known for name, value in parts]
        known = [one for one, first in zip(fields, is_known, strict=True) if first]
        return (*known, *(one for one, first in zip(fields, is_known, strict=True) if not first))


def _named(projection: plan.Projection) -> tuple[str | None, plan.Expression]:
    return projection.name, projection.value
