# SPDX-License-Identifier: Apache-2.0
"""Human-readable numbers: counts with their nouns, and ages.

Pure.
"""

from __future__ import annotations

_UNITS_S = (("d", 86_400), ("h", 3_600), ("min", 60))


def count_with_noun(count: int, noun: str) -> str:
    """Return a count with its noun, as `1 file` and `2 files`; the plural of `noun` ends with an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def age_text(age_ms: int) -> str:
    """Return an age in milliseconds in the largest unit of which it is a whole number, as `7 d`."""
    seconds = age_ms // 1000
    for unit, size in _UNITS_S:
        if seconds and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
