# SPDX-License-Identifier: Apache-2.0
"""Body dependencies: the datasets, views, synonyms and functions that the body of a view or function in SQL++ needs.

Must not know any wire format. A body is bound twice. The first binding expands views and functions, to find errors. The
second binding does not expand them, so it finds the names that the body itself uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from limnos.model.kinds import Kind
from limnos.names import canonical
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import bind, tree
from limnos.rooms.sqlpp.language.binder import BoundDataset, BoundSynonym, BoundView, NameResolver, UserFunction
from limnos.rooms.sqlpp.language.binding import ResolvedNames, parse_facts
from limnos.rooms.sqlpp.services.requests.names import NODES_SHORT, bind_with_names, function_find, source_find
from limnos.rooms.sqlpp.services.requests.node_limits import PARSING_SLOTS
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.request.request_view import RequestView

DependencyName = tuple["Levels", str]


class BodyDependencies(NamedTuple):
    """The names that a body uses: sources (datasets, views), functions with their arity, and synonyms."""

    sources: tuple[DependencyName, ...] = ()
    functions: tuple[tuple[Levels, str, int], ...] = ()
    synonyms: tuple[DependencyName, ...] = ()


class _DependencyRecorder:
    """A name resolver that records the names it resolves. It returns views as datasets, and functions except `own` with
    empty bodies, so that neither is expanded.
    """

    def __init__(self, names: NameResolver, own: UserFunction | None) -> None:
        self._names = names
        self._own = own
        self.sources: dict[DependencyName, None] = {}
        self.functions: dict[tuple[Levels, str, int], None] = {}
        self.synonyms: dict[DependencyName, None] = {}

    def has_dataverse(self, dataverse: Levels) -> bool:
        """Return whether a dataverse exists and is visible to the caller."""
        return self._names.has_dataverse(dataverse)

    def resolve(self, dataverse: Levels, name: str) -> BoundDataset | BoundView | BoundSynonym | None:
        """Resolve and record the name of a dataset, view or synonym. Views are returned as datasets, so that they are
        not expanded.
        """
        result = self._names.resolve(dataverse, name)
        if isinstance(result, BoundSynonym):
            self.synonyms[dataverse, name] = None
            return result
        if result is None:
            return None
        self.sources[dataverse, name] = None
        return BoundDataset(dataverse, name)

    def function(self, dataverse: Levels, name: str, *, arity: int) -> UserFunction | None:
        """Resolve and record a function. Its body is left empty, so that it is not inlined."""
        function = self._names.function(dataverse, name, arity=arity)
        if function is None or function is self._own:
            return function
        self.functions[dataverse, name, -1 if function.parameters is None else arity] = None
        return UserFunction(dataverse, name, function.parameters, tree.Null(function.body.at))


def needs_text(needs: BodyDependencies) -> str:
    """Return the dependencies as JSON for the metadata record: datasets and views, functions with their arity, an empty
    list of types, and synonyms if there are any.
    """
    results: list[list[tuple[str, ...]]] = [
        [(canonical.encode(dataverse), name) for dataverse, name in needs.sources],
        [(canonical.encode(dataverse), name, str(arity)) for dataverse, name, arity in needs.functions],
        [],
    ]
    if needs.synonyms:
        results.append([(canonical.encode(dataverse), name) for dataverse, name in needs.synonyms])
    return msgspec.json.encode(results).decode()


async def needs_of(
    session: StatementSession,
    body: tree.Expression,
    *,
    dataverse: Levels,
    within: Callable[[NameResolver], NameResolver],
    own: UserFunction | None = None,
) -> BodyDependencies:
    """Return the dependencies of a body.

    Args:
        session: The session of the statement.
        body: The body of a view or function.
        dataverse: The dataverse for unqualified names.
        within: Wraps a name resolver into one that includes the object being created.
        own: The function whose body is analysed, if `body` is a call of it.

    Raises:
        SqlppError: The body is invalid.
        PermissionDenied: The caller may not read an object.
        BadRequest: Views and functions refer to each other in a cycle.
    """
    ctx = session.ctx

    def run(known: ResolvedNames, nodes_max: int | None = NODES_SHORT) -> BodyDependencies:
        bind(body, within(known), dataverse=dataverse, moment=session.moment, nodes_max=nodes_max)
        surface = _DependencyRecorder(within(known), own)
        bind(body, surface, dataverse=dataverse, moment=session.moment, nodes_max=nodes_max)
        return BodyDependencies(tuple(surface.sources), tuple(surface.functions), tuple(surface.synonyms))

    def parse_and_run(known: ResolvedNames) -> BodyDependencies:
        known.facts.update(parse_facts(known.facts))
        return run(known, None)

    async def run_in_thread(known: ResolvedNames) -> BodyDependencies:
        async with PARSING_SLOTS.of(ctx.services):
            return await asyncio.to_thread(parse_and_run, known)

    return await bind_with_names(ctx, run, elsewhere=run_in_thread)


def ids_of(request_view: RequestView, needs: BodyDependencies) -> tuple[int, ...]:
    """Return the ids of the dependencies that exist and that are visible to the caller."""
    dependency_names: Iterable[DependencyName] = (*needs.sources, *needs.synonyms)
    nodes = [source_find(request_view, (*dataverse, name)) for dataverse, name in dependency_names]
    nodes += [function_find(request_view, (*dataverse, name)) for dataverse, name, _ in needs.functions]
    return tuple(node.id for node in nodes if node is not None and node.kind is not Kind.NAMESPACE)
