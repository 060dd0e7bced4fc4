"""What a body in SQL++ names: the datasets, views, synonyms and functions that a view or a function needs, as objects of the tree.

May import the rooms below. Knows no wire format. A body is bound twice: wholly, so that nothing in it is wrong, and by its surface alone, where
views and functions are taken for what they are called, so that what it names itself is known.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.model.kinds import Kind
from limnos.names import canonical
from limnos.services.sqlpp.names import NODES_SHORT, bind_with_names, function_find, source_find
from limnos.services.sqlpp.node_limits import PARSING_SLOTS
from limnos.sqlpp import bind, tree
from limnos.sqlpp.binder import BoundDataset, BoundSynonym, BoundView, UserFunction
from limnos.sqlpp.binding import parsed_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from limnos.names.path import Levels
    from limnos.services.request.request_view import RequestView
    from limnos.services.sqlpp.session import StatementSession
    from limnos.sqlpp.binder import NameResolver
    from limnos.sqlpp.binding import KnownNames

DependencyName = tuple["Levels", str]


class BodyDependencies(NamedTuple):
    """Names of what a body needs: sources (datasets, views), functions with their arity, synonyms."""

    sources: tuple[DependencyName, ...] = ()
    functions: tuple[tuple[Levels, str, int], ...] = ()
    synonyms: tuple[DependencyName, ...] = ()


class _DependencyRecorder:
    """Names as they are, but with nothing in views and functions, `own` excepted; notes what was there."""

    def __init__(self, names: NameResolver, own: UserFunction | None) -> None:
        self._names = names
        self._own = own
        self.sources: dict[DependencyName, None] = {}
        self.functions: dict[tuple[Levels, str, int], None] = {}
        self.synonyms: dict[DependencyName, None] = {}

    def has_dataverse(self, dataverse: Levels) -> bool:
        """As it is."""
        return self._names.has_dataverse(dataverse)

    def resolve(self, dataverse: Levels, name: str) -> BoundDataset | BoundView | BoundSynonym | None:
        """A view is a dataset here."""
        found = self._names.resolve(dataverse, name)
        if isinstance(found, BoundSynonym):
            self.synonyms[dataverse, name] = None
            return found
        if found is None:
            return None
        self.sources[dataverse, name] = None
        return BoundDataset(dataverse, name)

    def function(self, dataverse: Levels, name: str, *, arity: int) -> UserFunction | None:
        """A function whose body is nothing."""
        found = self._names.function(dataverse, name, arity=arity)
        if found is None or found is self._own:
            return found
        self.functions[dataverse, name, -1 if found.parameters is None else arity] = None
        return UserFunction(dataverse, name, found.parameters, tree.Null(found.body.at))


def needs_text(needs: BodyDependencies) -> str:
    """What is needed as the metadata has it, as JSON: datasets, functions with their arity, types, and synonyms where there are any."""
    found: list[list[tuple[str, ...]]] = [
        [(canonical.encode(dataverse), name) for dataverse, name in needs.sources],
        [(canonical.encode(dataverse), name, str(arity)) for dataverse, name, arity in needs.functions],
        [],
    ]
    if needs.synonyms:
        found.append([(canonical.encode(dataverse), name) for dataverse, name in needs.synonyms])
    return msgspec.json.encode(found).decode()


async def needs_of(
    session: StatementSession, body: tree.Expression, *, dataverse: Levels, within: Callable[[NameResolver], NameResolver],
    own: UserFunction | None = None,
) -> BodyDependencies:  # fmt: skip
    """Return what a body needs that lies in a dataverse. Raises SqlppError for what is wrong in it, PermissionDenied.

    `within` adds to the names what the body may see by itself: the object that is about to be made. `own` is a function whose body is meant,
    where `body` is a call of it.
    """
    ctx = session.ctx

    def run(known: KnownNames, nodes_max: int | None = NODES_SHORT) -> BodyDependencies:
        bind(body, within(known), dataverse=dataverse, moment=session.moment, nodes_max=nodes_max)
        surface = _DependencyRecorder(within(known), own)
        bind(body, surface, dataverse=dataverse, moment=session.moment, nodes_max=nodes_max)
        return BodyDependencies(tuple(surface.sources), tuple(surface.functions), tuple(surface.synonyms))

    def whole(known: KnownNames) -> BodyDependencies:
        known.facts.update(parsed_facts(known.facts))
        return run(known, None)

    async def elsewhere(known: KnownNames) -> BodyDependencies:
        async with PARSING_SLOTS.of(ctx.services):
            return await asyncio.to_thread(whole, known)

    return await bind_with_names(ctx, run, elsewhere=elsewhere)


def ids_of(request_view: RequestView, needs: BodyDependencies) -> tuple[int, ...]:
    """The ids of what is needed, as far as it is there and seen."""
    named: Iterable[DependencyName] = (*needs.sources, *needs.synonyms)
    nodes = [source_find(request_view, (*dataverse, name)) for dataverse, name in named]
    nodes += [function_find(request_view, (*dataverse, name)) for dataverse, name, _ in needs.functions]
    return tuple(node.id for node in nodes if node is not None and node.kind is not Kind.NAMESPACE)
