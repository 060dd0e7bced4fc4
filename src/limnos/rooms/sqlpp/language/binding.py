# SPDX-License-Identifier: Apache-2.0
"""Binding with incrementally resolved names, and the messages by which a worker process binds a statement.

Must not know the server's name resolver. On an event loop the number of expressions is limited and long texts are not
parsed: the caller then binds in a worker process after BudgetSpent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar, cast

from msgspec import Struct, structs

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.binder import (
    RESOURCES,
    BoundDataset,
    BoundQuery,
    BoundSynonym,
    BoundView,
    UserFunction,
    bind,
)
from limnos.rooms.sqlpp.language.binder.similarity import SIMILAR, Similarity
from limnos.rooms.sqlpp.language.definitions import arity_of, statements_of
from limnos.rooms.sqlpp.language.errors import BudgetSpent, TextPosition
from limnos.rooms.sqlpp.language.field_types import Types, with_field_types
from limnos.rooms.sqlpp.language.inference.field_order import with_known_fields_first
from limnos.rooms.sqlpp.language.metadata import METADATA
from limnos.rooms.sqlpp.language.metadata_types import METADATA_TYPES, NESTED_METADATA_TYPES
from limnos.rooms.sqlpp.language.parser import StatementSpan, parse
from limnos.rooms.sqlpp.language.printer import render
from limnos.rooms.sqlpp.language.sql_compat import as_sql
from limnos.rooms.sqlpp.language.values.model import Value
from limnos.rooms.sqlpp.language.values.tagged import Json, from_tagged_json, to_tagged_json

T = TypeVar("T")
Levels = tuple[str, ...]
_NESTED_TYPES_OF_METADATA: Types = {(METADATA, name): type_ for name, type_ in NESTED_METADATA_TYPES.items()}
_TYPES_OF_METADATA: Types = {(METADATA, name): type_ for name, type_ in METADATA_TYPES.items()}


class UnparsedQuery(tree.Expression, frozen=True):
    """A query that is not parsed yet, because it is too long to parse on the event loop.

    `parameters`: the count of `?` before it in the request.
    """

    text: str
    parameters: int = 0


class UnparsedFunction(NamedTuple):
    """The unparsed definitions of all functions with one name, and the arity of the call."""

    dataverse: Levels
    name: str
    arity: int
    texts: tuple[str, ...]

    def parse(self) -> UserFunction | None:
        """Return the function of the call's arity, else the variadic one, else None. Raises SqlppError for a syntax
        error.
        """
        functions = {arity_of(each): each for each in statements_of(self.texts, tree.CreateFunction)}
        one = functions.get(self.arity) or functions.get(tree.VARIADIC)
        return None if one is None else UserFunction(self.dataverse, self.name, one.parameters, one.body)


class NameLookup(NamedTuple):
    """A lookup for the name resolver; `arity` is for functions only."""

    about: str
    dataverse: Levels
    name: str = ""
    arity: int = 0


class ResolvedNames:
    """A resolver of already resolved names. For others it returns a placeholder and adds the lookup to `unresolved`."""

    def __init__(self, facts: dict[NameLookup, object] | None = None) -> None:
        self.facts: dict[NameLookup, object] = {} if facts is None else facts
        self.unresolved: dict[NameLookup, None] = {}

    def _resolve(self, lookup: NameLookup, otherwise: T) -> T:
        if lookup in self.facts:
            return cast("T", self.facts[lookup])
        self.unresolved[lookup] = None
        return otherwise

    def has_dataverse(self, dataverse: Levels) -> bool:
        """Return whether a dataverse exists; True as the placeholder if it is not resolved."""
        return self._resolve(NameLookup("dataverse", dataverse), otherwise=True)

    def resolve(self, dataverse: Levels, name: str) -> BoundDataset | BoundView | BoundSynonym | None:
        """Return the object with a name; an unresolved name is a dataset. Raises BudgetSpent for a view that is not
        parsed.
        """
        otherwise: BoundDataset | BoundView | BoundSynonym | None = BoundDataset(dataverse, name)
        result = self._resolve(NameLookup("dataset", dataverse, name), otherwise)
        if isinstance(result, BoundView) and isinstance(result.body, UnparsedQuery):
            raise BudgetSpent
        return result

    def function(self, dataverse: Levels, name: str, *, arity: int) -> UserFunction | None:
        """Return a user-defined function; None if the name is unresolved. Raises BudgetSpent for one that is not
        parsed.
        """
        otherwise: UserFunction | UnparsedFunction | None = None
        function = self._resolve(NameLookup("function", dataverse, name, arity), otherwise)
        if isinstance(function, UnparsedFunction):
            raise BudgetSpent
        return function


class QueryBinding(NamedTuple):
    """A query to bind, with all inputs of the binder except resolved names."""

    body: tree.Expression
    dataverse: Levels
    parameters: Mapping[str | int, Value]
    moment: Mapping[str, Value]
    declared: tuple[tree.DeclareFunction, ...] = ()
    variables: tuple[str, ...] = ()
    sql_compat: bool = False
    """Whether the query has the semantics of standard SQL (`sql_compat`)."""
    similarity: Similarity = SIMILAR
    ordered_fields: bool = True
    """Whether objects keep the order of SELECT; else fields of known types come first (`inference.field_order`)."""

    def bind(self, known: ResolvedNames, *, nodes_max: int | None = None) -> BoundQuery:
        """Bind the query. Raises SqlppError, and BudgetSpent if it has more than `nodes_max` expressions or is not
        parsed yet.
        """
        if nodes_max is not None and isinstance(self.body, UnparsedQuery):
            raise BudgetSpent
        bound = bind(
            as_sql(self.body) if self.sql_compat else self.body,
            known,
            dataverse=self.dataverse,
            parameters=self.parameters,
            moment=self.moment,
            declared=self.declared,
            variables=self.variables,
            similarity=self.similarity,
            nodes_max=nodes_max,
        )
        if any(dataverse == METADATA for dataverse, _ in bound.reads):
            bound = bound._replace(expression=with_field_types(bound.expression, _TYPES_OF_METADATA))
        if self.ordered_fields or self.variables or not _reads_no_data(bound):
            return bound  # the engine, which knows the types of datasets, orders the fields of a query over data
        return bound._replace(expression=with_known_fields_first(bound.expression, _NESTED_TYPES_OF_METADATA))


def _reads_no_data(bound: BoundQuery) -> bool:
    return all(dataverse == METADATA or dataverse[0] == RESOURCES for dataverse, _ in bound.reads)


def parse_facts(facts: Mapping[NameLookup, object]) -> dict[NameLookup, object]:
    """Parse the texts of the views and functions among resolved names. Raises SqlppError for a syntax error."""
    return {lookup: _parse_fact(fact) for lookup, fact in facts.items()}


def _parse_fact(fact: object) -> object:
    if isinstance(fact, BoundView):
        return structs.replace(fact, body=parse_query_once(fact.body))
    return fact.parse() if isinstance(fact, UnparsedFunction) else fact


def parse_query_once(body: tree.Expression) -> tree.Expression:
    """Parse a query that is not parsed yet; return a parsed query unchanged.

    Raises SqlppError for a syntax error, TypeError for a text that is not a query.
    """
    if not isinstance(body, UnparsedQuery):
        return body
    (statement,) = parse(body.text, StatementSpan(kind="", start=0, end=0, place=body.at, parameters=body.parameters))
    if not isinstance(statement.statement, tree.QueryStatement):
        raise TypeError(f"a query was expected, not {type(statement.statement).__name__}")
    return statement.statement.body


class _QueryText(Struct, frozen=True):
    """The text of a query; a parsed query is printed."""

    text: str
    at: TextPosition
    parameters: int

    @classmethod
    def of(cls, body: tree.Expression) -> _QueryText:
        """Convert a query to text; a parsed query is printed."""
        if isinstance(body, UnparsedQuery):
            return cls(body.text, body.at, body.parameters)
        return cls(render(body), body.at, 0)

    def body(self) -> tree.Expression:
        """Parse the text of the query to a syntax tree. Raises SqlppError for a syntax error."""
        return parse_query_once(UnparsedQuery(self.at, self.text, self.parameters))


class _NameFact(Struct, frozen=True, kw_only=True):
    """A resolved name, encoded for a worker process: its lookup and its result.

    `kind` is the kind of the object with the name; for a dataverse `there` or `not there`, for no object `absent`.
    """

    lookup: NameLookup
    kind: str
    dataverse: Levels = ()
    name: str = ""
    parameters: tuple[str, ...] | None = None
    body: _QueryText | None = None
    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, lookup: NameLookup, fact: object) -> _NameFact:
        """Encode a resolved name for a worker process."""
        match fact:
            case BoundView(dataverse, name, body):
                return cls(lookup=lookup, kind="view", dataverse=dataverse, name=name, body=_QueryText.of(body))
            case UserFunction(dataverse, name, parameters, body):
                return cls(
                    lookup=lookup,
                    kind="function",
                    dataverse=dataverse,
                    name=name,
                    parameters=parameters,
                    body=_QueryText.of(body),
                )
            case UnparsedFunction(dataverse, name, _, texts):
                return cls(lookup=lookup, kind="functions", dataverse=dataverse, name=name, texts=texts)
            case BoundDataset(dataverse, name):
                return cls(lookup=lookup, kind="dataset", dataverse=dataverse, name=name)
            case BoundSynonym(dataverse, name):
                return cls(lookup=lookup, kind="synonym", dataverse=dataverse, name=name)
        return cls(lookup=lookup, kind="there" if fact else "absent" if fact is None else "not there")

    def value(self) -> object:
        """Decode the resolved object. Raises SqlppError for a syntax error in its text."""
        if self.body is not None:
            body = self.body.body()
            if self.kind == "view":
                return BoundView(self.dataverse, self.name, body)
            return UserFunction(self.dataverse, self.name, self.parameters, body)
        if self.kind == "functions":
            return UnparsedFunction(self.dataverse, self.name, self.lookup.arity, self.texts).parse()
        if self.kind in ("dataset", "synonym"):
            return (BoundDataset if self.kind == "dataset" else BoundSynonym)(self.dataverse, self.name)
        return {"there": True, "not there": False, "absent": None}[self.kind]


class PackedBinding(Struct, frozen=True, kw_only=True):
    """A binding and its resolved names, encoded for a worker process: texts, names and tagged values."""

    body: _QueryText
    dataverse: Levels
    parameters: tuple[tuple[str | int, object], ...]
    moment: tuple[tuple[str, object], ...]
    declared: tuple[str, ...]
    variables: tuple[str, ...]
    facts: tuple[_NameFact, ...]
    sql_compat: bool = False
    similarity: Similarity = SIMILAR
    ordered_fields: bool = True

    @classmethod
    def of(cls, binding: QueryBinding, known: ResolvedNames) -> PackedBinding:
        """Encode a binding and its names."""
        return cls(
            body=_QueryText.of(binding.body),
            dataverse=binding.dataverse,
            parameters=tuple((name, to_tagged_json(value)) for name, value in binding.parameters.items()),
            moment=tuple((name, to_tagged_json(value)) for name, value in binding.moment.items()),
            declared=tuple(map(render, binding.declared)),
            variables=binding.variables,
            facts=tuple(_NameFact.of(*each) for each in known.facts.items()),
            sql_compat=binding.sql_compat,
            similarity=binding.similarity,
            ordered_fields=binding.ordered_fields,
        )

    def unpack(self) -> tuple[QueryBinding, ResolvedNames]:
        """Decode the binding and its names, and parse the texts. Raises SqlppError for a syntax error."""
        declared = [parse(text)[0].statement for text in self.declared]
        binding = QueryBinding(
            body=self.body.body(),
            dataverse=self.dataverse,
            parameters={name: from_tagged_json(cast("Json", value)) for name, value in self.parameters},
            moment={name: from_tagged_json(cast("Json", value)) for name, value in self.moment},
            declared=tuple(each for each in declared if isinstance(each, tree.DeclareFunction)),
            variables=self.variables,
            sql_compat=self.sql_compat,
            similarity=self.similarity,
            ordered_fields=self.ordered_fields,
        )
        return binding, ResolvedNames({fact.lookup: fact.value() for fact in self.facts})
