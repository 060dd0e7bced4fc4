"""Binds statements: from the syntax tree, where names are text, to plans, where nothing is left to be looked up.

May import the tree, plans and the table of functions. Must not know a store: what there is it asks `NameResolver`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.sqlpp import plan
from limnos.sqlpp.binder.names import (
    BoundDataset,
    BoundSynonym,
    BoundView,
    EmptyNameResolver,
    NameResolver,
    UserFunction,
)
from limnos.sqlpp.binder.queries import QueryBinder
from limnos.sqlpp.binder.resources import RESOURCES
from limnos.sqlpp.binder.scope import VariableScope
from limnos.sqlpp.errors import too_deep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.sqlpp import tree
    from limnos.sqlpp.values.model import Value

__all__ = [
    "RESOURCES",
    "BoundDataset",
    "BoundQuery",
    "BoundSynonym",
    "BoundView",
    "EmptyNameResolver",
    "NameResolver",
    "UserFunction",
    "bind",
]


class BoundQuery(NamedTuple):
    """A query or an expression whose names are resolved."""

    expression: plan.Expression
    slots: int
    """How many variables it has."""
    reads: tuple[tuple[tuple[str, ...], str], ...]
    """Dataverse and name of each dataset that it reads, views and functions followed."""

    @property
    def is_query(self) -> bool:
        """Whether its result is its items, each a row, and not one value."""
        return isinstance(self.expression, plan.Subquery)


def bind(
    body: tree.Expression,
    names: NameResolver,
    *,
    dataverse: tuple[str, ...] = ("Default",),
    parameters: Mapping[str | int, Value] | None = None,
    moment: Mapping[str, Value] | None = None,
    declared: tuple[tree.DeclareFunction, ...] = (),
    variables: tuple[str, ...] = (),
    nodes_max: int | None = None,
) -> BoundQuery:
    """Bind a query, or a bare expression, in whose whole a name may be a dataset's.

    With `variables`, which have the first slots, it is an expression about their values: a bare name is a field of the only one.
    `moment` gives the values of functions that are the statement's own, such as `current_datetime`. Raises SqlppError: a name that means
    nothing (ASX1073, ASX1074, ASX1077, ASX1063, ASX1081), or what cannot be (ASX1079); and whatever `names` raises; BudgetSpent
    for a statement of more than `nodes_max` expressions.
    """
    binder = QueryBinder(
        names,
        dataverse=dataverse,
        parameters=parameters or {},
        moment=moment or {},
        declared=declared,
        nodes_max=nodes_max,
    )
    try:
        expression = binder.expression(body, _outermost(binder, variables))
    except RecursionError:
        raise too_deep() from None
    return BoundQuery(expression, binder.slots.count, tuple(binder.read))


def _outermost(binder: QueryBinder, variables: tuple[str, ...]) -> VariableScope:
    """What is in scope before anything is read."""
    if not variables:
        return VariableScope(None, sources=True)
    named = {name: binder.slots.new() for name in variables}
    return VariableScope(None, named, fields_of=tuple(named.items()))
