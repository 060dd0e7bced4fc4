# SPDX-License-Identifier: Apache-2.0
"""Combinations of keys and options of an index."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import parse
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.tree import CreateIndex
from limnos.rooms.sqlpp.services.definitions.index_rules import check_enforced, check_index


def index(text: str) -> CreateIndex:
    """Return the statement that creates an index on these fields."""
    (parsed,) = parse(f"create index i on d{text}")
    assert isinstance(parsed.statement, CreateIndex)
    return parsed.statement


@pytest.mark.parametrize(
    "text, message",
    [
        ("(unnest a select x)", "Array indexes must specify EXCLUDE UNKNOWN KEY"),
        ("(unnest a) include unknown key", "Array indexes must specify EXCLUDE UNKNOWN KEY"),
        ("(unnest a, unnest b) exclude unknown key", "multiple array fields"),
        ("(unnest a select x: string) enforced exclude unknown key", "Incompatible index type ARRAY"),
        ("(unnest a: string) exclude unknown key cast (default null)", "CAST modifier is only allowed for B-Tree"),
        ("(a: string) type ngram(3) cast (default null)", "CAST modifier is only allowed for B-Tree"),
        ("(a: int?) enforced cast (default null)", "CAST modifier cannot be"),
        ("(a: int) enforced", r"enforced index on '\[a\]' field with non-optional type"),
        ("(a: point) type rtree", "non-enforced typed index of this kind: RTREE"),
        ("(a, unnest b: int) exclude unknown key", "Typed keys cannot be combined"),
    ],
)
def test_invalid_combinations_are_refused(text: str, message: str) -> None:
    """Invalid combinations are refused with AsterixDB's errors."""
    with pytest.raises(SqlppError, match=message):
        check_index(index(text))


@pytest.mark.parametrize(
    "text",
    [
        "(a, b)",
        "(a: int?, b: string?) enforced",
        "(a: int) cast (default null)",
        "(a, unnest b select c, d) exclude unknown key",
    ],
)
def test_valid_combinations_are_accepted(text: str) -> None:
    """Valid combinations are accepted."""
    check_index(index(text))


def test_second_index_with_other_field_types_is_refused() -> None:
    """A second index on the same fields must have the same types, in any spelling."""
    first = index("(a.b: int32?) enforced")

    for text in ("(a.b: integer?) enforced", "(a.b)", "(c: string?) enforced"):
        check_enforced([first], index(text))
    for text in ("(a.b: string?) enforced", "(a.b: string)"):
        with pytest.raises(
            SqlppError, match=r"enforced index i on field\(s\) 'a.b' is already defined with type\(s\) 'integer'"
        ):
            check_enforced([first], index(text))
    check_enforced([index("(a.b: int)")], index("(a.b: string?) enforced"))
