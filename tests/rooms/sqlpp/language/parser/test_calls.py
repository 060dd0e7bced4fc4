# SPDX-License-Identifier: Apache-2.0
"""Calls and windows."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import parse_body
from limnos.rooms.sqlpp.language.tree import Call, PathExpression
from tests.rooms.sqlpp.language.parser.parsing import encountered, refusal, same_body


def call(text: str) -> Call:
    """Return a text as a call."""
    node = parse_body(text)
    assert isinstance(node, Call)
    return node


def test_a_name_before_a_parenthesis_is_a_function() -> None:
    """A name before a parenthesis is a function, with any number of dots, never a field."""
    node = call("x.y.echo(a.b)")

    assert (node.function.parts, node.library) == (("x", "y", "echo"), None)
    assert isinstance(node.arguments[0], PathExpression)


def test_library_precedes_the_hash_of_a_function_name() -> None:
    """The part before `#` is the library."""
    node = call("x.y.lib#echo(1)")

    assert (node.function.parts, node.library) == (("x", "y", "echo"), "lib")


def test_count_accepts_star_and_distinct() -> None:
    """`count` accepts a star, in any case, and DISTINCT, as every function does."""
    assert call("Count(*)").star
    assert (call("count(distinct *)").star, call("sum(distinct a)").distinct) == (True, True)


def test_window_may_have_all_clauses() -> None:
    """A window may have all clauses."""
    node = call(
        "nth_value(x, 2) from last ignore nulls over w (a as b) as (partition by c, d order by e desc nulls last"
        " rows between 1 preceding and unbounded following exclude current row)"
    ).window

    assert node is not None
    assert (node.from_end, node.nulls, len(node.partition)) == ("last", "ignore", 2)
    assert node.variable is not None
    assert node.variable.name == "w"
    assert (node.order[0].descending, node.order[0].nulls) == (True, "last")
    assert node.frame is not None
    assert (node.frame.mode, node.frame.start.side, node.frame.exclude) == ("rows", "preceding", "current row")
    assert node.frame.end is not None
    assert (node.frame.end.side, node.frame.end.value) == ("following", None)


def test_soft_keywords_are_names_outside_their_place() -> None:
    """A soft keyword is one only where the grammar expects it; elsewhere it is a name."""
    assert same_body("select f(x) from first", "select f(x) from `first`")
    assert same_body("rows + nulls + `current`", "`rows` + `nulls` + current")
    assert same_body("f(x) over (order by rows rows current row)", "f(x) over (order by `rows` rows current row)")


@pytest.mark.parametrize(
    "text,what,column",
    [
        ("f(1", "<EOF>", 3),
        ("f(1,)", '")"', 5),
        ("f(distinct)", '")"', 11),
        ("f(1) over", "<EOF>", 9),
        ("f(1) over w", "<EOF>", 11),
        ("f(1) over (partition a)", '<IDENTIFIER> "a"', 22),
        ("f(1) over (order by a rows 1)", '")"', 29),
        ("f(1) over (rows 1 preceding)", '<IDENTIFIER> "rows"', 12),
        ("f(1) over (order by a rows 1 preceding exclude)", '")"', 47),
        ("f(1) over (order by a rows 1 preceding exclude all)", '"all"', 48),
        ("f(1) over (order by a rows current 1)", '<INTEGER_LITERAL> "1"', 36),
        ("f(1) filter (a)", '<IDENTIFIER> "a"', 14),
        ("select f(1) ignore over ()", '"over"', 20),
    ],
)
def test_unexpected_token_error_has_token_and_position(text: str, what: str, column: int) -> None:
    """The error for an unexpected token has the token, line and column."""
    assert str(refusal(text)) == encountered(text, what, column)


@pytest.mark.parametrize(
    "text,message",
    [
        ("max(*)", "The parameter * can only be used in count(). (in line 1, at column 5)"),
        ("f(1) over (order by a rows unbounded row)", "Unexpected token: row (in line 1, at column 38)"),
        ("f(1) over (order by a lines 1 preceding)", "Unexpected token: lines (in line 1, at column 23)"),
        ("f(1) over (order by a rows 1 preceding exclude x)", "Unexpected token: x (in line 1, at column 48)"),
    ],
)
def test_error_names_the_unexpected_word(text: str, message: str) -> None:
    """The error for another word in the place of a soft keyword names the word."""
    assert str(refusal(text)) == f"ASX1001: Syntax error: {message}"
