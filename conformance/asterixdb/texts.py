# SPDX-License-Identifier: Apache-2.0
"""Comparison of results as texts: the lines of ADM and CSV, byte for byte, and the class of difference between two
texts of one value.

May import the tolerance and the uncompared fields of `values`. It must not know cases or servers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.asterixdb.values import TOLERANCE, UNCOMPARED

if TYPE_CHECKING:
    from collections.abc import Callable

DIGITS, ORDER, DIGITS_AND_ORDER, SPACES, OTHER = TEXT_DIFFERENCES = (
    "digits of a number",
    "order of fields or items",
    "digits and order",
    "spaces",
    "other",
)
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[-+]?\d[\w.+-]*|\w+|\S')
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[fd]?")
_RUN_FIELD: Final = re.compile(rf'("(?:{"|".join(UNCOMPARED)})": (?:datetime\()?)(?:"[^"]*"|\d+)')


def lines_of(text: str, *, ordered: bool) -> list[str]:
    """Return the lines of a text, without white space at their ends and without empty ones."""
    lines = [_RUN_FIELD.sub(r"\1", line.rstrip()) for line in text.splitlines() if line.strip()]
    return lines if ordered else sorted(lines)


def text_difference(expected: str, answer: str, *, ordered: bool) -> str | None:
    """Return the class of difference between two texts of equal values, one of TEXT_DIFFERENCES; None for equal texts.

    `ordered` says whether the order of lines counts.
    """
    both = [lines_of(text, ordered=ordered) for text in (expected, answer)]
    if both[0] == both[1]:
        return None
    if len(both[0]) != len(both[1]):
        return OTHER
    if all(_are_same_numbers(*map(_tokens, pair)) for pair in zip(*both, strict=True)):
        return SPACES if all(_tokens(one) == _tokens(other) for one, other in zip(*both, strict=True)) else DIGITS
    for difference, simplified in _SIMPLIFIED:
        one, other = (Counter(map(simplified, lines)) for lines in both)
        if one == other:
            return difference
    return OTHER


def _tokens(line: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(line))


def _are_same_numbers(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether two lines have the same tokens, except for digits of numbers, and suffixes of their types such as
    `1.5d`.
    """
    return len(one) == len(other) and all(
        left == right
        or (_is_number(left) and _is_number(right) and math.isclose(_number(left), _number(right), rel_tol=TOLERANCE))
        for left, right in zip(one, other, strict=True)
    )


def _is_number(token: str) -> bool:
    return _NUMBER.fullmatch(token) is not None


def _number(token: str) -> float:
    return float(token.rstrip("fd"))


def _sorted_tokens(line: str) -> tuple[str, ...]:
    return tuple(sorted(_tokens(line)))


def _without_digits(line: str) -> tuple[str, ...]:
    return tuple(f"{_number(token):.5g}" if _is_number(token) else token for token in _tokens(line))


def _sorted_without_digits(line: str) -> tuple[str, ...]:
    return tuple(sorted(_without_digits(line)))


_SIMPLIFIED: Final[tuple[tuple[str, Callable[[str], tuple[str, ...]]], ...]] = (
    (DIGITS, _without_digits),
    (ORDER, _sorted_tokens),
    (DIGITS_AND_ORDER, _sorted_without_digits),
)
