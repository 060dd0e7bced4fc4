# SPDX-License-Identifier: Apache-2.0
"""Binds statements: from the syntax tree, where names are text, to plans, where every name is resolved.

Must not know a store: names are resolved by a `NameResolver`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import structs

from limnos.rooms.sqlpp.language import plan, tree
from limnos.rooms.sqlpp.language.binder.names import (
    BoundDataset,
    BoundSynonym,
    BoundView,
    EmptyNameResolver,
    NameResolver,
    UserFunction,
)
from limnos.rooms.sqlpp.language.binder.queries import QueryBinder
from limnos.rooms.sqlpp.language.binder.resources import RESOURCES
from limnos.rooms.sqlpp.language.binder.scope import VariableScope
from limnos.rooms.sqlpp.language.binder.similarity import SIMILAR, Similarity
from limnos.rooms.sqlpp.language.errors import too_deep
from limnos.rooms.sqlpp.language.values.model import Value


class BoundQuery(NamedTuple):
    """A query or an expression whose names are resolved: its plan, the count of its slots, and the datasets that it
    reads.
    """

    expression: plan.Expression
    slots: int
    """The number of its variables."""
    reads: tuple[tuple[tuple[str, ...], str], ...]
    """Dataverse and name of each dataset that it reads, directly or through views and functions."""

    @property
    def is_query(self) -> bool:
        """Whether the result is a sequence of rows; otherwise it is one value."""
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
    similarity: Similarity = SIMILAR,
    nodes_max: int | None = None,
) -> BoundQuery:
    """Bind a query or a bare expression.

    Args:
        body: The query. It may consist of the name of a dataset alone.
        names: Resolves names of datasets, views and functions.
        dataverse: The dataverse of unqualified names.
        parameters: Values of named (`$a`) and positional parameters.
        moment: Values of functions that are constant within a statement, such as `current_datetime`.
        declared: Functions that the request declares.
        variables: Variables that the caller binds. They get the first slots; if there is only one, a bare name is a
            field of it.
        similarity: The similarity function and threshold of `~=`.
        nodes_max: The largest number of expressions, including those of inlined views and functions. None for
            `NODES_MAX`, beyond which SqlppError is raised.

    Raises:
        SqlppError: A name is unknown (ASX1073, ASX1074, ASX1077, ASX1063, ASX1081) or the query is invalid (ASX1079).
        BudgetSpent: The statement has more than `nodes_max` expressions.
        Exception: Any error that `names` raises.
    """
    binder = QueryBinder(
        names,
        dataverse=dataverse,
        parameters=parameters or {},
        moment=moment or {},
        declared=declared,
        similarity=similarity,
        nodes_max=nodes_max,
    )
    try:
        expression = _as_query(binder.expression(body, _outermost(binder, variables)))
    except RecursionError:
        raise too_deep() from None
    return BoundQuery(expression, binder.slots.count, tuple(binder.read))


def _as_query(expression: plan.Expression) -> plan.Expression:
    """Return an inlined call of a function whose body is a query as that query, with the arguments as LET variables;
    another expression unchanged.
    """
    if not isinstance(expression, plan.LetIn):
        return expression
    body = _as_query(expression.body)
    if not isinstance(body, plan.Subquery):
        return expression
    lets = tuple(plan.Let(expression.at, slot, value) for slot, value in expression.lets)
    return plan.Subquery(body.at, structs.replace(body.query, lets=(*lets, *body.query.lets)))


def _outermost(binder: QueryBinder, variables: tuple[str, ...]) -> VariableScope:
    """Return the outermost scope. It has the caller's variables; without any, an unknown identifier is a dataset."""
    if not variables:
        return VariableScope(None, sources=True)
    slots_by_name = {name: binder.slots.new() for name in variables}
    return VariableScope(None, slots_by_name, fields_of=tuple(slots_by_name.items()))
