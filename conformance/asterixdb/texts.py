"""Comparison of results as texts: the lines of ADM and CSV, byte for byte, and in what two texts of one value differ.

May import the standard library. It must not know cases, servers or values.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

DIGITS, ORDER, SPACES, OTHER = TEXT_DIFFERENCES = (
    "digits of a number",
    "order of fields or items",
    "spaces",
    "other",
)
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[-+]?\d[\w.+-]*|\w+|\S')
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[fd]?")
_RUN_FIELD: Final = re.compile(r'("(?:\w*Timestamp|LastRefreshTime)": )"[^"]*"|("DatasetId": )\d+')
"""Fields of metadata that differ between runs; AsterixDB's own test framework does not compare them either."""


def lines_of(text: str, *, ordered: bool) -> list[str]:
    """Return the lines of a text, without white space at their ends and without empty ones."""
    lines = [_RUN_FIELD.sub(r"\1\2", line.rstrip()) for line in text.splitlines() if line.strip()]
    return lines if ordered else sorted(lines)


def text_difference(expected: str, answer: str, *, ordered: bool) -> str | None:
    """Return in what two texts of equal values differ, one of TEXT_DIFFERENCES; None for texts that are equal.

    `ordered` says whether the order of lines counts.
    """
    both = [lines_of(text, ordered=ordered) for text in (expected, answer)]
    if both[0] == both[1]:
        return None
    for difference, simplified in _SIMPLIFIED:
        one, other = (Counter(map(simplified, lines)) for lines in both)
        if one == other:
            return difference
    return OTHER


def _tokens(line: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(line))


def _without_digits(line: str) -> tuple[str, ...]:
    return tuple(_rounded(token) if _NUMBER.fullmatch(token) else token for token in _tokens(line))


def _rounded(number: str) -> str:
    return f"{float(number.rstrip('fd')):.5g}"


def _sorted_tokens(line: str) -> tuple[str, ...]:
    return tuple(sorted(_tokens(line)))


_SIMPLIFIED: Final[tuple[tuple[str, Callable[[str], tuple[str, ...]]], ...]] = (
    (SPACES, _tokens),
    (DIGITS, _without_digits),
    (ORDER, _sorted_tokens),
)
