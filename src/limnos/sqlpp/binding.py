"""Binding with names that are found out step by step, and what a process needs to bind a statement.

May import the tree, the parser and the binder. Must not know who answers questions about names. Whoever binds here on an event loop gives a
number of expressions after which it stops; in a process there is none but the language's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from msgspec import structs

from limnos.sqlpp import tree
from limnos.sqlpp.binder import BoundQuery, Dataset, UserFunction, View, bind
from limnos.sqlpp.errors import BudgetSpent
from limnos.sqlpp.parser import Span, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.sqlpp.binder import Synonym
    from limnos.sqlpp.values.model import Value

T = TypeVar("T")
Levels = tuple[str, ...]


class UnparsedQuery(tree.Expression, frozen=True):
    """A query as its text, which is parsed where it is bound: in a process, as it is long. `parameters`: how many `?` stand before it."""

    text: str
    parameters: int = 0


class Question(NamedTuple):
    """What may be asked of the tree of names; `arity` is of functions alone."""

    about: str
    dataverse: Levels
    name: str = ""
    arity: int = 0


class Known:
    """The names that are known so far, as the binder asks for them; what it asks beyond them is noted."""

    def __init__(self, facts: dict[Question, object] | None = None) -> None:
        self.facts: dict[Question, object] = {} if facts is None else facts
        self.wanted: dict[Question, None] = {}

    def _ask(self, question: Question, otherwise: T) -> T:
        if question in self.facts:
            return cast("T", self.facts[question])
        self.wanted[question] = None
        return otherwise

    def has_dataverse(self, dataverse: Levels) -> bool:
        """Whether there is such a dataverse."""
        return self._ask(Question("dataverse", dataverse), otherwise=True)

    def resolve(self, dataverse: Levels, name: str) -> Dataset | View | Synonym | None:
        """What a name in a dataverse is. Raises BudgetSpent for a view whose text is too long to be parsed here."""
        otherwise: Dataset | View | Synonym | None = Dataset(dataverse, name)
        found = self._ask(Question("dataset", dataverse, name), otherwise)
        if isinstance(found, View) and isinstance(found.body, UnparsedQuery):
            raise BudgetSpent
        return found

    def function(self, dataverse: Levels, name: str, *, arity: int) -> UserFunction | None:
        """A function that somebody wrote."""
        otherwise: UserFunction | None = None
        return self._ask(Question("function", dataverse, name, arity), otherwise)


class Binding(NamedTuple):
    """A query to be bound, and what its names rest on beside the tree of names."""

    body: tree.Expression
    dataverse: Levels
    parameters: Mapping[str | int, Value]
    moment: Mapping[str, Value]
    declared: tuple[tree.DeclareFunction, ...] = ()
    variables: tuple[str, ...] = ()

    def bind(self, known: Known, nodes_max: int | None = None) -> BoundQuery:
        """Bind the query. Raises SqlppError; BudgetSpent for one that is longer than `nodes_max`, or not parsed."""
        if nodes_max is not None and isinstance(self.body, UnparsedQuery):
            raise BudgetSpent
        return bind(
            self.body, known, dataverse=self.dataverse, parameters=self.parameters, moment=self.moment,
            declared=self.declared, variables=self.variables, nodes_max=nodes_max,
        )  # fmt: skip

    def parsed(self) -> Binding:
        """The same with its text parsed. Raises SqlppError."""
        return self._replace(body=parsed_query(self.body))


def parsed_facts(facts: Mapping[Question, object]) -> dict[Question, object]:
    """Facts with the texts of views parsed. Raises SqlppError."""
    return {
        question: structs.replace(fact, body=parsed_query(fact.body)) if isinstance(fact, View) else fact
        for question, fact in facts.items()
    }


def parsed_query(body: tree.Expression) -> tree.Expression:
    """The query of a text; what is parsed already stays. Raises SqlppError."""
    if not isinstance(body, UnparsedQuery):
        return body
    (found,) = parse(body.text, Span("", 0, 0, body.at, body.parameters))
    if not isinstance(found.statement, tree.QueryStatement):
        raise TypeError(f"a query was expected, not {type(found.statement).__name__}")
    return found.statement.body
