# SPDX-License-Identifier: Apache-2.0
"""Expressions: operator precedence, allowed sequences, and positions of errors."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import TextPosition, parse_body
from limnos.rooms.sqlpp.language.tree import (
    Array,
    BetweenExpression,
    Case,
    Decimal,
    FieldStep,
    Integer,
    IsExpression,
    OperationChain,
    Parameter,
    PathExpression,
    QuantifiedExpression,
    SliceStep,
    String,
    UnaryOperation,
    Variable,
)
from tests.rooms.sqlpp.language.parser.parsing import encountered, refusal, same_body, shape

AT = TextPosition(1, 1)


@pytest.mark.parametrize(
    "text,means,not_",
    [
        ("a or b and c", "a or (b and c)", "(a or b) and c"),
        ("not a and b", "(not a) and b", "not (a and b)"),
        ("not a = b", "not (a = b)", "(not a) = b"),
        ("not exists a = b", "not ((exists a) = b)", "(not exists a) = b"),
        ("a = b between c and d", "a = (b between c and d)", "(a = b) between c and d"),
        ("a between b and c and d", "(a between b and c) and d", "a between b and (c and d)"),
        (
            "a between b + 1 and c * 2 or d",
            "(a between (b + 1) and (c * 2)) or d",
            "a between (b + 1) and (c * 2 or d)",
        ),
        ("a = b is null", "a = (b is null)", "(a = b) is null"),
        ("a like b is null", "(a like b) is null", "a like (b is null)"),
        ("a || b like c", "(a || b) like c", "a || (b like c)"),
        ("a + b || c", "(a + b) || c", "a + (b || c)"),
        ("a - b * c", "a - (b * c)", "(a - b) * c"),
        ("a * b ^ c", "a * (b ^ c)", "(a * b) ^ c"),
        ("- a ^ b", "(- a) ^ b", "- (a ^ b)"),
        ("- a.b", "- (a.b)", "(- a).b"),
        ("a in b and c", "(a in b) and c", "a in (b and c)"),
        ("a is distinct from b + c", "a is distinct from (b + c)", "(a is distinct from b) + c"),
        ("not a is not null or b", "(not (a is not null)) or b", "not (a is not null or b)"),
        ("exists a and b", "(exists a) and b", "exists (a and b)"),
    ],
)
def test_operator_precedence(text: str, means: str, not_: str) -> None:
    """Without parentheses an expression has the tree of the first spelling, and not that of the second."""
    assert same_body(text, means)
    assert not same_body(text, not_)


@pytest.mark.parametrize(
    "one,other",
    [
        ("a <> b", "a != b"),
        ("a % b", "a mod b"),
        ("a is valued", "a is known"),
        ("any x in y satisfies z", "some x in y satisfies z end"),
        ("any and every x in y satisfies z", "some and every x in y satisfies z"),
        ("(a, b)", "[a, b]"),
        ("a[]", "a[:]"),
        ("((a))", "a"),
        ("(a.b).c", "a.b.c"),
        ("{ a.b }", '{ "b": a.b }'),
        ("{ a }", "{ 'a': a }"),
        ("? + ?", "$1 + $2"),
        ("$`a`", "$a"),
        ("A.`b`", "A.b"),
        ("COUNT(*)", "COUNT( * )"),
        ("007", "7"),
    ],
)
def test_equivalent_spellings_have_the_same_tree(one: str, other: str) -> None:
    """Equivalent spellings have the same tree."""
    assert same_body(one, other)


@pytest.mark.parametrize(
    "one,other", [("A", "a"), ("f()", "F()"), ("1.0", "1.00"), ("1f", "1e0"), ("[a]", "{{a}}"), ("a[0]", "a[0:]")]
)
def test_different_expressions_have_different_trees(one: str, other: str) -> None:
    """Different meanings have different trees: names keep their case, numbers their digits."""
    assert not same_body(one, other)


def test_operators_of_one_level_are_one_node() -> None:
    """Operators of one level are one node, and so are the steps of a path."""
    a, b, c = (Variable(AT, name) for name in "abc")

    assert shape(parse_body("a - b + c")) == shape(OperationChain(AT, ("-", "+"), (a, b, c)))
    assert shape(parse_body("(a - b) + c")) == shape(
        OperationChain(AT, ("+",), (OperationChain(AT, ("-",), (a, b)), c))
    )
    assert shape(parse_body("a.b[1:]")) == shape(
        PathExpression(AT, a, (FieldStep(AT, "b"), SliceStep(AT, Integer(AT, 1), None)))
    )


def test_long_chains_have_a_nesting_depth_of_one() -> None:
    """Ten thousand operators or steps have a nesting depth of one."""
    many = 10_000

    added, anded, stepped = (
        parse_body("1" + " + 1" * many),
        parse_body("a" + " and b" * many),
        parse_body("a" + ".b" * many),
    )

    assert isinstance(added, OperationChain)
    assert isinstance(anded, OperationChain)
    assert isinstance(stepped, PathExpression)
    assert (len(added.operands), len(anded.operands), len(stepped.steps)) == (many + 1, many + 1, many)


@pytest.mark.parametrize(
    "text,kind,place",
    [
        ("a.b", PathExpression, (1, 1)),
        ("a\n+ b", OperationChain, (2, 1)),
        ("a not in b", OperationChain, (1, 7)),
        ("a is not distinct from b", OperationChain, (1, 19)),
        ("a not between b and c", BetweenExpression, (1, 7)),
        ("a is not null", IsExpression, (1, 10)),
        (" - a", UnaryOperation, (1, 2)),
        (" not a", UnaryOperation, (1, 2)),
        ("  [a]", Array, (1, 3)),
        ("\n\n case when a then b end", Case, (3, 2)),
        ("every a in b satisfies c", QuantifiedExpression, (1, 1)),
        ("( 'x' )", String, (1, 3)),
        ("$x", Parameter, (1, 1)),
        ("1.5", Decimal, (1, 1)),
    ],
)
def test_operation_position_is_the_last_word_of_its_operator(text: str, kind: type, place: tuple[int, int]) -> None:
    """The position of an operation is the last word of its operator; any other expression's position is its
    beginning.
    """
    node = parse_body(text)

    assert isinstance(node, kind)
    assert node.at == place


def test_path_step_position_is_its_dot_or_bracket() -> None:
    """The position of a step is its dot or bracket."""
    node = parse_body("a .b [0]")

    assert isinstance(node, PathExpression)
    assert [tuple(step.at) for step in node.steps] == [(1, 3), (1, 6)]


def test_integer_literals_have_64_bits() -> None:
    """Integers have 64 bits; leading zeros do not count."""
    assert shape(parse_body("0009223372036854775807")) == shape(Integer(AT, 2**63 - 1))


@pytest.mark.parametrize(
    "text,what,column",
    [
        ("a b", '<IDENTIFIER> "b"', 3),
        ("1 + ", "<EOF>", 4),
        ("1 + * 2", '"*"', 5),
        ("a = b = c", '"="', 7),
        ("a like b like c", '"like"', 10),
        ("a ^ b ^ c", '"^"', 7),
        ("a between 1", "<EOF>", 11),
        ("a between 1 or 2", '"or"', 13),
        ("a between 1 and 2 between 3 and 4", '"between"', 19),
        ("a between b = c and d", '"="', 13),
        ("a is null is null", '"is"', 11),
        ("a is null + 1", '"+"', 11),
        ("a is nul", '"is"', 3),
        ("a is null like b", '"like"', 11),
        ("not", "<EOF>", 3),
        ("not not a", '<IDENTIFIER> "a"', 9),
        ("a = not b", '<IDENTIFIER> "b"', 9),
        ("- - 1", '"-"', 3),
        ("case when a end", '"end"', 13),
        ("case a when b then c", "<EOF>", 20),
        ("some x of y satisfies z", '<IDENTIFIER> "of"', 8),
        ("1 + some x in y satisfies z", '"some"', 5),
        ("[1, , 2]", '","', 5),
        ('{"a": }', '"}"', 7),
        ("a#b", "<EOF>", 3),
        ("a.1", '<DOUBLE_LITERAL> ".1"', 2),
        ("a[1:2:3]", '":"', 6),
        ("a[", "<EOF>", 2),
        ("a.select", '"."', 2),
        ("a.b.(c)", '"."', 4),
        ("a[0].f(1)", '"("', 7),
        ("(1", "<EOF>", 2),
        ("%%%", '"%"', 1),
        ("'a' 1", '<INTEGER_LITERAL> "1"', 5),
        ("`a` `b`", '<QUOTED_STRING> "`b`"', 5),
        ("a $b", '<DOLLAR_IDENTIFIER> "$b"', 3),
        ("a $1", '<DOLLAR_INTEGER_LITERAL> "$1"', 3),
        ("a 'it\\'s'", "<STRING_LITERAL> \"\\'it\\\\\\'s\\'\"", 3),
    ],
)
def test_unexpected_token_error_has_token_and_position(text: str, what: str, column: int) -> None:
    """The error for an unexpected token has the token, line and column."""
    error = refusal(text)

    assert str(error) == encountered(text, what, column)
    assert error.place == (1, column)


@pytest.mark.parametrize(
    "text,message",
    [
        ("'a' 'b'", "Invalid string literal (in line 1, at column 5)"),
        ("'a' \"b\"", "Invalid string literal (in line 1, at column 5)"),
        ("9223372036854775808", 'Could not parse numeric literal "9223372036854775808" (in line 1, at column 1)'),
        ("9" * 5000, f'Could not parse numeric literal "{"9" * 37}..." (in line 1, at column 1)'),
        ("{1 + 2}", "Cannot infer field name (in line 1, at column 6)"),
        ("{a[0]}", "Cannot infer field name (in line 1, at column 5)"),
        ("{$a}", "Cannot infer field name (in line 1, at column 2)"),
        ("a['b']", "Index should be an INTEGER (in line 1, at column 3)"),
        ("a[0:1.5]", "Index should be an INTEGER (in line 1, at column 5)"),
        ("$1234567890", "Invalid parameter number (in line 1, at column 1)"),
    ],
)
def test_invalid_expression_error_has_reason_and_position(text: str, message: str) -> None:
    """The error for an expression that fits the grammar but is invalid has the reason and the position."""
    assert str(refusal(text)) == f"ASX1001: Syntax error: {message}"
