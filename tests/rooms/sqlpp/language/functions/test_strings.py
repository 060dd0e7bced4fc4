# SPDX-License-Identifier: Apache-2.0
"""Functions of strings, by hand-written examples."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("length('abc')", 3),
        ("lpad('asterix', 11, '$&^')", "$&^$asterix"),
        ("rpad('asterix', 11, '$&^')", "asterix$&^$"),
        ("lpad('abcd', 2, 'x')", "ab"),
        ("rpad('abcd', 2, 'x')", "ab"),
        ("lpad('abcd', 56, '')", "abcd"),
        ("lpad('abcd', 2, '')", "ab"),
        ("lpad('', 3, 'a')", "aaa"),
        ("lpad('abcd', -2, 'y')", None),
        ("lpad(22, 11, 'y')", None),
        ("lpad(null, 4, 'y')", None),
        ("lpad('a', 4, missing)", MISSING),
        ("length('東京')", 2),
        ("length(5)", None),
        ("length(missing)", MISSING),
        ("lower('AbC')", "abc"),
        ("upper('straße')", "STRASSE"),
        ("reverse('abc')", "cba"),
        ("contains('hello', 'ell')", True),
        ("contains('hello', null)", None),
        ("contains('hello', missing)", MISSING),
        ("starts_with('hello', 'he')", True),
        ("`ends-with`('hello', 'lo')", True),
        ("position('hello', 'l')", 2),
        ("position('hello', 'x')", -1),
        ("position1('hello', 'l')", 3),
        ("word_tokens('Hello, World-2')", ("hello", "world", "2")),
        ("word_tokens(1)", None),
        ("string_equal('a', 'a')", True),
        ("position1('hello', 'x')", -1),
        ("substr('ab', 2)", None),
        ("substr('', 0)", ""),
        ("string_concat(['a', missing, null])", MISSING),
        ("substr('hello', 1)", "ello"),
        ("substr('hello', 1, 2)", "el"),
        ("substr('hello', -2)", "lo"),
        ("substr('hello', 9)", None),
        ("substr('hello', 1, -1)", None),
        ("substr1('hello', 1, 2)", "he"),
        ("substring('hello', 0, 99)", "hello"),
        ("trim('  a ')", "a"),
        ("trim('xxaxx', 'x')", "a"),
        ("ltrim('xxaxx', 'x')", "axx"),
        ("rtrim('xxaxx', 'x')", "xxa"),
        ("initcap('hello big WORLD')", "Hello Big World"),
        ("title('o''neil')", "O'Neil"),
        ("repeat('ab', 3)", "ababab"),
        ("repeat('ab', 0)", ""),
        ("repeat('ab', -1)", None),
        ("replace('aaa', 'a', 'b')", "bbb"),
        ("replace('aaa', 'a', 'b', 2)", "bba"),
        ("replace('aa', '', 'b')", "babab"),
        ("replace('', '', 'b')", "b"),
        ("replace('aa', '', 'b', 1)", "baa"),
        ("split('a,b,,c', ',')", ("a", "b", "", "c")),
        ("concat('a', 'b', 'c')", "abc"),
        ("concat('a', 1)", None),
        ("string_concat(['a', 'b'])", "ab"),
        ("string_join(['a', 'b', 'c'], '-')", "a-b-c"),
        ("string_join(['a', 1], '-')", None),
        ("substring_before('a=b=c', '=')", "a"),
        ("substring_after('a=b=c', '=')", "b=c"),
        ("string_to_codepoint('aé')", (97, 233)),
        ("codepoint_to_string([97, 233])", "aé"),
        ("codepoint_to_string([-1])", None),
        ("codepoint_to_string([55296])", None),
        ("`like`('abc', 'a%')", True),
        ("'abc' || 'd'", "abcd"),
        ("'abc' like '_b_'", True),
        ("'abc' not like 'b%'", True),
        ("LENGTH('x')", 1),
    ],
)
def test_string_functions_return_expected_values(text: str, expected: Value) -> None:
    """The expected value; a value that is not a string gives NULL."""
    assert value(text) == expected


@pytest.mark.parametrize("text", ["repeat('abcdefgh', 1000000000)", "replace(repeat('a', 9000000), 'a', 'bcd')"])
def test_too_long_string_is_refused_before_creation(text: str) -> None:
    """A result that would be too long is refused before it is created."""
    with pytest.raises(SqlppError, match="longer than"):
        value(text)
