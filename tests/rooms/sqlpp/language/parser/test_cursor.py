# SPDX-License-Identifier: Apache-2.0
"""Nesting depth: every nested construct has the same limit, independent of the caller's stack."""

from __future__ import annotations

from bisect import bisect_left

import pytest

from limnos.rooms.sqlpp.language import DEPTH_MAX, SqlppError, outline, parse, parse_body, render

NESTED = {
    "parentheses": ("(", "1", ")"),
    "array": ("[", "1", "]"),
    "bag": ("{{", "1", "}}"),
    "object": ('{"a":', "1", "}"),
    "call": ("f(", "1", ")"),
    "index": ("a[", "1", "]"),
    "case": ("case when a then ", "b", " end"),
    "quantified": ("some x in ", "y", " satisfies z"),
    "sign": ("-(", "1", ")"),
    "operators": ("a or b and c = d between e and f || g + h * i ^ (", "1", ")"),
    "subquery": ("(select value ", "1", ")"),
    "from": ("(select 1 from ", "a", " as a)"),
    "join": ("(select 1 from a join ", "b", " as b on c)"),
    "group": ("(select 1 from a group by b, (c, ", "d", "))"),
    "projection": ("(select 1, a as b, ", "c", " as d)"),
    "window": ("f(1) over (partition by a order by ", "b", " rows 1 preceding)"),
    "filter": ("f(1) filter (where ", "a", ")"),
    "union": ("select 1 union all (", "select 1", ")"),
    "let": ("(let a = ", "1", " select a)"),
}


def nested(kind: str, depth: int) -> str:
    """Return a construct that is nested the given number of times."""
    before, inner, after = NESTED[kind]
    return before * depth + inner + after * depth


def allowed(kind: str, depth: int) -> bool:
    """Return whether a construct may be nested the given number of times; other errors fail the test."""
    try:
        parse(nested(kind, depth))
    except SqlppError as error:
        if error.code != "ASX1079":
            raise
        return False
    return True


def deep(kind: str) -> int:
    """Return the greatest allowed depth of a construct."""
    return bisect_left(range(1, DEPTH_MAX + 2), x=True, key=lambda depth: not allowed(kind, depth))


def below(frames: int, text: str) -> str:
    """Parse and print the text with additional stack frames below."""
    return below(frames - 1, text) if frames else render(parse(text)[0].statement)


@pytest.mark.parametrize("kind", NESTED)
def test_deepest_allowed_construct_is_parsed_and_printed(kind: str) -> None:
    """The deepest allowed construct is parsed and printed with a third of Python's stack in use."""
    depth = deep(kind)
    text = nested(kind, depth)

    printed = below(300, text)

    assert DEPTH_MAX // 3 - 1 <= depth <= DEPTH_MAX
    assert outline(parse(printed)[0].statement) == outline(parse(text)[0].statement)


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 10_000])
@pytest.mark.parametrize("kind", NESTED)
def test_too_deep_nesting_is_refused_with_code_and_position(kind: str, depth: int) -> None:
    """Deeper nesting is refused with code and position, not by a RecursionError."""
    with pytest.raises(SqlppError) as caught:
        parse(nested(kind, depth))

    assert caught.value.code == "ASX1079"
    assert caught.value.message == f"Compilation error: The statement is nested more than {DEPTH_MAX} levels deep"
    assert caught.value.place is not None


@pytest.mark.parametrize("opened", [before for before, _, _ in NESTED.values()])
def test_unclosed_constructs_are_refused_at_the_maximum_depth(opened: str) -> None:
    """Ten thousand constructs that are not closed are refused in the same way."""
    with pytest.raises(SqlppError) as caught:
        parse(opened * 10_000)

    assert caught.value.code == "ASX1079"


@pytest.mark.parametrize("before,after", [("[", "]"), ("{{", "}}"), ("{a:", "}")])
def test_types_have_the_same_maximum_depth(before: str, after: str) -> None:
    """Types have the same maximum depth."""

    def text(depth: int) -> str:
        return f"create type t as {{ a: {before * depth}int{after * depth} }}"

    assert len(parse(text(DEPTH_MAX))) == 1
    with pytest.raises(SqlppError, match="ASX1079"):
        parse(text(DEPTH_MAX + 1))


def test_adjacent_constructs_do_not_count_as_nested() -> None:
    """Many constructs side by side do not count as nested."""
    assert parse_body("[" + "(1)," * 5000 + "[2]]") is not None
