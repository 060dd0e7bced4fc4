"""Bound expressions: the nodes of a plan that have a value.

May import `values.model`, `functions` for the entry of a call, and positions. Must not know names of variables except
for messages, nor the computation of values.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from limnos.sqlpp.errors import TextPosition
from limnos.sqlpp.functions.table import Function
from limnos.sqlpp.values.model import Value


class PlanNode(Struct, frozen=True):
    """A part of a bound statement, and its position in the text."""

    at: TextPosition


class Expression(PlanNode, frozen=True):
    """A node that has a value."""


class EncodedPlan(Expression, frozen=True):
    """A whole plan, still encoded, of a statement that a worker process bound. It is never part of another plan."""

    data: bytes


class Constant(Expression, frozen=True):
    """A known value: a literal or a parameter of the request."""

    value: Value


class Local(Expression, frozen=True):
    """A reference to a variable by its slot."""

    slot: int
    name: str


class Scan(Expression, frozen=True):
    """All objects of a dataset, in any order. `dataverse` and `name` are the dataset's own, with synonyms resolved."""

    dataverse: tuple[str, ...]
    name: str


class FieldOf(Expression, frozen=True):
    """Access to a field: `base.name`."""

    base: Expression
    name: str


class ElementOf(Expression, frozen=True):
    """Access to an array element: `base[index]`."""

    base: Expression
    index: Expression


class SliceOf(Expression, frozen=True):
    """The items of `base[start:end]`; if `end` is None, up to the last item."""

    base: Expression
    start: Expression
    end: Expression | None


class FunctionCall(Expression, frozen=True):
    """A call of a function in the table."""

    function: Function
    arguments: tuple[Expression, ...]


class Aggregate(Expression, frozen=True):
    """An aggregate over the rows of the current group: `argument` is evaluated for each row; None counts rows."""

    function: Function
    argument: Expression | None
    distinct: bool
    filter: Expression | None


class Operate(Expression, frozen=True):
    """Operators of one precedence, applied from the left."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]


class Negated(Expression, frozen=True):
    """Logical negation: NOT."""

    operand: Expression


class SignOf(Expression, frozen=True):
    """A sign before a number."""

    minus: bool
    operand: Expression


class Exists(Expression, frozen=True):
    """Whether a collection has an item."""

    operand: Expression


class Between(Expression, frozen=True):
    """The test `value [NOT] BETWEEN low AND high`."""

    negated: bool
    value: Expression
    low: Expression
    high: Expression


class IsTest(Expression, frozen=True):
    """The test `value IS [NOT] NULL`, and the tests for MISSING, UNKNOWN and KNOWN."""

    negated: bool
    value: Expression
    test: Literal["null", "missing", "unknown", "known"]


class CaseOf(Expression, frozen=True):
    """CASE with its conditions in order; if there is a subject, they are values to compare it with."""

    subject: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


class Quantified(Expression, frozen=True):
    """SOME, EVERY, SOME AND EVERY: the variables' slots with their sources, and the condition."""

    kind: Literal["some", "every", "some and every"]
    bindings: tuple[tuple[int, Expression], ...]
    condition: Expression


class ArrayOf(Expression, frozen=True):
    """An array constructor."""

    items: tuple[Expression, ...]


class BagOf(Expression, frozen=True):
    """A multiset constructor."""

    items: tuple[Expression, ...]


class ObjectOf(Expression, frozen=True):
    """An object constructor: names and values, both expressions."""

    pairs: tuple[tuple[Expression, Expression], ...]


class LetIn(Expression, frozen=True):
    """An expression with values for some slots: an inlined call of a SQL++ function."""

    lets: tuple[tuple[int, Expression], ...]
    body: Expression
