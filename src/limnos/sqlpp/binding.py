"""Binding with names that are found out step by step, and what a process needs to bind a statement.

May import the tree, the parser and the binder. Must not know who answers questions about names. Whoever binds here on an event loop gives a
number of expressions after which it stops; in a process there is none but the language's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from msgspec import Struct, structs

from limnos.sqlpp import tree
from limnos.sqlpp.binder import BoundQuery, Dataset, Synonym, UserFunction, View, bind
from limnos.sqlpp.definitions import arity_of, statements_of
from limnos.sqlpp.errors import BudgetSpent, Place
from limnos.sqlpp.parser import Span, parse
from limnos.sqlpp.printer import render
from limnos.sqlpp.values.tagged import tagged, untagged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.sqlpp.values.model import Value
    from limnos.sqlpp.values.tagged import Json

T = TypeVar("T")
Levels = tuple[str, ...]


class UnparsedQuery(tree.Expression, frozen=True):
    """A query as its text, which is parsed where it is bound: in a process, as it is long. `parameters`: how many `?` stand before it."""

    text: str
    parameters: int = 0


class UnparsedFunction(NamedTuple):
    """The functions of a name as their texts, and the number of arguments of a call: parsed in a process where they are long."""

    dataverse: Levels
    name: str
    arity: int
    texts: tuple[str, ...]

    def parsed(self) -> UserFunction | None:
        """The function that is called, None where none takes so many arguments. Raises SqlppError."""
        found = {arity_of(each): each for each in statements_of(self.texts, tree.CreateFunction)}
        one = found.get(self.arity) or found.get(tree.VARIADIC)
        return None if one is None else UserFunction(self.dataverse, self.name, one.parameters, one.body)


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
        """A function that somebody wrote. Raises BudgetSpent for one whose text is too long to be parsed here."""
        otherwise: UserFunction | UnparsedFunction | None = None
        found = self._ask(Question("function", dataverse, name, arity), otherwise)
        if isinstance(found, UnparsedFunction):
            raise BudgetSpent
        return found


class Binding(NamedTuple):
    """A query to be bound, and what its names rest on beside the tree of names."""

    body: tree.Expression
    dataverse: Levels
    parameters: Mapping[str | int, Value]
    moment: Mapping[str, Value]
    declared: tuple[tree.DeclareFunction, ...] = ()
    variables: tuple[str, ...] = ()

    def bind(self, known: Known, *, nodes_max: int | None = None) -> BoundQuery:
        """Bind the query. Raises SqlppError; BudgetSpent for one that is longer than `nodes_max`, or not parsed."""
        if nodes_max is not None and isinstance(self.body, UnparsedQuery):
            raise BudgetSpent
        return bind(
            self.body, known, dataverse=self.dataverse, parameters=self.parameters, moment=self.moment,
            declared=self.declared, variables=self.variables, nodes_max=nodes_max,
        )  # fmt: skip


def parsed_facts(facts: Mapping[Question, object]) -> dict[Question, object]:
    """Facts with the texts of views and functions parsed. Raises SqlppError."""
    return {question: _parsed(fact) for question, fact in facts.items()}


def _parsed(fact: object) -> object:
    if isinstance(fact, View):
        return structs.replace(fact, body=parsed_query(fact.body))
    return fact.parsed() if isinstance(fact, UnparsedFunction) else fact


def parsed_query(body: tree.Expression) -> tree.Expression:
    """The query of a text; what is parsed already stays. Raises SqlppError."""
    if not isinstance(body, UnparsedQuery):
        return body
    (found,) = parse(body.text, Span("", 0, 0, body.at, body.parameters))
    if not isinstance(found.statement, tree.QueryStatement):
        raise TypeError(f"a query was expected, not {type(found.statement).__name__}")
    return found.statement.body


class _Text(Struct, frozen=True):
    """A query as its text; of one that was parsed here, as the printer writes it."""

    text: str
    at: Place
    parameters: int

    @classmethod
    def of(cls, body: tree.Expression) -> _Text:
        """The text of a query."""
        if isinstance(body, UnparsedQuery):
            return cls(body.text, body.at, body.parameters)
        return cls(render(body), body.at, 0)

    def body(self) -> tree.Expression:
        """The query. Raises SqlppError."""
        return parsed_query(UnparsedQuery(self.at, self.text, self.parameters))


class _Fact(Struct, frozen=True):
    """What is known about a name: whether there is such a dataverse, or of which kind what it names is, if it is there."""

    question: Question
    kind: str
    dataverse: Levels = ()
    name: str = ""
    parameters: tuple[str, ...] | None = None
    body: _Text | None = None
    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, question: Question, fact: object) -> _Fact:
        """A fact as it travels."""
        match fact:
            case View(dataverse, name, body):
                return cls(question, "view", dataverse, name, body=_Text.of(body))
            case UserFunction(dataverse, name, parameters, body):
                return cls(question, "function", dataverse, name, parameters, _Text.of(body))
            case UnparsedFunction(dataverse, name, _, texts):
                return cls(question, "functions", dataverse, name, texts=texts)
            case Dataset(dataverse, name):
                return cls(question, "dataset", dataverse, name)
            case Synonym(dataverse, name):
                return cls(question, "synonym", dataverse, name)
        return cls(question, "there" if fact else "absent" if fact is None else "not there")

    def value(self) -> object:
        """The fact again. Raises SqlppError."""
        if self.body is not None:
            body = self.body.body()
            if self.kind == "view":
                return View(self.dataverse, self.name, body)
            return UserFunction(self.dataverse, self.name, self.parameters, body)
        if self.kind == "functions":
            return UnparsedFunction(self.dataverse, self.name, self.question.arity, self.texts).parsed()
        if self.kind in ("dataset", "synonym"):
            return (Dataset if self.kind == "dataset" else Synonym)(self.dataverse, self.name)
        return {"there": True, "not there": False, "absent": None}[self.kind]


class PackedBinding(Struct, frozen=True):
    """A binding and what is known, as they travel to a process: texts, names and tagged values."""

    body: _Text
    dataverse: Levels
    parameters: tuple[tuple[str | int, object], ...]
    moment: tuple[tuple[str, object], ...]
    declared: tuple[str, ...]
    variables: tuple[str, ...]
    facts: tuple[_Fact, ...]

    @classmethod
    def of(cls, binding: Binding, known: Known) -> PackedBinding:
        """Both, to be encoded."""
        return cls(
            _Text.of(binding.body), binding.dataverse, tuple((name, tagged(value)) for name, value in binding.parameters.items()),
            tuple((name, tagged(value)) for name, value in binding.moment.items()), tuple(map(render, binding.declared)),
            binding.variables, tuple(_Fact.of(*each) for each in known.facts.items()),
        )  # fmt: skip

    def unpacked(self) -> tuple[Binding, Known]:
        """Both again, parsed. Raises SqlppError."""
        declared = [parse(text)[0].statement for text in self.declared]
        binding = Binding(
            self.body.body(),
            self.dataverse,
            {name: untagged(cast("Json", value)) for name, value in self.parameters},
            {name: untagged(cast("Json", value)) for name, value in self.moment},
            tuple(each for each in declared if isinstance(each, tree.DeclareFunction)),
            self.variables,
        )
        return binding, Known({fact.question: fact.value() for fact in self.facts})
