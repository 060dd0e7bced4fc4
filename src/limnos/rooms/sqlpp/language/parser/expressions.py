# SPDX-License-Identifier: Apache-2.0
"""Parses expressions: operators by precedence, operands, constructors.

Must not know statements; a subclass parses queries inside expressions. Operators are parsed with an explicit stack, so
a long chain of operators does not deepen the recursion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.errors import TextPosition, syntax
from limnos.rooms.sqlpp.language.parser.cursor import TokenCursor
from limnos.rooms.sqlpp.language.tokens import (
    DOUBLE,
    FLOAT,
    IDENTIFIER,
    INTEGER,
    NUMBERED,
    PARAMETER,
    QUOTED,
    STRING,
    Token,
)
from limnos.rooms.sqlpp.language.tree.expressions import BETWEEN, CHAINED, IS, LEVELS, NOT, PRIMARY

QUERY_STARTS = ("SELECT", "FROM", "WITH", "LET", "LETTING")
QUANTIFIERS = ("SOME", "ANY", "EVERY")
SIGNS = ("+", "-", "EXISTS", "NOT")

_SIGNS: dict[str, Literal["+", "-", "not", "exists"]] = {"+": "+", "-": "-", "NOT": "not", "EXISTS": "exists"}

_TESTS: dict[str, Literal["null", "missing", "unknown", "known"]] = {
    "NULL": "null",
    "MISSING": "missing",
    "UNKNOWN": "unknown",
    "KNOWN": "known",
    "VALUED": "known",
}
_OPERATORS = {
    "OR": "or",
    "AND": "and",
    "IN": "in",
    "LIKE": "like",
    "DIV": "div",
    "MOD": "mod",
    "%": "mod",
    "<>": "!=",
} | {sign: sign for sign in LEVELS if not sign[0].isalpha()}

_ARRAY_STEPS = ("INSERT", "DELETE", "UPDATE")
"""The words after a parenthesis that begins the next step of an UPDATE, and no arguments."""


class _OpenOperator:
    """An infix operator on the parser's stack, with its left operands; the right operand is not parsed yet."""

    __slots__ = ("at", "level", "negated", "operands", "operators")

    def __init__(self, level: int, at: TextPosition, operator: str, operands: list[tree.Expression]) -> None:
        self.level = level
        self.at = at
        self.operators = [operator]
        self.operands = operands
        self.negated = False

    def to_expression(self, operand: tree.Expression) -> tree.Expression:
        """Return the node of the operation, given its last operand."""
        operands = [*self.operands, operand]
        if self.level == NOT:
            return tree.UnaryOperation(self.at, "not", operand)
        if self.level == BETWEEN:
            value, low, high = operands
            return tree.BetweenExpression(at=self.at, negated=self.negated, value=value, low=low, high=high)
        return tree.OperationChain(self.at, tuple(self.operators), tuple(operands))

    @property
    def waits_for_and(self) -> bool:
        """Whether the operator is a BETWEEN whose AND is not parsed yet."""
        return self.level == BETWEEN and len(self.operands) == 1


class _LeftOperand:
    """The last parsed operand, and the precedence of its outermost operator."""

    __slots__ = ("level", "node")

    def __init__(self, node: tree.Expression, level: int) -> None:
        self.node = node
        self.level = level


class ExpressionParser(TokenCursor, ABC):
    """Parses expressions. Subclasses parse calls and queries."""

    bare = -1  # where the last operand without a prefix operator began

    @abstractmethod
    def query(self) -> tree.QueryExpression:
        """Parse a query without parentheses; a subclass implements it."""

    @abstractmethod
    def call(self, names: list[str], library: str | None, *, at: TextPosition) -> tree.Call:
        """Parse a call from its opening parenthesis; a subclass implements it. The name is already consumed."""

    def expression(self, first: tree.Expression | None = None) -> tree.Expression:
        """Parse operands with operators between them, or a quantifier. A query needs parentheses.

        `first` is an operand that is already parsed, with its parentheses.
        """
        self.enter()
        if self.kind in QUANTIFIERS and first is None:
            result: tree.Expression = self.quantified()
            self.leave()
            return result
        stack: list[_OpenOperator] = []
        while True:
            if self.kind == "NOT" and first is None and (not stack or stack[-1].level < NOT):
                stack.append(_OpenOperator(NOT, self.advance().place, "not", []))
            left = _LeftOperand(self.operand() if first is None else self.path_steps(first, at=first.at), PRIMARY)
            first = None
            if self.kind == "IS" and self.tests():
                self.close(stack, left, above=IS)
                left.node, left.level = self.is_test(left.node), IS
            if not self.operator(stack, left):
                self.close(stack, left, above=-1)
                self.leave()
                return left.node

    def close(self, stack: list[_OpenOperator], left: _LeftOperand, *, above: int) -> None:
        """Pop the operators with a precedence above a level from the stack; the result becomes the left operand.

        Raises SqlppError for a BETWEEN without AND.
        """
        while stack and stack[-1].level > above:
            if stack[-1].waits_for_and:
                raise self.error()
            left.level = stack[-1].level
            left.node = stack.pop().to_expression(left.node)

    def operator(self, stack: list[_OpenOperator], left: _LeftOperand) -> bool:
        """Consume an infix operator: push it onto the stack, or add it to the entry that it continues (a chain, BETWEEN
        … AND). Returns False if no allowed operator follows.
        """
        if self.kind == "AND" and self.between_and(stack, left):
            return True
        words, operator, binds = self.next_operator()
        if not words:
            return False
        self.close(stack, left, above=binds)
        if stack and stack[-1].level == binds:
            if binds not in CHAINED:
                return False
            self.advance()
            stack[-1].operands.append(left.node)
            stack[-1].operators.append(operator)
            return True
        if left.level <= binds:
            return False
        for _ in range(words - 1):
            self.advance()
        opened = _OpenOperator(binds, self.advance().place, operator, [left.node])
        opened.negated = binds == BETWEEN and words == 2
        stack.append(opened)
        return True

    def between_and(self, stack: list[_OpenOperator], left: _LeftOperand) -> bool:
        """Consume an AND that belongs to a BETWEEN on the stack. Returns whether it was consumed."""
        waiting = next((opened for opened in reversed(stack) if opened.level <= BETWEEN), None)
        if waiting is None or not waiting.waits_for_and:
            return False
        self.close(stack, left, above=BETWEEN)
        waiting.operands.append(left.node)
        self.advance()
        return True

    def next_operator(self) -> tuple[int, str, int]:
        """Return the next infix operator: its count of words (0 if there is none), its name and its precedence."""
        kind = self.kind
        operator = _OPERATORS.get(kind)
        if operator is not None:
            return 1, operator, LEVELS[operator]
        if kind == "BETWEEN":
            return 1, "between", BETWEEN
        if kind == "NOT":
            following = self.peek().kind
            if following == "BETWEEN":
                return 2, "between", BETWEEN
            if following in ("IN", "LIKE"):
                return 2, f"not {following.lower()}", LEVELS[following.lower()]
        if kind == "IS":
            negated = self.peek().kind == "NOT"
            if self.peek(1 + negated).kind == "DISTINCT" and self.peek(2 + negated).kind == "FROM":
                operator = "is not distinct from" if negated else "is distinct from"
                return 3 + negated, operator, LEVELS[operator]
        return 0, "", 0

    def tests(self) -> bool:
        """Return whether the next token IS begins a test such as IS NULL, rather than IS DISTINCT FROM."""
        return self.peek(2 if self.peek().kind == "NOT" else 1).kind in _TESTS

    def is_test(self, operand: tree.Expression) -> tree.IsExpression:
        """Parse `IS [NOT] NULL|MISSING|UNKNOWN|KNOWN|VALUED` after its operand."""
        self.expect("IS")
        negated = self.accept("NOT")
        token = self.advance()
        return tree.IsExpression(token.place, negated, operand, _TESTS[token.kind])

    def operand(self) -> tree.Expression:
        """Parse a value with its steps, with an optional sign or EXISTS. A sign cannot be repeated.

        Raises SqlppError for another token.
        """
        signs: list[Token] = []
        if self.kind in SIGNS:
            signs.append(self.advance())
            if signs[0].kind == "NOT":
                signs.append(self.expect("EXISTS"))
        began, at = self.index, self.at
        read = _PRIMARY.get(self.kind)
        if read is None:
            raise self.error()
        value = read(self)
        if self.kind in (".", "["):
            value = self.path_steps(value, at=at)
        for sign in reversed(signs):
            value = tree.UnaryOperation(sign.place, _SIGNS[sign.kind], value)
        self.bare = -1 if signs else began
        return value

    def path_steps(self, base: tree.Expression, *, at: TextPosition) -> tree.Expression:
        """Parse the field, index and slice steps after a value. A dot that no name follows is not consumed."""
        steps: list[tree.Step] = []
        while True:
            if self.kind == "[":
                steps.append(self.bracket())
            elif self.kind == "." and self.peek().kind in (IDENTIFIER, QUOTED):
                dot = self.advance().place
                steps.append(tree.FieldStep(dot, self.advance().value))
            else:
                break
        if isinstance(base, tree.PathExpression):
            return tree.PathExpression(at, base.base, (*base.steps, *steps)) if steps else base
        return tree.PathExpression(at, base, tuple(steps)) if steps else base

    def bracket(self) -> tree.Step:
        """Parse `[index]`, `[from:to]`, `[]` or `[*]`."""
        at = self.expect("[").place
        if self.accept("*"):
            self.expect("]")
            return tree.ItemsStep(at)
        first = None if self.kind in (":", "]") else _index(self.expression())
        sliced = self.accept(":")
        last = _index(self.expression()) if sliced and self.kind != "]" else None
        self.expect("]")
        if first is None or sliced:
            return tree.SliceStep(at, first, last)
        return tree.ElementStep(at, first)

    def chain(self) -> tree.Expression:
        """Parse dotted identifiers: a call if a parenthesis follows, else a variable with field steps.

        Raises SqlppError for a library name without a call.
        """
        first = self.advance()
        names, fields = [first.value], []
        while self.kind == "." and self.peek().kind in (IDENTIFIER, QUOTED):
            at = self.advance().place
            names.append(self.advance().value)
            fields.append(tree.FieldStep(at, names[-1]))
        if self.kind == "(" and self.peek().kind not in _ARRAY_STEPS:
            return self.call(names, None, at=first.place)
        if self.kind == "#":
            self.advance()
            names, library = [*names[:-1], self.identifier()], names[-1]
            if self.kind != "(":
                raise self.error()
            return self.call(names, library, at=first.place)
        variable = tree.Variable(first.place, first.value)
        return tree.PathExpression(first.place, variable, tuple(fields)) if fields else variable

    def literal(self) -> tree.Expression:
        """Parse a number, a string, TRUE, FALSE, NULL or MISSING."""
        kind, at = self.kind, self.at
        if kind == STRING:
            return tree.String(at, self.string())
        if kind == INTEGER:
            return tree.Integer(at, self.integer())
        token = self.advance()
        if kind in (DOUBLE, FLOAT):
            return tree.Decimal(at, token.image)
        if kind in ("TRUE", "FALSE"):
            return tree.Boolean(at, kind == "TRUE")
        return tree.Null(at) if kind == "NULL" else tree.MissingLiteral(at)

    def parameter(self) -> tree.Parameter:
        """Parse `$name`, `$1`, or `?`. Raises SqlppError for an invalid number."""
        token = self.advance()
        if token.kind == "?":
            self.parameters += 1
            return tree.Parameter(token.place, self.parameters)
        if token.kind == PARAMETER:
            return tree.Parameter(token.place, token.value)
        if len(token.value) > 9:
            raise syntax("Invalid parameter number", token.place)
        return tree.Parameter(token.place, int(token.value))

    def parenthesized(self) -> tree.Expression:
        """Parse an expression or a query in parentheses; several expressions are an array."""
        at = self.expect("(").place
        if self.kind in QUERY_STARTS:
            inner: tree.Expression = self.query()
        else:
            inner = self.expression()
            if self.kind == ",":
                self.advance()
                inner = tree.Array(at, (inner, *self.comma_separated(self.expression)))
        self.expect(")")
        return inner

    def items(self, end: str) -> tuple[tree.Expression, ...]:
        """Parse zero or more expressions up to the closing bracket `end`."""
        items = () if self.kind == end else self.comma_separated(self.expression)
        self.expect(end)
        return items

    def array(self) -> tree.Array:
        """Parse an array constructor: `[…]`."""
        return tree.Array(self.expect("[").place, self.items("]"))

    def bag(self) -> tree.Bag:
        """Parse a multiset constructor: `{{…}}`."""
        return tree.Bag(self.expect("{{").place, self.items("}}"))

    def object(self) -> tree.Object:
        """Parse an object constructor: `{…}`."""
        at = self.expect("{").place
        pairs = () if self.kind == "}" else self.comma_separated(self.pair)
        self.expect("}")
        return tree.Object(at, pairs)

    def pair(self) -> tree.ObjectPair:
        """Parse a field of an object constructor. The name may be omitted: it is then the name of the value's last
        step.

        Raises SqlppError if the name cannot be inferred.
        """
        at = self.at
        first = self.expression()
        if self.accept(":"):
            return tree.ObjectPair(at, first, self.expression())
        name = last_name(first)
        if name is None:
            raise syntax("Cannot infer field name", self.before)
        return tree.ObjectPair(at, tree.String(at, name), first)

    def case(self) -> tree.Case:
        """Parse `CASE [subject] WHEN … THEN … [ELSE …] END`."""
        at = self.expect("CASE").place
        subject = None if self.kind in ("WHEN", "ELSE", "END") else self.expression()
        branches = []
        while self.kind == "WHEN":
            began = self.advance().place
            condition = self.expression()
            self.expect("THEN")
            branches.append(tree.CaseBranch(began, condition, self.expression()))
        otherwise = self.expression() if self.accept("ELSE") else None
        self.expect("END")
        return tree.Case(at, subject, tuple(branches), otherwise)

    def quantified(self) -> tree.QuantifiedExpression:
        """Parse SOME, EVERY or SOME AND EVERY. A following END is part of it."""
        token = self.advance()
        kind: Literal["some", "every", "some and every"] = "every" if token.kind == "EVERY" else "some"
        if kind == "some" and self.accept("AND"):
            self.expect("EVERY")
            kind = "some and every"
        bindings = self.comma_separated(self.binding)
        self.expect("SATISFIES")
        condition = self.expression()
        self.accept("END")
        return tree.QuantifiedExpression(token.place, kind, bindings, condition)

    def binding(self) -> tree.QuantifierBinding:
        """Parse `name IN source`."""
        at = self.at
        name = self.identifier()
        self.expect("IN")
        return tree.QuantifierBinding(at, name, self.expression())


def _index(value: tree.Expression) -> tree.Expression:
    """Check an index expression. Raises SqlppError for a literal that is not an integer."""
    if isinstance(value, (tree.String, tree.Decimal, tree.Boolean, tree.Null, tree.MissingLiteral)):
        raise syntax("Index should be an INTEGER", value.at)
    return value


def last_name(node: tree.Expression) -> str | None:
    """Return the implicit name of an expression: a variable's name or its last field; None for others."""
    if isinstance(node, tree.Variable):
        return node.name
    if isinstance(node, tree.PathExpression) and isinstance(last := node.steps[-1], tree.FieldStep):
        return last.name
    return None


_PRIMARY: dict[str, Callable[[ExpressionParser], tree.Expression]] = {
    IDENTIFIER: ExpressionParser.chain,
    QUOTED: ExpressionParser.chain,
    "(": ExpressionParser.parenthesized,
    "[": ExpressionParser.array,
    "{{": ExpressionParser.bag,
    "{": ExpressionParser.object,
    "CASE": ExpressionParser.case,
    **dict.fromkeys((PARAMETER, NUMBERED, "?"), ExpressionParser.parameter),
    **dict.fromkeys((STRING, INTEGER, DOUBLE, FLOAT, "TRUE", "FALSE", "NULL", "MISSING"), ExpressionParser.literal),
}
