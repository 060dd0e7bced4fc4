# SPDX-License-Identifier: Apache-2.0
r"""Conversion of Java's character classes with intersections, such as `[a-z&&[^bc]]`, to RE2's syntax.

Must not know patterns outside of classes. RE2 has no intersections: a class that has one is computed as ranges of code
points. A class without `&&` is valid in RE2 and is not parsed here.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import Final, NamedTuple

Ranges = tuple[tuple[int, int], ...]
"""Ranges of code points, with both ends, in ascending order and apart from each other."""
LAST: Final = 0x10FFFF
CLASS_MAX: Final = 2_000
"""The maximum number of characters of a class that has an intersection."""
NESTED_MAX: Final = 50
"""The maximum depth of classes within classes."""
_INTERSECTION: Final = "&&"
_ESCAPE: Final = re.compile(
    r"\\(?:x\{(?P<long>[0-9A-Fa-f]{1,6})\}|x(?P<hex>[0-9A-Fa-f]{2})|u(?P<unit>[0-9A-Fa-f]{4})"
    r"|(?P<sign>[pP])\{(?P<name>\w+)\}|(?P<char>[^puxPUX]))",
    re.DOTALL,
)
_CONTROLS: Final = {"t": 9, "n": 10, "f": 12, "r": 13, "a": 7, "e": 27}


class UnreadableClass(ValueError):
    """Raised for a class that is malformed, or that contains a named class without a list of code points in this
    module.
    """


class ClassText(NamedTuple):
    """A character class in RE2's syntax, and the offset after the class in the original pattern."""

    text: str
    end: int


def plain_until(pattern: str, at: int) -> int | None:
    """Return the offset after the class that begins at `at`, if it contains no `&&`; else None.

    The classes nested in it contain no `&&` either, so the caller can skip them.
    """
    depth = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 2
            continue
        if depth and pattern.startswith(_INTERSECTION, at):
            return None
        depth += (pattern[at] == "[") - (pattern[at] == "]")
        at += 1
        if depth == 0:
            return at
    return len(pattern)


def compute_intersections(pattern: str, at: int) -> ClassText:
    """Convert the class that begins at `at`, with its intersections computed.

    Raises UnreadableClass, also for a class of more than `CLASS_MAX` characters, because each intersection reads all
    ranges.
    """
    ranges, size = _class(pattern[at : at + CLASS_MAX], 0, depth=0)
    if not ranges:
        return ClassText(f"[^{_range_text(0, LAST)}]", at + size)
    return ClassText(f"[{''.join(_range_text(first, last) for first, last in ranges)}]", at + size)


def _range_text(first: int, last: int) -> str:
    return rf"\x{{{first:x}}}-\x{{{last:x}}}"


def _class(pattern: str, at: int, *, depth: int) -> tuple[Ranges, int]:
    """Parse a class that begins at an opening bracket. Returns its code points and the offset after it.

    Raises UnreadableClass for a class without an end, and for one that is nested too deeply.
    """
    if depth > NESTED_MAX:
        raise UnreadableClass("classes are nested too deeply")
    at += 1
    is_negated = pattern.startswith("^", at)
    at += is_negated
    result: Ranges | None = None
    parts: list[tuple[int, int]] = []
    began = at
    while True:
        if at >= len(pattern):
            raise UnreadableClass(f"missing ] within {CLASS_MAX} characters of a class with &&")
        if pattern[at] == "]" and at > began:
            break
        if pattern.startswith(_INTERSECTION, at):
            result, parts = _intersect(result, _merge_ranges(parts)), []
            at += len(_INTERSECTION)
        elif pattern[at] == "[":
            nested, at = _class(pattern, at, depth=depth + 1)
            parts += nested
        else:
            item, at = _range(pattern, at)
            parts += item
    result = _intersect(result, _merge_ranges(parts)) if parts or result is None else result
    return (_complement(result) if is_negated else result), at + 1


def _range(pattern: str, at: int) -> tuple[Ranges, int]:
    """Parse a character, a range of characters, or a named class. Returns its code points and the offset after it.

    Raises UnreadableClass for a range in descending order.
    """
    first, at = _item(pattern, at)
    is_range = pattern.startswith("-", at) and at + 1 < len(pattern) and pattern[at + 1] not in "]["
    if not is_range or len(first) != 1 or first[0][0] != first[0][1]:
        return first, at
    last, at = _item(pattern, at + 1)
    if len(last) != 1 or last[0][0] != last[0][1] or last[0][0] < first[0][0]:
        raise UnreadableClass("illegal range")
    return ((first[0][0], last[0][0]),), at


def _item(pattern: str, at: int) -> tuple[Ranges, int]:
    if pattern[at] != "\\":
        return ((ord(pattern[at]), ord(pattern[at])),), at + 1
    escape = _ESCAPE.match(pattern, at)
    if escape is None:
        raise UnreadableClass("illegal escape")
    digits = escape["long"] or escape["hex"] or escape["unit"]
    if digits is not None:
        number = int(digits, 16)
        if number > LAST:
            raise UnreadableClass("illegal code point")
        return ((number, number),), escape.end()
    if escape["name"] is not None:
        return _negate_if(_NAMED.get(escape["name"]), negated=escape["sign"] == "P"), escape.end()
    char = escape["char"]
    if char.lower() in _SHORT:
        return _negate_if(_SHORT[char.lower()], negated=char.isupper()), escape.end()
    if char.isascii() and char.isalnum() and char not in _CONTROLS:
        raise UnreadableClass(f"the escape \\{char} is not supported in a class with &&")
    number = _CONTROLS.get(char, ord(char))
    return ((number, number),), escape.end()


def _negate_if(ranges: Ranges | None, *, negated: bool) -> Ranges:
    if ranges is None:
        raise UnreadableClass(r"this \p{…} is not supported in a class with &&")
    return _complement(ranges) if negated else ranges


def _merge_ranges(parts: Iterable[tuple[int, int]]) -> Ranges:
    """Sort ranges of code points, and merge adjacent and overlapping ones."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(parts):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return tuple(result)


def _complement(ranges: Ranges) -> Ranges:
    result, next_ = [], 0
    for first, last in ranges:
        if first > next_:
            result.append((next_, first - 1))
        next_ = last + 1
    return (*result, (next_, LAST)) if next_ <= LAST else tuple(result)


def _intersect(one: Ranges | None, other: Ranges) -> Ranges:
    """Return the intersection of two sets of code points; `one` is None for all code points."""
    if one is None:
        return other
    return _complement(_merge_ranges((*_complement(one), *_complement(other))))


def _ranges_of(characters: str) -> Ranges:
    return _merge_ranges((ord(each), ord(each)) for each in characters)


_LETTERS, _DIGITS, _MARKS = string.ascii_letters, string.digits, string.punctuation
_SHORT: Final = {"d": _ranges_of(_DIGITS), "w": _ranges_of(f"{_LETTERS}{_DIGITS}_"), "s": _ranges_of(" \t\n\x0b\f\r")}
_NAMED: Final = {
    "Lower": _ranges_of(string.ascii_lowercase),
    "Upper": _ranges_of(string.ascii_uppercase),
    "Alpha": _ranges_of(_LETTERS),
    "Digit": _ranges_of(_DIGITS),
    "Alnum": _ranges_of(_LETTERS + _DIGITS),
    "Punct": _ranges_of(_MARKS),
    "Blank": _ranges_of(" \t"),
    "Graph": _ranges_of(_LETTERS + _DIGITS + _MARKS),
    "Print": _ranges_of(_LETTERS + _DIGITS + _MARKS + " "),
    "Cntrl": ((0, 31), (127, 127)),
    "XDigit": _ranges_of(string.hexdigits),
    "Space": _ranges_of(" \t\n\x0b\f\r"),
    "ASCII": ((0, 127),),
}
