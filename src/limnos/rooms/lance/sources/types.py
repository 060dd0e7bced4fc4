# SPDX-License-Identifier: Apache-2.0
"""Parses types in clients' JSON, with Arrow's names or Lance's logical names, to Arrow types.

Must not know tables. `schemas` does the inverse conversion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from limnos.model.errors import BadRequest

_PLAIN: Final[dict[str, pa.DataType]] = {
    **{name: pa.type_for_alias(name) for name in ("null", "bool", "binary", "large_binary", "date32", "date64")},
    **{f"{sign}int{bits}": pa.type_for_alias(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "utf8": pa.string(),
    "string": pa.string(),
    "large_utf8": pa.large_string(),
    "large_string": pa.large_string(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
}
_TIMED: Final = re.compile(r"(timestamp|duration|time32|time64):(s|ms|us|ns)(?::(.+))?")
_DECIMAL: Final = re.compile(r"decimal:(128|256):(\d+):(-?\d+)")
_SIZED: Final = re.compile(r"fixed_size_binary:(\d+)")
_ITEM: Final = "item"


def type_of(entries: Mapping[str, Any] | str) -> pa.DataType:
    """Convert a type in JSON, such as `"utf8"`, to an Arrow type. Raises BadRequest for an unknown type."""
    try:
        result = _type_by_name(entries, {}) if isinstance(entries, str) else _type_by_name(entries["type"], entries)
    except (KeyError, TypeError, ValueError, IndexError, pa.ArrowException):
        result = None
    if result is None:
        raise BadRequest(
            f"{str(entries)[:100]} is not a column type: write one as in the answer of describe, for example {{'type':"
            " 'int64'}"
        )
    return result


def _type_by_name(name: object, entries: Mapping[str, Any]) -> pa.DataType | None:
    if isinstance(name, Mapping):
        return type_of(name)
    word = str(name)
    if word in _PLAIN:
        return _PLAIN[word]
    if (timed := _TIMED.fullmatch(word)) is not None:
        kind, unit, zone = timed.groups()
        return (
            pa.timestamp(unit, None if zone in (None, "-") else zone)
            if kind == "timestamp"
            else getattr(pa, kind)(unit)
        )
    if (decimal := _DECIMAL.fullmatch(word)) is not None:
        bits, precision, scale = map(int, decimal.groups())
        return (pa.decimal128 if bits == 128 else pa.decimal256)(precision, scale)
    if (sized := _SIZED.fullmatch(word)) is not None:
        return pa.binary(int(sized[1]))
    return _nested_type(word, entries)


def _nested_type(word: str, entries: Mapping[str, Any]) -> pa.DataType | None:
    """Convert a JSON type that has a length or fields, such as a list or struct; None for any other type."""
    length = entries.get("length")
    if word in ("decimal128", "decimal256") and length is not None:
        return getattr(pa, word)(length // 1000, length % 1000)
    if word == "fixed_size_binary" and length is not None:
        return pa.binary(length)
    fields = [
        pa.field(each.get("name", _ITEM), type_of(each["type"]), each.get("nullable", True))
        for each in entries["fields"]
    ]
    if word == "struct":
        return pa.struct(fields)
    if word == "fixed_size_list" and length is not None:
        return pa.list_(fields[0], length)
    return {"list": pa.list_, "large_list": pa.large_list}[word](fields[0])
