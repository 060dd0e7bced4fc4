# SPDX-License-Identifier: Apache-2.0
"""Values as AsterixDB writes them (ADM and JSON), and the comparison of results.

May import the standard library. It must not know cases or servers. A value is converted to its JSON form: temporal
values and UUIDs to strings, multisets to a `Bag`. Numbers are compared with a tolerance, names of dataverses in both
spellings.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SPACE: Final = re.compile(r"[\s,]*")
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)(?:i8|i16|i32|i64|f|d)?")
_WORD: Final = re.compile(r"[A-Za-z][\w-]*")
_WORDS: Final[dict[str, object]] = {
    "true": True,
    "false": False,
    "null": None,
    "missing": None,
    "NaN": math.nan,
    "INF": math.inf,
    "Infinity": math.inf,
}
_TIME: Final = re.compile(r"(?<=\d\d:\d\d:\d\d)\.000(?=$|Z|[+-])")
_ZONE: Final = re.compile(r"(?<=\d\d:\d\d:\d\d)((?:\.\d{3})?)Z$")
TOLERANCE: Final = 1e-6
UNCOMPARED: Final = ("Timestamp", "LastRefreshTime", "DatasetId")
"""Fields of metadata whose values differ between runs; AsterixDB's own test framework does not compare them either."""


class Bag(list[object]):
    """A multiset."""


class UnreadableResult(ValueError):
    """A text that is neither ADM nor JSON."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def values(self) -> list[object]:
        values = []
        while self._more():
            values.append(self.value())
        return values

    def _more(self) -> bool:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.at < len(self.text)

    def value(self) -> object:
        if not self._more():
            raise UnreadableResult("the text ends")
        if self.text.startswith("{{", self.at):
            self.at += 2
            return Bag(self._until("}}"))
        head = self.text[self.at]
        if head == "{":
            self.at += 1
            return self._object()
        if head in "[(":
            self.at += 1
            return self._until("]" if head == "[" else ")")
        if head == '"':
            return self._string()
        return self._bare()

    def _until(self, end: str) -> list[object]:
        items: list[object] = []
        while self._more() and not self.text.startswith(end, self.at):
            items.append(self.value())
        if not self.text.startswith(end, self.at):
            raise UnreadableResult(f"no {end}")
        self.at += len(end)
        return items

    def _object(self) -> dict[str, object]:
        fields: dict[str, object] = {}
        while self._more() and self.text[self.at] != "}":
            name = self._string()
            self._more()
            if not self.text.startswith(":", self.at):
                raise UnreadableResult(f"no colon after {name}")
            self.at += 1
            fields[name] = self.value()
        self.at += 1
        return fields

    def _string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise UnreadableResult(f"no string at {self.text[self.at : self.at + 20]!r}")
        self.at = match.end()
        try:
            return str(json.loads(match[0], strict=False))
        except ValueError:
            return match[1]

    def _bare(self) -> object:
        sign = self.text.startswith("-", self.at)
        word = _WORD.match(self.text, self.at + sign)
        if word is not None:
            self.at = word.end()
            if word[0] in _WORDS:
                constant = _WORDS[word[0]]
                return -constant if sign and isinstance(constant, float) else constant
            if self.text.startswith("(", self.at):
                self.at += 1
                return _constructed(word[0], self._until(")"))
            raise UnreadableResult(f"unknown word {word[0]}")
        number = _NUMBER.match(self.text, self.at)
        if number is None or not number[0]:
            raise UnreadableResult(f"nothing to read at {self.text[self.at : self.at + 20]!r}")
        self.at = number.end()
        digits = re.sub(r"(i8|i16|i32|i64|f|d)$", "", number[0])
        return int(digits) if re.fullmatch(r"[-+]?\d+", digits) else float(digits)


def _constructed(name: str, arguments: list[object]) -> object:
    """Return the JSON form of `date("…")` and the like: the string."""
    if len(arguments) == 1 and isinstance(arguments[0], str):
        return arguments[0]
    return {name: arguments}


def read_values(text: str) -> list[object]:
    """Read all values of a text of results. Raises UnreadableResult."""
    try:
        return _Reader(text).values()
    except (IndexError, RecursionError) as reason:
        raise UnreadableResult(str(reason)) from None


# Comparison.


def difference(expected: list[object], actual: list[object], *, ordered: bool) -> str | None:
    """Return how two results differ; None if they are equal. `ordered`: the query orders its results."""
    if len(expected) != len(actual):
        if len(expected) == 1 and isinstance(expected[0], list) and not isinstance(expected[0], Bag):
            return difference(expected[0], actual, ordered=ordered)
        return f"{len(actual)} results for {len(expected)}"
    if all(_same(one, other) for one, other in zip(expected, actual, strict=True)):
        return None
    if _are_same_bag(expected, actual, same=_same):
        return "order of results" if ordered else None
    if _are_same_bag(expected, actual, same=_same_in_any_order):
        return "order of an array's items"
    for one, other in zip(_sorted(expected), _sorted(actual), strict=True):
        if not _same(one, other):
            return f"expected {_short(one)}, found {_short(other)}"
    return "results"


def _short(value: object) -> str:
    return json.dumps(value, default=str)[:160]


def _key(value: object) -> str:
    """Return a text that is the same for equal values, up to the tolerance of numbers."""
    if isinstance(value, dict):
        return (
            "{"
            + ",".join(
                f"{name}:{_key(value[name])}"
                for name in sorted(value)
                if value[name] is not None and name not in UNCOMPARED
            )
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(sorted(map(_key, value))) + "]"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, (int, float)):
        return f"{float(value):.4g}" if abs(value) < 1e300 else str(value)
    return _plain_text(str(value))


def _sorted(values: Iterable[object]) -> list[object]:
    return sorted(values, key=_key)


def _are_same_bag(expected: list[object], actual: list[object], *, same: Callable[[object, object], bool]) -> bool:
    if all(same(one, other) for one, other in zip(_sorted(expected), _sorted(actual), strict=True)):
        return True
    if len(expected) > 2000:
        return False
    rest = list(actual)
    for one in expected:
        at = next((at for at, other in enumerate(rest) if same(one, other)), None)
        if at is None:
            return False
        del rest[at]
    return True


def _plain_text(text: str) -> str:
    return _TIME.sub("", _ZONE.sub(r"\1", text)).replace("@.", ".").replace("/", ".")


def _same(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(name in UNCOMPARED or _same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        if isinstance(one, Bag) or isinstance(other, Bag):
            return _are_same_bag(list(one), list(other), same=_same)
        return all(_same(each, opposite) for each, opposite in zip(one, other, strict=True))
    return _same_scalar(one, other)


def _same_in_any_order(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same_in_any_order(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and _are_same_bag(list(one), list(other), same=_same_in_any_order)
    return _same_scalar(one, other)


def _same_scalar(one: object, other: object) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other or math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-12)
    if isinstance(one, str) and isinstance(other, str):
        return one == other or _plain_text(one) == _plain_text(other)
    if (isinstance(one, float) and isinstance(other, str)) or (isinstance(one, str) and isinstance(other, float)):
        return str(one).lower() in (str(other).lower(), {"inf": "infinity", "-inf": "-infinity"}.get(str(other), ""))
    return type(one) is type(other) and one == other
