# SPDX-License-Identifier: Apache-2.0
"""Functions with regular expressions, by hand-written examples; and a bound on their duration."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.functions.patterns import compile_pattern
from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("regexp_contains('mutation', 'ut.t')", True),
        ("regexp_contains('mutation', '^ut')", False),
        ("`regexp-contains`('ABC', 'b', 'i')", True),
        ("contains_regex('ABC', 'b')", False),
        ("regexp_like('mutation', 'm.*n')", True),
        ("regexp_like('mutation', 'ut')", False),
        ("regexp_like('a\\nb', 'a.b')", False),
        ("regexp_like('a\\nb', 'a.b', 's')", True),
        ("regexp_matches('a\\nb', '^.', 'm')", ("a", "b")),
        ("regexp_position('東京都', '都')", 2),
        ("regexp_position0('abc', 'x')", -1),
        ("regexp_position1('abc', 'c')", 3),
        ("regexp_contains('ab', 'a b  # both', 'x')", True),
        ("regexp_contains('a b', 'a[ ]b', 'x')", True),
        ("regexp_contains('A b', 'a\\\\ b', 'xi')", True),
        ("regexp_matches('x1FZ', '[_\\\\p{XDigit}]+')", ("1F",)),
        ("regexp_matches('aBc', '\\\\P{Lower}')", ("B",)),
        ("matches('abc', 'b')", True),
        ("regexp_matches('abcm', '[a-z&&[^bc]]')", ("a", "m")),
        ("regexp_matches('abcdmnop', '[a-z&&[^m-p]&&[^a]]+')", ("bcd",)),
        ("regexp_matches('a1_B', '[^\\\\w&&[^_\\\\d]]')", ("1", "_")),
        ("regexp_matches('aB1-', '[\\\\p{Alpha}[-]&&[^\\\\p{Lower}]]')", ("B", "-")),
        ("regexp_matches('é😀', '[\\\\x{80}-\\\\x{10FFFF}&&[^é]]')", ("😀",)),
        ("regexp_contains('ab', '[a&&b]')", False),
        ("regexp_matches('x&&', '[[:alpha:]&]')", ("x", "&", "&")),
        ("regexp_matches('a&', '\\\\[|[a]&&?')", ("a&",)),
        ("regexp_position1('abc', 'x')", -1),
        ("regexp_matches('a1b22', '[0-9]+')", ("1", "22")),
        ("regexp_matches('abc', 'x')", ()),
        ("regexp_split('a, b,c', ' *, *')", ("a", "b", "c")),
        ("regexp_split('abc', 'x')", ("abc",)),
        ("regexp_split(',a,', ',')", ("", "a")),
        ("regexp_split(',,', ',')", ()),
        ("regexp_split('', ',')", ("",)),
        ("regexp_split('ab', '')", ("a", "b")),
        ("regexp_replace('like ocean', '[aeiou]', '_')", "l_k_ _c__n"),
        ("regexp_replace('aXbX', 'x', '-', 'i')", "a-b-"),
        ("regexp_replace('aaaa', 'a', 'b', 2)", "bbaa"),
        ("regexp_replace('aaaa', 'a', 'b', -1)", "bbbb"),
        ("regexp_replace('john smith', '(\\\\w+) (\\\\w+)', '$2, $1')", "smith, john"),
        ("regexp_replace('5', '5', '\\\\$1')", "$1"),
        ("regexp_replace('東a京', 'a', '・')", "東・京"),
        ("regexp_contains(1, 'a')", None),
        ("regexp_contains('a', null)", None),
        ("regexp_contains('a', missing)", MISSING),
        ("regexp_replace('a', 'a', 1)", None),
        ("regexp_replace('a', 'a', 'b', [])", None),
    ],
)
def test_pattern_functions_return_expected_values(text: str, expected: Value) -> None:
    """The expected value of each call; positions count code points."""
    assert value(text) == expected


@pytest.mark.parametrize(
    "text,message",
    [
        ("regexp_like('a', '(')", "Invalid pattern (: "),
        ("regexp_like('a', '(a)\\\\1')", "Invalid pattern (a)\\\\1: "),
        ("regexp_like('a', 'a(?=b)')", "Invalid pattern a(?=b): "),
        ("regexp_like('a', '((a{100}){100}){100}')", "Invalid pattern "),
        ("regexp_like('a', '[a-z&&[^b]')", "Invalid pattern [a-z&&[^b]: missing ]"),
        ("regexp_like('a', '[\\\\p{L}&&[^b]]')", "in a class with &&"),
        ("regexp_like('a', 'a', 'q')", "Invalid flags 'q': they must be letters of ims"),
        ("regexp_replace('a', 'a', '$1')", "Invalid replacement '$1': there is no group 1"),
    ],
)
def test_invalid_pattern_is_refused_with_reason(text: str, message: str) -> None:
    """The error for an invalid pattern has the pattern and the reason."""
    with pytest.raises(SqlppError) as error:
        value(text)

    assert message.replace("\\\\", "\\") in error.value.text


def test_no_pattern_takes_long() -> None:
    """Patterns that take 2^40 steps with backtracking are evaluated quickly, also over a text a hundred times as
    long.
    """
    for count in (40, 4_000):
        assert compile_pattern("(a|aa)+$", "").search("a" * count + "b") is None
        assert compile_pattern("(a*)*c", "").fullmatch("a" * count) is None


def test_a_result_that_would_be_too_long_is_refused() -> None:
    """A result that would be too long is refused before it is created."""
    with pytest.raises(SqlppError):
        value("regexp_replace(repeat('a', 100000), 'a', repeat('b', 100000))")
