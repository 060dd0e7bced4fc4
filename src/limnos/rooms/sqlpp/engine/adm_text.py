# SPDX-License-Identifier: Apache-2.0
"""Parser for ADM, AsterixDB's text format: JSON with number suffixes, constructors such as `date("…")`, and `{{ }}`.

Must not know files. Constructors are SQL++'s own functions. An incomplete text is distinguished from a malformed one,
because a value may continue on the next line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Final

from limnos.rooms.sqlpp.language import EmptyNameResolver, bind, parse_body, results
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.values.model import MISSING, Bag, Float, Integer, SmallInt, TinyInt, Value, object_of

DUPLICATE_FIELD: Final = 13
NESTED_MAX: Final = 200
"""The maximum depth of nested brackets."""
_SPACE: Final = re.compile(r"[\s;]*")
_BETWEEN: Final = re.compile(r"[\s,]*")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_NUMBER: Final = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?P<suffix>i8|i16|i32|i64|[fFdD])?(?![\w.])")
_NAME: Final = re.compile(r"[-+]?[A-Za-z][\w-]*")
_WORDS: Final[Mapping[str, Value]] = {
    "true": True,
    "false": False,
    "null": None,
    "missing": MISSING,
    "NaN": math.nan,
    "INF": math.inf,
    "-INF": -math.inf,
    "+INF": math.inf,
}
_WHOLE: Final[Mapping[str, tuple[Callable[[int], Value], int]]] = {
    "i8": (TinyInt, 8),
    "i16": (SmallInt, 16),
    "i32": (Integer, 32),
    "i64": (int, 64),
}


class MalformedText(ValueError):
    """Raised for a text that is not valid ADM or JSON."""


class UnfinishedText(MalformedText):
    """Raised for a text that ends within a value."""


def read_adm(text: str) -> list[Value]:
    """Parse the values in a text, in order.

    Raises MalformedText for a syntax error, UnfinishedText if the text ends within a value, SqlppError for an invalid
    call of a constructor.
    """
    reader = _AdmReader(text)
    entries: list[Value] = []
    while reader.skip(_BETWEEN):
        entries.append(reader.value(0))
        reader.skip(_SPACE)
    return entries


def read_json(text: str) -> list[Value]:
    """Parse the values in a JSON text, in order.

    Raises MalformedText for a syntax error, UnfinishedText if the text ends within a value, RecursionError for a value
    that is nested too deeply, SqlppError for an object with a duplicate field.
    """
    at, values = 0, []
    while (at := _past(_BETWEEN, text, at=at)) < len(text):
        try:
            value, at = _JSON.raw_decode(text, at)
        except json.JSONDecodeError as error:
            is_at_end = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
            raise (UnfinishedText if is_at_end else MalformedText)(error.msg) from None
        values.append(value)
    return values


def _unique(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    """Return the fields as an object. Raises SqlppError for a duplicate field."""
    fields: dict[str, Value] = {}
    for name, value in pairs:
        if name in fields:
            raise SqlppError(DUPLICATE_FIELD, f"Duplicate field '{name}' in an object of JSON")
        fields[name] = value
    return fields


_JSON: Final = json.JSONDecoder(object_pairs_hook=_unique)


def _past(pattern: re.Pattern[str], text: str, *, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()


class _AdmReader:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.end = text, 0, len(text)

    def skip(self, pattern: re.Pattern[str]) -> bool:
        """Skip the white space or separators that match `pattern`. Returns whether text is left."""
        self.at = _past(pattern, self.text, at=self.at)
        return self.at < self.end

    def value(self, depth: int) -> Value:
        """Parse one value of any type. `depth` is its nesting depth.

        Raises MalformedText for invalid ADM, UnfinishedText if the text ends within the value.
        """
        if not self.skip(_SPACE):
            raise UnfinishedText("a value is missing")
        if depth > NESTED_MAX:
            raise MalformedText(f"more than {NESTED_MAX} brackets")
        head = self.text[self.at]
        if head in "\"'":
            return self.string()
        if head == "{":
            if self.text.startswith("{{", self.at):
                return Bag(self.items("}}", depth=depth))
            return self.object(depth)
        if head == "[":
            return tuple(self.items("]", depth=depth))
        return self.number() if head.isdigit() or head in "-+." else self.word()

    def string(self) -> str:
        """Parse a string in single or double quotes, and decode its escapes.

        Raises MalformedText for an invalid escape, UnfinishedText if the string has no end.
        """
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise UnfinishedText("a string has no end")
        self.at = match.end()
        inside = match[0][1:-1]
        if "\\" not in inside:
            return inside
        quoted = inside.replace("\\'", "'").replace('"', '\\"') if match[0][0] == "'" else inside
        try:
            return str(json.loads(f'"{quoted}"', strict=False))
        except ValueError:
            raise MalformedText(f"an invalid escape in {match[0][:40]}") from None

    def items(self, end: str, *, depth: int) -> list[Value]:
        """Parse the items of an array or a multiset, up to the closing bracket `end`.

        Raises UnfinishedText if it is missing, MalformedText for an invalid item.
        """
        self.at += len(end)
        entries: list[Value] = []
        while self.skip(_BETWEEN):
            if self.text.startswith(end, self.at):
                self.at += len(end)
                return entries
            entries.append(self.value(depth + 1))
        raise UnfinishedText(f"no {end}")

    def object(self, depth: int) -> Value:
        """Parse an object, from its opening brace. Fields with the value MISSING are omitted.

        Raises MalformedText for a field without a name or a colon, UnfinishedText without a closing brace.
        """
        self.at += 1
        entries: list[tuple[str, Value]] = []
        while self.skip(_BETWEEN):
            if self.text[self.at] == "}":
                self.at += 1
                return object_of((name, value) for name, value in entries if value is not MISSING)
            if self.text[self.at] not in "\"'":
                raise MalformedText(f"no name of a field at {self.text[self.at : self.at + 20]}")
            name = self.string()
            if not self.skip(_SPACE):
                break
            if self.text[self.at] != ":":
                raise MalformedText(f"no colon after {name[:40]}")
            self.at += 1
            entries.append((name, self.value(depth + 1)))
        raise UnfinishedText("no }")

    def number(self) -> Value:
        """Parse a number with its suffix; a number without suffix is a bigint if it is an integer, else a double.

        Raises MalformedText for a number that does not fit the type.
        """
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            return self.word()
        self.at = match.end()
        suffix = match["suffix"]
        digits = match[0][: -len(suffix)] if suffix else match[0]
        is_whole = not set(digits) & set(".eE")
        if suffix in _WHOLE or (suffix is None and is_whole):
            make, bits = _WHOLE[suffix or "i64"]
            if not is_whole or not -(1 << (bits - 1)) <= int(digits) < 1 << (bits - 1):
                raise MalformedText(f"{match[0][:40]} is not an integer of {bits} bits")
            return make(int(digits))
        return Float(float(digits)) if suffix in ("f", "F") else float(digits)

    def word(self) -> Value:
        """Parse a literal such as `true` or `missing`, or a constructor call. Raises MalformedText for other text,
        UnfinishedText for a call without an end, SqlppError for an invalid call.
        """
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise MalformedText(f"no value at {self.text[self.at : self.at + 20]}")
        if match[0] in _WORDS:
            self.at = match.end()
            return _WORDS[match[0]]
        opened = _past(_SPACE, self.text, at=match.end())
        if not self.text.startswith("(", opened):
            raise MalformedText(f"no value at {match[0][:40]}")
        end = _closing(self.text, opened)
        arguments, self.at = self.text[opened : end + 1], end + 1
        (value,) = results(bind(parse_body(f"`{match[0]}`{arguments}"), EmptyNameResolver()), lambda *_: ())
        if value is None:
            raise MalformedText(f"{match[0]}{arguments[:40]} is not a value")
        return value


def _closing(text: str, at: int) -> int:
    """Return the offset of the parenthesis that closes the one at `at`. Raises UnfinishedText if there is none."""
    depth = 0
    while at < len(text):
        if text[at] in "\"'":
            match = _STRING.match(text, at)
            if match is None:
                break
            at = match.end()
            continue
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
        at += 1
    raise UnfinishedText("a bracket has no end")
