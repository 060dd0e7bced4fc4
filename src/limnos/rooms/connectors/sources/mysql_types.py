# SPDX-License-Identifier: Apache-2.0
"""Types and defaults of MySQL's and MariaDB's columns: Gravitino's JSON to SQL and back (docs/guides/connectors.md).

Pure. A type that Gravitino lacks becomes `external` with the database's own name. A request may use a few of these,
only by name, so no string of a request becomes part of a statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from limnos.formats.iceberg.json_types import Json, as_object, preview_value, text_at
from limnos.model.errors import BadRequest, UnsupportedOperation

_INTO: Final[Mapping[str, str]] = {
    "boolean": "tinyint(1)",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "byte unsigned": "tinyint unsigned",
    "short unsigned": "smallint unsigned",
    "integer unsigned": "int unsigned",
    "long unsigned": "bigint unsigned",
    "string": "longtext",
    "date": "date",
    "time": "time",
    "timestamp": "datetime",
    "timestamp_tz": "timestamp",
    "binary": "longblob",
}
_OUT_OF: Final[Mapping[str, str]] = {
    **{theirs: ours for ours, theirs in _INTO.items()},
    "bit(1)": "boolean",
    "text": "string",
    "mediumtext": "string",
    "blob": "binary",
    "mediumblob": "binary",
}
_TIMES: Final[Mapping[str, str]] = {"time": "time", "timestamp": "datetime", "timestamp_tz": "timestamp"}
_TIMES_OUT: Final[Mapping[str, str]] = {theirs: ours for ours, theirs in _TIMES.items()}
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_SIZED: Final = re.compile(r"(char|varchar|fixed|time|timestamp|timestamp_tz)\(\s*(\d{1,5})\s*\)")
_SIZED_OUT: Final = re.compile(r"(char|varchar|binary|time|datetime|timestamp)\((\d+)\)")
_SIZES_MAX: Final = {"char": 255, "varchar": 65_535, "fixed": 255, "time": 6, "timestamp": 6, "timestamp_tz": 6}
_WIDTH: Final = re.compile(r"\b((?:tiny|small|medium|big)?int|year)\(\d+\)")
"""A pattern for the display width of a number, which older servers report. It has a meaning only in `tinyint(1)`."""
_NAMED: Final = frozenset(
    {
        "json",
        "year",
        "mediumint",
        "mediumint unsigned",
        "tinytext",
        "text",
        "mediumtext",
        "tinyblob",
        "blob",
        "mediumblob",
        "uuid",
        "inet4",
        "inet6",
        "geometry",
        "point",
        "linestring",
        "polygon",
    }
)
"""Types that are accepted as `external`."""
_NAMED_SIZED: Final = re.compile(r"(varbinary|bit)\(\d{1,5}\)")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", re.IGNORECASE)
_NOW_TOLD: Final = re.compile(r"current_timestamp(?:\(\d?\))?|now\(\d?\)", re.IGNORECASE)
_NOW: Final = frozenset({"now", "current_timestamp"})
_QUOTED: Final = re.compile(r"'((?:[^']|'')*)'")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
"""Backslash escapes in MariaDB's string literals, which it uses in every connection mode."""
PRECISION_MAX: Final = 38
COUNTS: Final = re.compile(r"(tiny|small|medium|big)?int( unsigned)?")


def normalize_type(text: str) -> str:
    """Return a type without the differences between servers, such as display widths; types with a list of values or
    ZEROFILL are returned unchanged.
    """
    if "'" in text or "zerofill" in text.lower():
        return text
    word = text.lower()
    return word if word == "tinyint(1)" else _WIDTH.sub(r"\1", word)


def type_json(text: str) -> object:
    """Return a database type as Gravitino's JSON, such as `"decimal(10,2)"`; `external` if Gravitino lacks it."""
    word = normalize_type(text)
    if word in _OUT_OF:
        return _OUT_OF[word]
    decimal, sized = _DECIMAL.fullmatch(word), _SIZED_OUT.fullmatch(word)
    if decimal is not None and 0 < int(decimal[1]) <= PRECISION_MAX:
        return f"decimal({decimal[1]},{decimal[2]})"
    if sized is None:
        return {"type": "external", "catalogString": word}
    ours = "fixed" if sized[1] == "binary" else _TIMES_OUT.get(sized[1], sized[1])
    return f"{ours}({sized[2]})"


def type_of(value: object, *, column: str) -> str:
    """Return the database's type for Gravitino's JSON. Raises BadRequest if the database has none."""
    if isinstance(value, str):
        return _plain_of(value, column=column)
    nested, where = as_object(value, f"The type of column {preview_value(column)}"), f"Column {preview_value(column)}"
    kind = text_at(nested, "type", where=where).lower()
    text = text_at(nested, "catalogString", where=where).strip().lower() if kind == "external" else ""
    if text in _NAMED or _NAMED_SIZED.fullmatch(text) is not None:
        return text
    raise _unknown(column, text or kind)


def _plain_of(text: str, *, column: str) -> str:
    word = " ".join(text.lower().split())
    if word in _INTO:
        return _INTO[word]
    decimal, sized = _DECIMAL.fullmatch(word), _SIZED.fullmatch(word)
    if decimal is not None and 0 < int(decimal[1]) <= PRECISION_MAX and int(decimal[2]) <= min(30, int(decimal[1])):
        return f"decimal({int(decimal[1])},{int(decimal[2])})"
    if sized is None or int(sized[2]) > _SIZES_MAX[sized[1]]:
        raise _unknown(column, text)
    theirs = "binary" if sized[1] == "fixed" else _TIMES.get(sized[1], sized[1])
    return f"{theirs}({int(sized[2])})"


def _unknown(column: str, kind: str) -> BadRequest:
    return BadRequest(
        f"Column {preview_value(column)}: the source has no type {preview_value(kind)}; its types are"
        f" {', '.join(_INTO)}, decimal(p,s), char(n), varchar(n), fixed(n), times with a precision up to 6, and"
        " external types without parts by their names"
    )


def literal(text: str) -> str:
    """Quote a string as a SQL literal. Raises BadRequest for characters beyond U+FFFF.

    Correct only on connections with `NO_BACKSLASH_ESCAPES`, which `MysqlSource` sets. In comments and defaults the
    server would replace characters beyond U+FFFF by question marks.
    """
    if any(ord(each) > 0xFFFF for each in text):
        raise BadRequest(
            f"The source cannot store {preview_value(text)}: leave out characters beyond Unicode's first plane, such as"
            " emoji"
        )
    return "'" + text.replace("'", "''") + "'"


def default_of(value: object, *, column: str, kind: str) -> str | None:
    """Return a default as SQL: a literal or CURRENT_TIMESTAMP. Raises BadRequest for malformed JSON,
    UnsupportedOperation for any other expression.
    """
    fields = as_object(value, f"The default of column {preview_value(column)}")
    word, where = fields.get("type"), f"The default of column {preview_value(column)}"
    if word == "literal":
        text = text_at(fields, "value", where=where)
        if text == "NULL" and str(fields.get("dataType", "")).lower() == "null":
            return None
        if kind == "tinyint(1)" and text.lower() in ("true", "false"):
            return "1" if text.lower() == "true" else "0"
        return literal(text)
    if word == "function" and str(fields.get("funcName", "")).lower() in _NOW and not fields.get("funcArgs"):
        precision = re.search(r"\(\d\)", kind)
        return "CURRENT_TIMESTAMP" + (precision[0] if precision is not None else "")
    raise UnsupportedOperation(f"{where} must be a literal, or the function current_timestamp")


def default_json(text: str | None, kind: object) -> Json | None:
    """Return a column's default, given as SQL, as Gravitino's JSON: a literal, current_timestamp, or an `unparsed`
    expression; None for NULL.
    """
    if text is None or text.upper() == "NULL":
        return None
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None or _NUMBER.fullmatch(text) is not None:
        value = text if quoted is None else quoted[1].replace("''", "'")
        if kind == "boolean":
            value = {"0": "false", "1": "true"}.get(value, value)
        return {"type": "literal", "dataType": kind, "value": value}
    if _NOW_TOLD.fullmatch(text) is not None:
        return {"type": "function", "funcName": "current_timestamp", "funcArgs": []}
    return {"type": "unparsed", "unparsedExpression": text}


def default_sql(text: str | None, *, kind: str, extra: str, quoted: bool) -> str | None:
    """Return a default from information_schema as SQL.

    `quoted`: the text is already SQL, as in MariaDB; MySQL does not quote string defaults.
    """
    if text is None or (quoted and text.upper() == "NULL"):
        return None
    if quoted and text.startswith("'"):
        return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)
    if quoted or kind.startswith("bit") or _NOW_TOLD.fullmatch(text) is not None:
        return text
    return f"({text})" if "default_generated" in extra.lower() else literal(text)
