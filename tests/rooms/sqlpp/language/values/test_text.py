# SPDX-License-Identifier: Apache-2.0
r"""`||`, LIKE and the text of numbers, by hand-written examples."""

from __future__ import annotations

import math
import random
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.values.model import MISSING, Float, Value
from limnos.rooms.sqlpp.language.values.text import concatenate, like, real_text

M, N = MISSING, None


@pytest.mark.parametrize(
    "left,right,expected",
    [("a", "b", "ab"), ("", "", ""), ("a", N, N), (N, M, M), (M, "a", M), ("a", 1, N), (1, 2, N), (("a",), ("b",), N)],
)
def test_only_strings_are_concatenated(left: Value, right: Value, expected: Value) -> None:
    """Only strings are concatenated."""
    assert concatenate(left, right) is expected or concatenate(left, right) == expected


@pytest.mark.parametrize(
    "text,pattern,expected",
    [
        ("", "", True),
        ("", "%", True),
        ("", "_", False),
        ("a", "a", True),
        ("a", "A", False),
        ("ab", "a", False),
        ("a", "ab", False),
        ("abc", "a%", True),
        ("abc", "%c", True),
        ("abc", "%b%", True),
        ("abc", "a_c", True),
        ("abc", "____", False),
        ("abc", "%%%", True),
        ("abcabd", "%ab_", True),
        ("aab", "a%ab", True),
        ("ab", "a%ab", False),
        ("a\nb", "a_b", True),
        ("a\nb", "%b", True),
        ("😀", "_", True),
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        ("(", "(", True),
        ("there is a 50% discount", "%50\\% discount", True),
        ("there is a 50x discount", "%50\\% discount", False),
        ("text_text", "%\\_%", True),
        ("texttext", "%\\_%", False),
        ("a \\ in here", "%\\\\%", True),
        ("a", N, N),
        (N, "a", N),
        (M, N, M),
        ("a", M, M),
        (1, "1", N),
        ("1", 1, N),
    ],
)
def test_like_matches_wildcards_and_escapes(text: Value, pattern: Value, expected: Value) -> None:
    """LIKE with wildcards and escapes."""
    assert like(text, pattern) is expected


@pytest.mark.parametrize("pattern", ["%\\", "\\a", "%\\ext", "\\\\\\"])
def test_invalid_backslash_in_a_like_pattern_is_an_error(pattern: str) -> None:
    """A backslash before an ordinary character, or at the end, is an error."""
    with pytest.raises(SqlppError) as caught:
        like("a", pattern)

    assert str(caught.value) == f"ASX0046: Invalid pattern '{pattern}' for LIKE"


def plainly(text: str, pattern: str) -> bool:
    """Evaluate LIKE by its definition."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(plainly(text[begin:], pattern[1:]) for begin in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and plainly(text[1:], pattern[1:])


@given(st.text("ab", max_size=7), st.text("ab%_", max_size=6))
def test_like_is_as_defined(text: str, pattern: str) -> None:
    """The matcher agrees with the definition."""
    assert like(text, pattern) is plainly(text, pattern)


def test_no_pattern_takes_long() -> None:
    """The steps for a pattern with many wildcards are bounded by the product of both lengths, not exponential."""
    steps = 0

    def seen(*_: object) -> object:
        nonlocal steps
        steps += 1
        return seen

    before = sys.gettrace()
    sys.settrace(seen)
    try:
        is_match = like("a" * 400, "%a" * 20 + "b")
    finally:
        sys.settrace(before)

    assert is_match is False
    assert steps < 400 * 60 * 10


@pytest.mark.parametrize(
    "number,text",
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.5, "1.234567895E8"),
        (-2.5e-20, "-2.5E-20"),
        (Float(2.1), "2.1"),
        (Float(1e10), "1.0E10"),
        (1e23, "1.0E23"),
        (-1e-323, "-1.0E-323"),
        (math.inf, "INF"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_java_does(number: float, text: str) -> None:
    """Doubles and floats are printed as in Java, with the shortest digits that identify them; INF and NaN by name."""
    assert real_text(number) == text


@pytest.mark.parametrize("seed", range(4))
def test_text_of_doubles_and_floats_round_trips(seed: int) -> None:
    """The text of doubles of all exponents, next to powers of ten and subnormal, is parsed to the same number; so are
    floats.
    """
    chance = random.Random(seed)
    doubles = [struct.unpack("<d", chance.randbytes(8))[0] for _ in range(2_000)]
    powers = [float(f"{digits}e{power}") for power in range(-324, 309) for digits in (1, 9.999999999999999)]
    singles = [Float(each) for each in doubles if abs(each) < 1e38]
    for number in filter(math.isfinite, (*doubles, *powers, *(number * 5e-324 for number in range(1, 50)), *singles)):
        assert type(number)(float(real_text(number))) == number
