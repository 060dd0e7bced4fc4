# SPDX-License-Identifier: Apache-2.0
"""Bound expressions: the nodes of a plan that have a value.

Must not know names of variables (except for messages) or the computation of values.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from limnos.rooms.sqlpp.language.errors import TextPosition
from limnos.rooms.sqlpp.language.functions.table import Function
from limnos.rooms.sqlpp.language.values.model import Value


class PlanNode(Struct, frozen=True):
    """Base class of plan nodes: a part of a bound statement, with its position in the text."""

    at: TextPosition


class Expression(PlanNode, frozen=True):
    """Base class of the plan nodes that have a value."""


class EncodedPlan(Expression, frozen=True):
    """A complete plan that a worker process bound and that is still encoded. It is never part of another plan."""

    data: bytes


class Constant(Expression, frozen=True):
    """A constant value: a literal or a parameter of the request."""

    value: Value


class Local(Expression, frozen=True):
    """A reference to a variable by its slot."""

    slot: int
    name: str


class Scan(Expression, frozen=True):
    """All objects of a dataset, in any order. `dataverse` and `name` are those of the dataset, with synonyms
    resolved.
    """

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
    """A call of a built-in function, which is an entry of the table of functions."""

    function: Function
    arguments: tuple[Expression, ...]


class Aggregate(Expression, frozen=True, kw_only=True):
    """An aggregate over the rows of the current group: `argument` is evaluated for each row; None counts rows."""

    function: Function
    argument: Expression | None
    distinct: bool
    filter: Expression | None


class Operate(Expression, frozen=True):
    """A chain of operators of the same precedence, applied from left to right."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]


class Negated(Expression, frozen=True):
    """The NOT operator on a boolean."""

    operand: Expression


class SignOf(Expression, frozen=True):
    """A unary plus or minus on a number."""

    minus: bool
    operand: Expression


class Exists(Expression, frozen=True):
    """The EXISTS operator: whether a collection has an item."""

    operand: Expression


class Between(Expression, frozen=True, kw_only=True):
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
    """A CASE expression with its branches in order; with a subject, the conditions are values to compare it with."""

    subject: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


class Quantified(Expression, frozen=True):
    """A quantified expression (SOME, EVERY, SOME AND EVERY): the slots of its variables with their sources, and a
    condition.
    """

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
    """An expression with values assigned to slots: an inlined call of a SQL++ function."""

    lets: tuple[tuple[int, Expression], ...]
    body: Expression
