# SPDX-License-Identifier: Apache-2.0
r"""The string operators `||` and LIKE, and the conversion of floating-point numbers to text.

Must not use regular expressions for users' patterns: matching takes at most time proportional to the product of the
lengths of text and pattern.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.values.model import MISSING, Float, MissingType, Value, is_unknown

INVALID_PATTERN = 46
_PLAIN_MIN: Final = 1e-3
_PLAIN_MAX: Final = 1e7

_ANY, _ONE = object(), object()


def concatenate(left: Value, right: Value) -> Value:
    """Return `left || right`; MISSING if an operand is MISSING, else NULL if one is not a string."""
    if is_unknown(left) or is_unknown(right):
        return MISSING if left is MISSING or right is MISSING else None
    return left + right if isinstance(left, str) and isinstance(right, str) else None


def like(text: Value, pattern: Value) -> bool | MissingType | None:
    r"""Return `text LIKE pattern`: `%` matches any string, `_` any character; `\` escapes them and itself.

    Raises SqlppError (ASX0046) for `\` before another character or at the end.
    """
    if is_unknown(text) or is_unknown(pattern):
        return MISSING if text is MISSING or pattern is MISSING else None
    if not isinstance(text, str) or not isinstance(pattern, str):
        return None
    return _matches(text, _read(pattern))


def _read(pattern: str) -> list[object]:
    """Parse a LIKE pattern into characters and wildcards. Raises SqlppError for an invalid escape."""
    parts: list[object] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("%", "_", "\\"):
                raise SqlppError(INVALID_PATTERN, f"Invalid pattern '{pattern}' for LIKE")
            parts.append(escaped)
        else:
            parts.append({"%": _ANY, "_": _ONE}.get(character, character))
    return parts


def _matches(text: str, parts: list[object]) -> bool:
    """Match a string against a parsed LIKE pattern, greedily.

    Only the last `%` is retried, because retrying an earlier one cannot succeed.
    """
    at, part, retry, tried = 0, 0, -1, 0
    while at < len(text):
        if part < len(parts) and parts[part] is _ANY:
            retry, tried = part, at
            part += 1
        elif part < len(parts) and (parts[part] is _ONE or parts[part] == text[at]):
            at, part = at + 1, part + 1
        elif retry >= 0:
            tried += 1
            at, part = tried, retry + 1
        else:
            return False
    return all(rest is _ANY for rest in parts[part:])


def real_text(value: float) -> str:
    """Format a number as Java does: in scientific notation from 10,000,000 on and below 0.001."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    digits = _shortest_single(value) if isinstance(value, Float) else float.__repr__(float(value))
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_MAX:
        return digits if "e" not in digits else f"{float(digits):f}"
    sign = "-" if digits.startswith("-") else ""
    significant = digits.lower().lstrip("-").partition("e")[0].replace(".", "").strip("0") or "0"
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{Decimal(digits).adjusted()}"


def _shortest_single(value: float) -> str:
    """Return the shortest decimal digits that parse as the same single-precision number."""
    for places in range(1, 10):
        digits = f"{value:.{places}g}"
        if Float(float(digits)) == value:
            return float.__repr__(float(digits))
    return float.__repr__(float(value))
