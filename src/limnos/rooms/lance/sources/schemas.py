# SPDX-License-Identifier: Apache-2.0
"""Arrow schemas as JSON, with the type names that each of Lance's clients expects.

Must not know tables. In both forms a nested type has its child types as fields (`fixed_size_list` has a length and its
item). Lance REST uses Arrow's names (`utf8`); LanceDB's remote clients expect Lance's logical names (`string`,
`timestamp:us:UTC`).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

Json = dict[str, Any]
_RENAMED = {
    "string": "utf8",
    "large_string": "large_utf8",
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
    "date32[day]": "date32",
    "date64[ms]": "date64",
}
_LOGICAL = {"date32[day]": "date32:day", "date64[ms]": "date64:ms"}
_UNITS = {"s": "s", "ms": "ms", "us": "us", "ns": "ns"}


def fields_of(schema: pa.Schema) -> list[Json]:
    """Return the fields of a schema, with Arrow's type names (`utf8`)."""
    return [_field(field) for field in schema]


def logical_fields_of(schema: pa.Schema) -> list[Json]:
    """Return the fields of a schema, with Lance's logical type names (`string`)."""
    return [_logical_field(field) for field in schema]


def texts_of(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    """Decode the key-value metadata of a schema or field from UTF-8."""
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in (metadata or {}).items()}


def _field_json(field: pa.Field, fields: Json) -> Json:
    result: Json = {"name": field.name, "nullable": field.nullable, "type": fields}
    if field.metadata:
        result["metadata"] = texts_of(field.metadata)
    return result


def _field(field: pa.Field) -> Json:
    return _field_json(field, _type(field.type))


def _type(kind: pa.DataType) -> Json:
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_fixed_size_list(kind):
        return {"type": "fixed_size_list", "length": kind.list_size, "fields": [_field(kind.value_field)]}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        word = "large_list" if pa.types.is_large_list(kind) else "list"
        return {"type": word, "fields": [_field(kind.value_field)]}
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field(kind.field(index)) for index in range(kind.num_fields)]}
    if pa.types.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        return {"type": "map", "fields": [_field(entries)]}
    if pa.types.is_decimal(kind):
        return {"type": f"decimal{kind.bit_width}", "length": kind.precision * 1000 + kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    text = str(kind)
    return {"type": _RENAMED.get(text, text.partition("[")[0])}


def _logical_field(field: pa.Field) -> Json:
    return _field_json(field, _logical_type(field.type))


def _logical_type(kind: pa.DataType) -> Json:
    if pa.types.is_struct(kind):
        fields = [_logical_field(kind.field(index)) for index in range(kind.num_fields)]
        return {"type": "struct", "fields": fields}
    if pa.types.is_fixed_size_list(kind):
        return {"type": "fixed_size_list", "length": kind.list_size, "fields": [_logical_field(kind.value_field)]}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        word = "large_list" if pa.types.is_large_list(kind) else "list"
        return {"type": word, "fields": [_logical_field(kind.value_field)]}
    return {"type": _logical(kind)}


def _logical(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return f"dict:{_logical(kind.value_type)}:{_logical(kind.index_type)}:false"
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed_size_binary:{kind.byte_width}"
    if pa.types.is_decimal(kind):
        return f"decimal:{kind.bit_width}:{kind.precision}:{kind.scale}"
    if pa.types.is_timestamp(kind):
        return f"timestamp:{_UNITS[kind.unit]}:{kind.tz or '-'}"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        word = "duration" if pa.types.is_duration(kind) else f"time{kind.bit_width}"
        return f"{word}:{_UNITS[kind.unit]}"
    text = str(kind)
    return _LOGICAL.get(text, text)
