# SPDX-License-Identifier: Apache-2.0
"""Columns of Lance tables in Gravitino's JSON types (JsonUtils of 1.3; reference section 2.1).

Pure. The input is a JSON array of fields with Lance's logical type names. A type that Gravitino lacks becomes
`external` with Lance's own name.
"""

from __future__ import annotations

from typing import Final

import msgspec

Json = dict[str, object]
_PLAIN: Final = {
    "null": "null",
    "bool": "boolean",
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "uint8": "byte unsigned",
    "uint16": "short unsigned",
    "uint32": "integer unsigned",
    "uint64": "long unsigned",
    "halffloat": "float",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32:day": "date",
    "date64:ms": "date",
}
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


class _LanceType(msgspec.Struct):
    type: str
    fields: list[_LanceField] = []
    length: int | None = None


class _LanceField(msgspec.Struct):
    name: str
    type: _LanceType
    nullable: bool = True
    metadata: dict[str, str] = {}


def columns_of(fields: bytes) -> list[Json]:
    """Convert the fields of a Lance table, as JSON, to Gravitino's columns."""
    return [
        {**_encode_field(each), "autoIncrement": False} for each in msgspec.json.decode(fields, type=list[_LanceField])
    ]


def _encode_field(field: _LanceField) -> Json:
    return {"name": field.name, "type": _type(field.type), "nullable": field.nullable}


def _type(kind: _LanceType) -> object:
    if kind.type == "struct":
        return {"type": "struct", "fields": [_encode_field(each) for each in kind.fields]}
    if kind.type in ("list", "large_list"):
        item = kind.fields[0]
        return {"type": "list", "containsNull": item.nullable, "elementType": _type(item.type)}
    if kind.type == "fixed_size_list":
        return _external(f"fixed_size_list:{kind.fields[0].type.type}:{kind.length}")
    word, *parts = kind.type.split(":")
    if word == "dict":
        return _type(_LanceType(":".join(parts[:-2])))
    if word == "decimal" and int(parts[1]) <= 38:
        return f"decimal({parts[1]},{parts[2]})"
    if word == "fixed_size_binary":
        return f"fixed({parts[0]})"
    if word in ("time32", "time64"):
        return f"time({_DIGITS[parts[0]]})"
    if word == "timestamp":
        return f"{'timestamp' if parts[1] == '-' else 'timestamp_tz'}({_DIGITS[parts[0]]})"
    return _PLAIN.get(kind.type) or _external(kind.type)


def _external(text: str) -> Json:
    return {"type": "external", "catalogString": text}
