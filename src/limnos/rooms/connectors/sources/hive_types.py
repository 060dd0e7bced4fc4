# SPDX-License-Identifier: Apache-2.0
"""Types of Hive's columns: Gravitino's JSON types to Hive's types and back (table in docs/guides/connectors.md).

Pure. A type that Gravitino lacks becomes `external` with Hive's own name. External types are not accepted from callers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from limnos.formats.iceberg.json_types import Json, as_object, objects_at, preview_value, text_at
from limnos.model.errors import BadRequest

_INTO: Final[Mapping[str, str]] = {
    "boolean": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_tz": "timestamp with local time zone",
    "binary": "binary",
    "interval_year": "interval_year_month",
    "interval_day": "interval_day_time",
}
_OUT_OF: Final[Mapping[str, str]] = {hive: ours for ours, hive in _INTO.items()}
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_SIZED: Final = re.compile(r"(char|varchar)\(\s*(\d{1,5})\s*\)")
_SIZES_MAX: Final = {"char": 255, "varchar": 65_535}
_FIELD: Final = re.compile(r"[a-z0-9_]+")
PRECISION_MAX: Final = 38
DEPTH_MAX: Final = 32


def type_of(value: object, *, column: str, depth: int = 0) -> str:
    """Return the Hive type for a type in Gravitino's JSON, such as `array<int>`. Raises BadRequest if Hive has none."""
    if depth > DEPTH_MAX:
        raise BadRequest(f"Column {preview_value(column)}: types may be nested at most {DEPTH_MAX} times")
    if isinstance(value, str):
        return _plain_of(value, column=column)
    where = f"Column {preview_value(column)}"
    nested = as_object(value, f"The type of column {preview_value(column)}")
    kind = text_at(nested, "type", where=where).lower()
    if kind == "list":
        return f"array<{type_of(nested.get('elementType'), column=column, depth=depth + 1)}>"
    if kind == "map":
        parts = (type_of(nested.get(key), column=column, depth=depth + 1) for key in ("keyType", "valueType"))
        return f"map<{','.join(parts)}>"
    if kind == "struct":
        fields = objects_at(nested, "fields", where=where)
        return f"struct<{','.join(_field_of(each, column=column, depth=depth) for each in fields)}>"
    raise _unknown(column, kind)


def _field_of(fields: Json, *, column: str, depth: int) -> str:
    name = text_at(fields, "name", where=f"Column {preview_value(column)}")
    if _FIELD.fullmatch(name) is None:
        raise BadRequest(
            f"Column {preview_value(column)}: field {preview_value(name)} needs a name of lower-case ASCII letters,"
            " digits and '_'"
        )
    return f"{name}:{type_of(fields.get('type'), column=column, depth=depth + 1)}"


def _plain_of(text: str, *, column: str) -> str:
    word = " ".join(text.lower().split())
    if word in _INTO:
        return _INTO[word]
    decimal, sized = _DECIMAL.fullmatch(word), _SIZED.fullmatch(word)
    if decimal is not None and 0 < int(decimal[1]) <= PRECISION_MAX and int(decimal[2]) <= int(decimal[1]):
        return f"decimal({int(decimal[1])},{int(decimal[2])})"
    if sized is not None and 0 < int(sized[2]) <= _SIZES_MAX[sized[1]]:
        return f"{sized[1]}({int(sized[2])})"
    raise _unknown(column, text)


def _unknown(column: str, kind: str) -> BadRequest:
    return BadRequest(
        f"Column {preview_value(column)}: the source has no type {preview_value(kind)}; its types are"
        f" {', '.join(_INTO)}, decimal(p,s), char(n), varchar(n), and lists, maps and structs of them"
    )


def type_json(text: str) -> object:
    """Return a Hive type as Gravitino's JSON; `external` if any part cannot be parsed."""
    try:
        reader = _TypeReader(text)
        result = reader.type(0)
        return result if reader.is_at_end() else _external(text)
    except _UnreadableTypeError:
        return _external(text)


def _external(text: str) -> Json:
    return {"type": "external", "catalogString": text}


class _UnreadableTypeError(Exception):
    """Raised if the text is not a type that Gravitino has."""


class _TypeReader:
    """A recursive descent parser for Hive's types."""

    _WORD = re.compile(r"\s*([a-z_]+(?: with local time zone)?)\s*", re.IGNORECASE)
    _NAME = re.compile(r"\s*([^:,<>\s]+)\s*:")
    _SIZES = re.compile(r"\(\s*(\d{1,5})\s*(?:,\s*(\d{1,2})\s*)?\)\s*")

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def is_at_end(self) -> bool:
        """Whether the parser has read the whole text, so that nothing follows the type."""
        return not self._text[self._at :].strip()

    def type(self, depth: int) -> object:
        """Parse one type. Raises _UnreadableTypeError."""
        if depth > DEPTH_MAX:
            raise _UnreadableTypeError
        word = self._match(self._WORD)[1].lower()
        if word == "array":
            self._expect("<")
            element = self.type(depth + 1)
            self._expect(">")
            return {"type": "list", "containsNull": True, "elementType": element}
        if word == "map":
            self._expect("<")
            key = self.type(depth + 1)
            self._expect(",")
            value = self.type(depth + 1)
            self._expect(">")
            return {"type": "map", "valueContainsNull": True, "keyType": key, "valueType": value}
        if word == "struct":
            return {"type": "struct", "fields": self._fields(depth)}
        return self._plain(word)

    def _fields(self, depth: int) -> list[Json]:
        self._expect("<")
        results: list[Json] = []
        while True:
            name = self._match(self._NAME)[1]
            results.append({"name": name, "type": self.type(depth + 1), "nullable": True})
            if not self._takes(","):
                break
        self._expect(">")
        return results

    def _plain(self, word: str) -> str:
        sizes = self._SIZES.match(self._text, self._at)
        if sizes is not None:
            self._at = sizes.end()
        if word == "decimal":
            precision, scale = ("10", "0") if sizes is None else (sizes[1], sizes[2] or "0")
            return f"decimal({precision},{scale})"
        if word in _SIZES_MAX and sizes is not None and sizes[2] is None:
            return f"{word}({sizes[1]})"
        if sizes is None and word in _OUT_OF:
            return _OUT_OF[word]
        raise _UnreadableTypeError

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise _UnreadableTypeError
        self._at = match.end()
        return match

    def _takes(self, sign: str) -> bool:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        if self._text[self._at : self._at + 1] != sign:
            return False
        self._at += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise _UnreadableTypeError
