"""Columns: Gravitino's JSON types to Iceberg's schemas and back (JsonUtils of 1.3; reference section 2.1).

May import `formats.iceberg` for its typed JSON, and `model`. Pure. What one of the two does not have is refused on the way in and
told as `external` on the way out.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from limnos.formats.iceberg.json_types import Json, as_object, objects_at, shown, text_at
from limnos.formats.iceberg.schema import DEPTH_MAX
from limnos.model.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTO = {
    "boolean": "boolean", "integer": "int", "long": "long", "float": "float", "double": "double", "date": "date",
    "time": "time", "timestamp": "timestamp", "timestamp_tz": "timestamptz", "string": "string", "binary": "binary",
    "uuid": "uuid", "null": "unknown", "variant": "variant",
}  # fmt: skip
_OUT_OF = {iceberg: ours for ours, iceberg in _INTO.items()} | {
    "timestamp_ns": "timestamp(9)", "timestamptz_ns": "timestamp_tz(9)"
}  # fmt: skip
_SIZED = re.compile(r"(time|timestamp|timestamp_tz|fixed)\((\d{1,9})\)")
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")


def schema_of(columns: list[Json]) -> Json:
    """Build an Iceberg schema; ids are counted from 1. Raises BadRequest for what Iceberg does not have."""
    ids = count(1)
    return {"type": "struct", "fields": [_field(one, ids, depth=0) for one in columns]}


def _field(column: Json, ids: Iterator[int], *, depth: int) -> Json:
    name = text_at(column, "name", where="Column")
    built: Json = {"id": next(ids), "name": name, "required": column.get("nullable") is False}
    built["type"] = _type(column.get("type"), ids, name, depth=depth)
    if isinstance(column.get("comment"), str):
        built["doc"] = column["comment"]
    return built


def _type(value: object, ids: Iterator[int], name: str, *, depth: int) -> object:
    if depth > DEPTH_MAX:
        raise BadRequest(f"Column {shown(name)} is nested more than {DEPTH_MAX} levels deep")
    if isinstance(value, str):
        return _plain(value.lower().strip(), name)
    nested, where = as_object(value, f"The type of column {shown(name)}"), f"Column {shown(name)}"
    kind, deeper = text_at(nested, "type", where=where).lower(), depth + 1
    if kind == "struct":
        fields = objects_at(nested, "fields", where=where)
        return {"type": "struct", "fields": [_field(one, ids, depth=deeper) for one in fields]}
    if kind == "list":
        element: Json = {
            "type": "list",
            "element-id": next(ids),
            "element-required": nested.get("containsNull") is False,
        }
        return {**element, "element": _type(nested.get("elementType"), ids, name, depth=deeper)}
    if kind == "map":
        keyed: Json = {"type": "map", "key-id": next(ids), "key": _type(nested.get("keyType"), ids, name, depth=deeper)}
        keyed |= {"value-id": next(ids), "value-required": nested.get("valueContainsNull") is False}
        return {**keyed, "value": _type(nested.get("valueType"), ids, name, depth=deeper)}
    raise BadRequest(f"Column {shown(name)}: Iceberg has no type {shown(kind)}")


def _plain(text: str, name: str) -> str:
    if text in _INTO:
        return _INTO[text]
    decimal, sized = _DECIMAL.fullmatch(text), _SIZED.fullmatch(text)
    if decimal is not None:
        return f"decimal({decimal[1]}, {decimal[2]})"
    if sized is not None and sized[1] == "fixed":
        return f"fixed[{sized[2]}]"
    if sized is not None and int(sized[2]) <= 6:
        return _INTO[sized[1]]
    raise BadRequest(
        f"Column {shown(name)}: Iceberg has no type {shown(text)}; known are {', '.join(_INTO)}, decimal(p,s), fixed(n)"
    )


def columns_of(schema: Json) -> list[Json]:
    """Tell the columns of a stored Iceberg schema."""
    return [
        {**_told_field(one), "autoIncrement": False} for one in objects_at(schema, "fields", where="Schema")
    ]  # fmt: skip


def _told_field(field: Json) -> Json:
    told: Json = {"name": field["name"], "type": _told(field["type"]), "nullable": field.get("required") is not True}
    return told | ({"comment": field["doc"]} if isinstance(field.get("doc"), str) else {})


def _told(value: object) -> object:
    if isinstance(value, dict):
        if value["type"] == "struct":
            return {
                "type": "struct",
                "fields": [_told_field(one) for one in objects_at(value, "fields", where="Schema")],
            }
        if value["type"] == "list":
            none = value.get("element-required") is not True
            return {"type": "list", "containsNull": none, "elementType": _told(value["element"])}
        none = value.get("value-required") is not True
        return {
            "type": "map",
            "valueContainsNull": none,
            "keyType": _told(value["key"]),
            "valueType": _told(value["value"]),
        }
    text = str(value)
    if text.startswith("decimal"):
        return text.replace(" ", "")
    if text.startswith("fixed"):
        return text.replace("[", "(").replace("]", ")")
    return _OUT_OF.get(text) or {"type": "external", "catalogString": text}
