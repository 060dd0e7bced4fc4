# SPDX-License-Identifier: Apache-2.0
"""Functions on strings, such as `upper` and `substr`.

Must not know plans. Positions count code points from 0; a function whose name ends with `1` counts from 1. The result
is NULL for a value that is not a string. A result of more than LENGTH_MAX characters is an error. Regular expressions
are in `patterns`: Python's may take exponential time.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.functions.costs import Cost, character_cost, linear_cost, product_cost, repeat_cost
from limnos.rooms.sqlpp.language.functions.numbers import to_integer
from limnos.rooms.sqlpp.language.functions.table import ANY_NUMBER, scalar
from limnos.rooms.sqlpp.language.values import text
from limnos.rooms.sqlpp.language.values.model import MISSING, Value

LENGTH_MAX = 16 << 20
"""The maximum length of a string that a function creates, in code points."""


def require_length(length: int) -> None:
    """Check the length of a result. Raises SqlppError if it exceeds LENGTH_MAX."""
    if length > LENGTH_MAX:
        raise compilation(f"A function would return a string longer than {LENGTH_MAX} characters")


def _register_string(name: str, work: Callable[[str], Value], *more: str) -> None:
    scalar(name, *more, least=1, cost=character_cost)(lambda value: work(value) if isinstance(value, str) else None)


_register_string("length", len, "string_length", "char_length", "character_length")
_register_string("lower", str.lower, "lowercase")
_register_string("upper", str.upper, "uppercase")
_register_string("reverse", lambda value: value[::-1])
_register_string("string_to_codepoint", lambda value: tuple(ord(char) for char in value))


def _register_two_strings(
    name: str, work: Callable[[str, str], Value], *more: str, cost: Cost = character_cost
) -> None:
    def run(value: Value, other: Value) -> Value:
        return work(value, other) if isinstance(value, str) and isinstance(other, str) else None

    scalar(name, *more, least=2, cost=cost)(run)


_register_two_strings("contains", lambda value, other: other in value)
_register_two_strings("starts_with", str.startswith)
_register_two_strings("ends_with", str.endswith)
_register_two_strings("position", str.find, "pos", "position0", "pos0")
_register_two_strings("position1", lambda value, other: value.find(other) + 1 or -1, "pos1")
_register_two_strings(
    "substring_before", lambda value, other: value.partition(other)[0] if other and other in value else ""
)
_register_two_strings("substring_after", lambda value, other: value.partition(other)[2] if other else value)
_register_two_strings("split", lambda value, other: tuple(value.split(other)) if other else tuple(value))
_register_two_strings("like", text.like, cost=product_cost)


@scalar("initcap", "title", least=1, cost=character_cost)
def title(value: Value) -> Value:
    """Convert the first letter of each word to upper case, the others to lower case."""
    if not isinstance(value, str):
        return None
    names, inside = [], False
    for char in value:
        names.append(char.lower() if inside else char.upper())
        inside = char.isalnum()
    return "".join(names)


def _register_trim(name: str, cut: Callable[[str, str | None], str]) -> None:
    def run(value: Value, characters: Value = "") -> Value:
        if not isinstance(value, str) or not isinstance(characters, str):
            return None
        return cut(value, characters or None)

    scalar(name, least=1, most=2, cost=product_cost)(run)


_register_trim("trim", str.strip)
_register_trim("ltrim", str.lstrip)
_register_trim("rtrim", str.rstrip)


def _part(value: Value, offset: Value, *, length: tuple[Value, ...], first: int) -> Value:
    """Return a substring from an offset; a negative offset counts from the end. NULL if the offset is out of bounds.

    `first` is the offset of the first character: 0 or 1.
    """
    start, count = to_integer(offset), to_integer(length[0]) if length else LENGTH_MAX
    if not isinstance(value, str) or start is None or count is None or count < 0:
        return None
    if first == 1 and start > 0:
        start -= 1
    if start < 0:
        start += len(value)
    return value[start : start + count] if 0 <= start < len(value) or start == 0 else None


@scalar("substr", "substring", "substr0", "substring0", least=2, most=3, cost=linear_cost)
def substr(value: Value, offset: Value, *length: Value) -> Value:
    """Return a substring from a 0-based offset."""
    return _part(value, offset, length=length, first=0)


@scalar("substr1", "substring1", least=2, most=3, cost=linear_cost)
def substr1(value: Value, offset: Value, *length: Value) -> Value:
    """Return a substring from a 1-based offset."""
    return _part(value, offset, length=length, first=1)


@scalar("repeat", least=2, cost=repeat_cost(1))
def repeat(value: Value, count: Value) -> Value:
    """Return the string repeated `count` times."""
    times = to_integer(count)
    if not isinstance(value, str) or times is None or times < 0:
        return None
    require_length(len(value) * times)
    return value * times


def _register_pad(name: str, join: Callable[[str, str], str]) -> None:
    def run(value: Value, *more: Value) -> Value:
        length, fill = more
        size = to_integer(length)
        if not isinstance(value, str) or not isinstance(fill, str) or size is None or size < 0:
            return None
        require_length(size)
        room = size - len(value)
        return value[:size] if room <= 0 or not fill else join(value, (fill * (room // len(fill) + 1))[:room])

    scalar(name, least=3, cost=repeat_cost(1))(run)


_register_pad("lpad", lambda value, fill: fill + value)
_register_pad("rpad", lambda value, fill: value + fill)


@scalar("replace", least=3, most=4, cost=product_cost)
def replace(value: Value, old: Value, new: Value, limit: Value = -1) -> Value:
    """Replace every occurrence of `old`, or the first `limit`."""
    times = to_integer(limit)
    if not (isinstance(value, str) and isinstance(old, str) and isinstance(new, str)) or times is None:
        return None
    count = value.count(old) if times < 0 else min(times, value.count(old))
    require_length(len(value) + count * (len(new) - len(old)))
    return value.replace(old, new, count)


@scalar("concat", least=0, most=ANY_NUMBER, cost=linear_cost)
def concat(*values: Value) -> Value:
    """Return the concatenation of strings."""
    return _join_strings(values, "")


@scalar("string_concat", least=1, cost=linear_cost)
def string_concat(values: Value) -> Value:
    """Concatenate an array of strings; MISSING if one of them is MISSING."""
    if isinstance(values, tuple) and any(value is MISSING for value in values):
        return MISSING
    return _join_strings(values, "") if isinstance(values, tuple) else None


@scalar("string_join", least=2, cost=linear_cost)
def string_join(values: Value, separator: Value) -> Value:
    """Join the strings of an array or multiset with a separator; MISSING if one of them is MISSING."""
    elements = items(values)
    if elements is None:
        return None
    if any(value is MISSING for value in elements):
        return MISSING
    return _join_strings(tuple(elements), separator) if isinstance(separator, str) else None


def _join_strings(values: tuple[Value, ...], separator: str) -> Value:
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) != len(values):
        return None
    require_length(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


@scalar("codepoint_to_string", least=1, cost=character_cost)
def from_codepoints(values: Value) -> Value:
    """Build a string from an array of code points."""
    if not isinstance(values, tuple):
        return None
    points = [to_integer(value) for value in values]
    valid_points = [
        point for point in points if point is not None and 0 <= point < 0x110000 and not 0xD800 <= point < 0xE000
    ]
    return "".join(map(chr, valid_points)) if len(valid_points) == len(points) else None


_register_two_strings("string_equal", str.__eq__)
