# SPDX-License-Identifier: Apache-2.0
"""Expressions: literals, variables, paths, calls, operations, constructors.

Must not know queries, although a query may be used as an expression.
"""

from __future__ import annotations

from typing import Literal

from limnos.rooms.sqlpp.language.tree.base import DottedName, Expression, SyntaxNode

Level = int


class MissingLiteral(Expression, frozen=True):
    """The literal MISSING, the value of an absent field."""


class Null(Expression, frozen=True):
    """The literal NULL."""


class Boolean(Expression, frozen=True):
    """The literal TRUE or FALSE."""

    value: bool


class Integer(Expression, frozen=True):
    """A 64-bit integer literal, never negative: a minus is an operator."""

    value: int


class Decimal(Expression, frozen=True):
    """A number literal with a fraction or an exponent, as text. With a final `f` it is a float, else a double."""

    text: str


class String(Expression, frozen=True):
    """A string literal: its value, without quotes and with escapes resolved."""

    value: str


class Parameter(Expression, frozen=True):
    """A reference to a parameter of the request: by name, or by position from 1. `?` takes the next position."""

    name: str | int


class Variable(Expression, frozen=True):
    """An identifier that begins a path: a variable, a dataset or a field, which the binder determines."""

    name: str


class FieldStep(SyntaxNode, frozen=True):
    """Access to a field by its name: `.name`."""

    name: str


class ElementStep(SyntaxNode, frozen=True):
    """Access to an array element: `[index]`."""

    index: Expression


class SliceStep(SyntaxNode, frozen=True):
    """The step `[start:end]`, both optional; `[]` selects all items."""

    start: Expression | None
    end: Expression | None


class ItemsStep(SyntaxNode, frozen=True):
    """The step `[*]`, which applies the following steps to each item."""


Step = FieldStep | ElementStep | SliceStep | ItemsStep


class PathExpression(Expression, frozen=True):
    """A path: a base value and the steps into it, in order. `a.b.c` is one flat node with two steps."""

    base: Expression
    steps: tuple[Step, ...]


class OrderItem(SyntaxNode, frozen=True):
    """One expression of ORDER BY. `nulls` is FIRST or LAST for NULL and MISSING, None if it is not stated."""

    value: Expression
    descending: bool
    nulls: Literal["first", "last"] | None


class FrameEdge(SyntaxNode, frozen=True):
    """A bound of a window's frame; a `value` of None is UNBOUNDED."""

    side: Literal["preceding", "following", "current row"]
    value: Expression | None


class Frame(SyntaxNode, frozen=True, kw_only=True):
    """The frame of a window: the rows around the current row that the function uses. An `end` of None is the current
    row.
    """

    mode: Literal["range", "rows", "groups"]
    start: FrameEdge
    end: FrameEdge | None
    exclude: Literal["current row", "group", "ties", "no others"] | None


class NamedField(SyntaxNode, frozen=True):
    """The construct `variable AS name`: a field of the objects of a group or window variable."""

    variable: str
    name: str


class GroupVariable(SyntaxNode, frozen=True):
    """The variable of GROUP AS or of a window; `fields` of None means all variables in scope."""

    name: str
    fields: tuple[NamedField, ...] | None


class Window(SyntaxNode, frozen=True, kw_only=True):
    """The OVER clause of a window function: PARTITION BY, ORDER BY and frame, with the modifiers before OVER."""

    variable: GroupVariable | None
    partition: tuple[Expression, ...]
    order: tuple[OrderItem, ...]
    frame: Frame | None
    from_end: Literal["first", "last"] | None
    nulls: Literal["respect", "ignore"] | None


class Call(Expression, frozen=True, kw_only=True):
    """A function call. `library` is the name before a `#`, `star` marks `count(*)`."""

    function: DottedName
    library: str | None
    arguments: tuple[Expression, ...]
    distinct: bool
    star: bool
    filter: Expression | None
    window: Window | None


class UnaryOperation(Expression, frozen=True):
    """A prefix operator with its operand: a sign, NOT or EXISTS."""

    operator: Literal["+", "-", "not", "exists"]
    operand: Expression


class OperationChain(Expression, frozen=True):
    """Operators of the same precedence, applied from left to right: one operator fewer than operands.

    A chain of ten thousand ANDs is one flat node. Comparisons have two operands.
    """

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]


class BetweenExpression(Expression, frozen=True, kw_only=True):
    """The test `value [NOT] BETWEEN low AND high`."""

    negated: bool
    value: Expression
    low: Expression
    high: Expression


class IsExpression(Expression, frozen=True):
    """The test `value IS [NOT] NULL`, and the tests for MISSING, UNKNOWN and KNOWN; VALUED is parsed as KNOWN."""

    negated: bool
    value: Expression
    test: Literal["null", "missing", "unknown", "known"]


class CaseBranch(SyntaxNode, frozen=True):
    """One branch of a CASE: `WHEN condition THEN result`."""

    condition: Expression
    result: Expression


class Case(Expression, frozen=True):
    """A CASE expression. With a subject, the conditions are values to compare it with."""

    subject: Expression | None
    branches: tuple[CaseBranch, ...]
    otherwise: Expression | None


class QuantifierBinding(SyntaxNode, frozen=True):
    """The construct `name IN source` in a quantified expression."""

    name: str
    source: Expression


class QuantifiedExpression(Expression, frozen=True):
    """A quantified expression: SOME, EVERY, or SOME AND EVERY, which is like EVERY but false for an empty
    collection.
    """

    kind: Literal["some", "every", "some and every"]
    bindings: tuple[QuantifierBinding, ...]
    condition: Expression


class Array(Expression, frozen=True):
    """An array constructor: `[a, b]`, or `(a, b)`."""

    items: tuple[Expression, ...]


class Bag(Expression, frozen=True):
    """A multiset constructor: `{{ a, b }}`."""

    items: tuple[Expression, ...]


class ObjectPair(SyntaxNode, frozen=True):
    """A field of an object constructor. An omitted name is that of the value's last step."""

    name: Expression
    value: Expression


class Object(Expression, frozen=True):
    """An object constructor: `{ name: value }`."""

    pairs: tuple[ObjectPair, ...]


PRIMARY: Level = 14

LEVELS: dict[str, Level] = {
    "or": 1,
    "and": 2,
    "=": 4,
    "!=": 4,
    "<": 4,
    ">": 4,
    "<=": 4,
    ">=": 4,
    "~=": 4,
    "in": 4,
    "not in": 4,
    "is distinct from": 4,
    "is not distinct from": 4,
    "like": 7,
    "not like": 7,
    "||": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "div": 10,
    "mod": 10,
    "^": 11,
}
"""The precedence of each infix operator. CHAINED lists the levels whose operators may follow one another."""

NOT: Level = 3
BETWEEN: Level = 5
IS: Level = 6
SIGN: Level = 12
POSTFIX: Level = 13
CHAINED = frozenset({1, 2, 8, 9, 10})


def level_of(node: Expression) -> Level:
    """Return the precedence of an expression's outermost operator; 0 if it always needs parentheses as an operand."""
    match node:
        case OperationChain(operators=operators):
            return LEVELS[operators[0]]
        case UnaryOperation(operator=operator):
            return NOT if operator == "not" else SIGN
        case BetweenExpression():
            return BETWEEN
        case IsExpression():
            return IS
        case PathExpression():
            return POSTFIX
        case QuantifiedExpression():
            return 0
        case _:
            return PRIMARY
