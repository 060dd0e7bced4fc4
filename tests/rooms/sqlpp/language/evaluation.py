# SPDX-License-Identifier: Apache-2.0
"""Helpers that run the evaluator: text in, values out, over a few datasets, views, synonyms and functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from limnos.rooms.sqlpp.language import parse, parse_body
from limnos.rooms.sqlpp.language.binder import BoundDataset, BoundSynonym, BoundView, UserFunction, bind
from limnos.rooms.sqlpp.language.evaluator import Budget, results
from limnos.rooms.sqlpp.language.tree import DeclareFunction, QueryStatement
from limnos.rooms.sqlpp.language.values.model import Value

Dataverse = tuple[str, ...]


class NameWorld:
    """Names and objects: `{("Default",): {"t": [{…}]}}`; a text that begins with `view ` or `synonym ` defines one."""

    def __init__(
        self,
        dataverses: Mapping[Dataverse, Mapping[str, object]] | None = None,
        *,
        functions: Iterable[UserFunction] = (),
    ) -> None:
        self.dataverses = {("Default",): {}, **(dataverses or {})}
        self.functions = {
            (one.dataverse, one.name, None if one.parameters is None else len(one.parameters)): one for one in functions
        }

    def has_dataverse(self, dataverse: Dataverse) -> bool:
        """Return whether a dataverse exists."""
        return dataverse in self.dataverses

    def resolve(self, dataverse: Dataverse, name: str) -> BoundDataset | BoundView | BoundSynonym | None:
        """Return the meaning of a name."""
        entry = self.dataverses.get(dataverse, {}).get(name)
        if isinstance(entry, str):
            kind, _, text = entry.partition(" ")
            if kind == "view":
                return BoundView(dataverse, name, parse_body(text))
            *target, last = text.split(".")
            return BoundSynonym(tuple(target) or dataverse, last)
        return None if entry is None else BoundDataset(dataverse, name)

    def function(self, dataverse: Dataverse, name: str, *, arity: int) -> UserFunction | None:
        """A function by its arity, else one of any number of arguments."""
        return self.functions.get((dataverse, name, arity)) or self.functions.get((dataverse, name, None))

    def rows(self, dataverse: Dataverse, name: str) -> Iterable[Value]:
        """The objects of a dataset."""
        return self.dataverses[dataverse][name]  # type: ignore[return-value]


NOTHING = NameWorld()


def written(name: str, parameters: str | None, body: str, dataverse: Dataverse = ("Default",)) -> UserFunction:
    """Return a function in SQL++; parameters are names separated by spaces."""
    return UserFunction(dataverse, name, None if parameters is None else tuple(parameters.split()), parse_body(body))


def ask(text: str, world: NameWorld = NOTHING, *, budget: Budget | None = None, **more: object) -> list[Value]:
    """Return the results of the last statement; it can call functions that the other statements declare."""
    *before, last = [parsed.statement for parsed in parse(text)]
    declared = tuple(statement for statement in before if isinstance(statement, DeclareFunction))
    assert isinstance(last, QueryStatement)
    bound = bind(last.body, world, declared=declared, **more)  # type: ignore[arg-type]
    return list(results(bound, world.rows, budget=budget))


def value(text: str, world: NameWorld = NOTHING) -> Value:
    """The value of an expression."""
    (only,) = ask(text, world)
    return only
