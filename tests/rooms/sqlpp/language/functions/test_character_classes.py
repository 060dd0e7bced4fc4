# SPDX-License-Identifier: Apache-2.0
"""Character classes with intersections: their size is limited, and a pattern is read once for any nesting of
brackets.
"""

from __future__ import annotations

import re

import pytest

from limnos.rooms.sqlpp.language.functions import character_classes, patterns
from limnos.rooms.sqlpp.language.functions.character_classes import (
    CLASS_MAX,
    UnreadableClass,
    compute_intersections,
    plain_until,
)


@pytest.mark.parametrize(
    "pattern, end",
    [("[a-z]b&&c", 5), ("[a[b]c]d", 7), ("[a\\]&]b", 6), ("[a", 2), ("[a[b&&c]]", None), ("[a&&b]", None)],
)
def test_a_class_without_an_intersection_ends_at_its_bracket(pattern: str, end: int | None) -> None:
    """Escaped brackets do not count, and `&&` after the class does not belong to it."""
    assert plain_until(pattern, 0) == end


def test_intersection_has_the_characters_common_to_both_sides() -> None:
    """The result is a class of RE2 with the remaining ranges, and the position after the class."""
    assert compute_intersections("x[a-e&&[^c]]y", 1) == (r"[\x{61}-\x{62}\x{64}-\x{65}]", 12)
    assert compute_intersections("[a&&b]", 0) == (rf"[^\x{{0}}-\x{{{character_classes.LAST:x}}}]", 6)


def test_a_class_that_is_too_long_is_refused() -> None:
    """Each intersection reads all ranges, so a class with intersections has a maximum size."""
    fits = f"[{'a' * (CLASS_MAX - 5)}&&a]"

    assert compute_intersections(fits, 0) == (r"[\x{61}-\x{61}]", len(fits))
    with pytest.raises(UnreadableClass, match=re.escape(f"missing ] within {CLASS_MAX} characters")):
        compute_intersections(f"[a{fits[1:]}", 0)


@pytest.mark.parametrize("unit", ["[[]", "[", "[]", "[a]"])
def test_search_for_intersections_is_linear(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for intersections reads no more characters than the pattern has."""
    scanned = []

    def counted(pattern: str, at: int) -> int | None:
        end = plain_until(pattern, at)
        scanned.append((end or 0) - at)
        return end

    monkeypatch.setattr(patterns, "plain_until", counted)

    assert patterns.translate_pattern(unit * 1_000, has_comments=False) == unit * 1_000
    assert 0 < sum(scanned) <= len(unit) * 1_000
