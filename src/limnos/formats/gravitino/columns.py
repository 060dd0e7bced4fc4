# SPDX-License-Identifier: Apache-2.0
"""Columns: converts Gravitino's JSON columns to Iceberg schemas and back (JsonUtils of 1.3; reference section 2.1).

Must not know tables. Pure. A type that Iceberg lacks (`varchar(20)`) becomes an Iceberg type that can represent its
values. The original type is stored by field id, and is returned as long as the field has that Iceberg type. Types that
neither system has are refused on input and returned as `external` on output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Final, NamedTuple

import msgspec

from limnos.formats.iceberg.default_values import default_in_stored_form
from limnos.formats.iceberg.json_types import Json, as_object, objects_at, preview_value, text_at
from limnos.formats.iceberg.literals import to_json_literal
from limnos.formats.iceberg.schema import DEPTH_MAX, with_fresh_ids
from limnos.formats.iceberg.types import parse_primitive
from limnos.model.errors import BadRequest, UnsupportedOperation

ORIGINAL_TYPES: Final = "gravitino.types"
"""The property of an Iceberg table with the original types: JSON, by field id."""
_ICEBERG_TYPES = {
    "boolean": "boolean",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamp_tz": "timestamptz",
    "string": "string",
    "binary": "binary",
    "uuid": "uuid",
    "null": "unknown",
    "variant": "variant",
}
_GRAVITINO_TYPES = {iceberg: ours for ours, iceberg in _ICEBERG_TYPES.items()} | {
    "timestamp_ns": "timestamp(9)",
    "timestamptz_ns": "timestamp_tz(9)",
}
_REPRESENTED_BY = {
    "byte": "int",
    "short": "int",
    "byte unsigned": "int",
    "short unsigned": "int",
    "integer unsigned": "long",
    "long unsigned": "decimal(20, 0)",
    "timestamp(7)": "timestamp_ns",
    "timestamp(8)": "timestamp_ns",
    "timestamp_tz(7)": "timestamptz_ns",
    "timestamp_tz(8)": "timestamptz_ns",
}
"""Iceberg types that can represent the values of types that Iceberg lacks."""
_SIZED = re.compile(r"(time|timestamp|timestamp_tz|fixed|char|varchar)\(\s*(\d{1,9})\s*\)")
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_SPATIAL = re.compile(r"(geometry|geography)(\(.*\))?")
_UNDER = {"struct": "fields", "list": "elementType", "map": "valueType"}
_NUMBERS: Final[Mapping[str, Callable[[str], object]]] = {
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
}

_NUMERIC: Final = frozenset({"int", "long", "float", "double", "decimal"})
_DIGITS: Final = re.compile(r"[-+.0-9eE]+")
_WRITTEN: Final = frozenset({"decimal", "date", "time", "timestamp", "timestamptz"})
"""Families of types whose literals are converted to Iceberg's form."""
_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "byte": (-(2**7), 2**7 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte unsigned": (0, 2**8 - 1),
    "short unsigned": (0, 2**16 - 1),
    "integer unsigned": (0, 2**32 - 1),
    "long unsigned": (0, 2**64 - 1),
}


class PlainType(NamedTuple):
    """A primitive type: Iceberg's name, and Gravitino's name if it cannot be derived from Iceberg's."""

    iceberg: str
    word: str | None = None


class AnnotatedSchema(NamedTuple):
    """An Iceberg schema, and the original types that it cannot express, by field id."""

    schema: Json
    original_types: dict[str, str]


class FieldBuilder:
    """Builds Iceberg fields from columns, assigns ids, and collects original types."""

    def __init__(self, first: int = 1) -> None:
        self._ids = count(first)
        self.original_types: dict[str, str] = {}

    def field(self, column: Json, *, depth: int = 0) -> Json:
        """Convert a column in Gravitino's JSON to an Iceberg field with the next field id.

        Raises BadRequest for a malformed column, UnsupportedOperation for a feature that Iceberg lacks.
        """
        name = text_at(column, "name", where="Column")
        if column.get("autoIncrement") is True:
            raise UnsupportedOperation(
                f"Column {preview_value(name)}: Iceberg has no auto-increment: leave autoIncrement out"
            )
        field_id = next(self._ids)
        built: Json = {"id": field_id, "name": name, "required": column.get("nullable") is False}
        built["type"] = self.type(column.get("type"), name, field_id=field_id, depth=depth)
        if isinstance(column.get("comment"), str):
            built["doc"] = column["comment"]
        if column.get("defaultValue") is not None:
            word = self.original_types.get(str(field_id))
            built["write-default"] = default_of(column["defaultValue"], built["type"], word=word, name=name)
        return built

    def type(self, value: object, name: str, *, field_id: int, depth: int = 0) -> object:
        """Convert a type in Gravitino's JSON to an Iceberg type, and record the original type if Iceberg lacks it.

        Raises BadRequest for an unknown, malformed or too deeply nested type, UnsupportedOperation for a feature that
        Iceberg lacks.
        """
        if depth > DEPTH_MAX:
            raise BadRequest(f"Column {preview_value(name)} is nested more than {DEPTH_MAX} levels deep")
        if isinstance(value, str):
            plain_type = plain_of(value, name)
            if plain_type.word is not None:
                self.original_types[str(field_id)] = plain_type.word
            return plain_type.iceberg
        nested, where = as_object(value, f"The type of column {preview_value(name)}"), f"Column {preview_value(name)}"
        kind, deeper = text_at(nested, "type", where=where).lower(), depth + 1
        if kind == "struct":
            fields = objects_at(nested, "fields", where=where)
            return {"type": "struct", "fields": [self.field(one, depth=deeper) for one in fields]}
        if kind == "external":
            return _external(text_at(nested, "catalogString", where=where), name)
        if kind not in _UNDER:
            raise BadRequest(f"Column {preview_value(name)}: Iceberg has no type {preview_value(kind)}")
        return self._list_or_map(nested, kind, name=name, depth=deeper)

    def _list_or_map(self, nested: Json, kind: str, *, name: str, depth: int) -> Json:
        if kind == "list":
            element, required = next(self._ids), nested.get("containsNull") is False
            result = self.type(nested.get("elementType"), name, field_id=element, depth=depth)
            return {"type": "list", "element-id": element, "element-required": required, "element": result}
        key, value = next(self._ids), next(self._ids)
        keyed: Json = {"type": "map", "key-id": key}
        keyed["key"] = self.type(nested.get("keyType"), name, field_id=key, depth=depth)
        keyed |= {"value-id": value, "value-required": nested.get("valueContainsNull") is False}
        return {**keyed, "value": self.type(nested.get("valueType"), name, field_id=value, depth=depth)}


def schema_of(columns: list[Json]) -> Json:
    """Build an Iceberg schema with ids from 1. Raises as `FieldBuilder.field` does, and BadRequest for types that
    Iceberg cannot express exactly.
    """
    schema = table_schema_of(columns)
    if schema.original_types:
        words = ", ".join(sorted(set(schema.original_types.values())))
        raise BadRequest(f"Iceberg has no type {words}: use one that it has, such as string, integer or timestamp")
    return schema.schema


def table_schema_of(columns: list[Json]) -> AnnotatedSchema:
    """Build an Iceberg schema and the original types to store with it. Raises as `FieldBuilder.field` does."""
    fields = FieldBuilder()
    schema, ids = with_fresh_ids({"type": "struct", "fields": [fields.field(one) for one in columns]})
    return AnnotatedSchema(schema, {str(ids.renumbered[int(key)]): word for key, word in fields.original_types.items()})


def plain_of(text: str, name: str) -> PlainType:
    """Return Iceberg's primitive type for a type in Gravitino's JSON. Raises BadRequest for an unknown type."""
    word = " ".join(text.lower().split())
    if word in _ICEBERG_TYPES:
        return PlainType(_ICEBERG_TYPES[word])
    if word in _REPRESENTED_BY:
        return PlainType(_REPRESENTED_BY[word], word)
    decimal, sized = _DECIMAL.fullmatch(word), _SIZED.fullmatch(word)
    if decimal is not None:
        return PlainType(parse_primitive(f"decimal({decimal[1]}, {decimal[2]})").text)
    if sized is not None:
        kind, size = sized[1], int(sized[2])
        if kind == "fixed":
            return PlainType(f"fixed[{size}]")
        if kind in ("char", "varchar"):
            return PlainType("string", f"{kind}({size})")
        if size <= 6:
            return PlainType(_ICEBERG_TYPES[kind], f"{kind}({size})")
        if size == 9 and kind != "time":
            return PlainType("timestamp_ns" if kind == "timestamp" else "timestamptz_ns")
    if _SPATIAL.fullmatch(word):
        return PlainType(parse_primitive(text.strip()).text)
    raise BadRequest(
        f"Column {preview_value(name)}: Iceberg has no type {preview_value(text)}; known are"
        f" {', '.join((*_ICEBERG_TYPES, *_REPRESENTED_BY))}, decimal(p,s), fixed(n), char(n), varchar(n)"
    )


def _external(text: str, name: str) -> str:
    try:
        return parse_primitive(text).text
    except BadRequest:
        raise BadRequest(f"Column {preview_value(name)}: Iceberg has no type {preview_value(text)}") from None


def default_of(value: object, kind: object, *, word: str | None, name: str) -> object:
    """Convert Gravitino's literal to the default value of an Iceberg field, in Iceberg's form: `"1.5"` of a
    decimal(9, 2) becomes `"1.50"`.

    Args:
        value: The literal in Gravitino's JSON.
        kind: The field's Iceberg type.
        word: The column's original type if Iceberg lacks it, such as `varchar(3)`; its values are limited, too.
        name: The column's name, for messages.

    Raises:
        UnsupportedOperation: The value is an expression other than a literal, or the column is not primitive.
        BadRequest: The value is not of the type.
    """
    fields = as_object(value, f"The default of column {preview_value(name)}")
    if fields.get("type") != "literal" or not isinstance(kind, str):
        raise UnsupportedOperation(
            f"Column {preview_value(name)}: the default of an Iceberg column must be a literal of a primitive type"
        )
    text = fields.get("value")
    if not isinstance(text, str):
        raise BadRequest(f"Column {preview_value(name)}: the value of a literal must be a string")
    if text == "NULL" and str(fields.get("dataType", "")).lower() == "null":
        return None
    parsed = parse_primitive(kind)
    about = f"Column {preview_value(name)}"
    try:
        if parsed.family in _NUMERIC and not _DIGITS.fullmatch(text):
            raise ValueError(text)  # Python reads 1_000 and digits of other scripts, Gravitino's clients do not
        converted = _NUMBERS[kind](text) if kind in _NUMBERS else text
        if parsed.family in _WRITTEN:
            converted = to_json_literal(text, kind, about=about)
        if word is not None and not _is_within(converted, word):
            raise ValueError(text)
        return default_in_stored_form(converted, parsed)
    except (KeyError, ValueError):
        raise BadRequest(f"{about}: {preview_value(text)} is not a value of type {word or kind}") from None


def _is_within(value: object, word: str) -> bool:
    """Return whether a value that Iceberg's type can represent is one of the original type."""
    sized = _SIZED.fullmatch(word)
    if isinstance(value, str) and sized is not None and sized[1] in ("char", "varchar"):
        return len(value) <= int(sized[2])
    bounds = _BOUNDS.get(word)
    return bounds is None or bounds[0] <= int(str(value)) <= bounds[1]


def original_types_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Decode a table's original types, by field id, from its properties; empty if the property is missing or
    malformed.
    """
    try:
        return msgspec.json.decode(properties.get(ORIGINAL_TYPES, "{}"), type=dict[str, str])
    except msgspec.MsgspecError:
        return {}


def original_types_text(entries: Mapping[str, str]) -> str:
    """Encode original types as the value of a table property."""
    return msgspec.json.encode(dict(entries), order="sorted").decode()


def columns_of(schema: Json, entries: Mapping[str, str] | None = None) -> list[Json]:
    """Convert a stored Iceberg schema to Gravitino's columns. `entries` are the original types by field id."""
    words = entries or {}
    return [{**_field_json(one, words), "autoIncrement": False} for one in objects_at(schema, "fields", where="Schema")]


def _field_json(field: Json, entries: Mapping[str, str]) -> Json:
    kind = _type_json(field["type"], entries, field_id=field.get("id"))
    fields: Json = {"name": field["name"], "type": kind, "nullable": field.get("required") is not True}
    if isinstance(field.get("doc"), str):
        fields["comment"] = field["doc"]
    default = field.get("write-default")
    if default is not None and isinstance(kind, str):
        text = str(default).lower() if isinstance(default, bool) else str(default)
        fields["defaultValue"] = {"type": "literal", "dataType": kind, "value": text}
    return fields


def _type_json(value: object, entries: Mapping[str, str], *, field_id: object) -> object:
    if isinstance(value, dict):
        if value["type"] == "struct":
            fields = objects_at(value, "fields", where="Schema")
            return {"type": "struct", "fields": [_field_json(one, entries) for one in fields]}
        if value["type"] == "list":
            none = value.get("element-required") is not True
            element = _type_json(value["element"], entries, field_id=value.get("element-id"))
            return {"type": "list", "containsNull": none, "elementType": element}
        none = value.get("value-required") is not True
        return {
            "type": "map",
            "valueContainsNull": none,
            "keyType": _type_json(value["key"], entries, field_id=value.get("key-id")),
            "valueType": _type_json(value["value"], entries, field_id=value.get("value-id")),
        }
    return _plain_type_json(str(value), entries.get(str(field_id)))


def _plain_type_json(text: str, word: str | None) -> object:
    """Return a primitive type as Gravitino's JSON: the original type, if the field still has the Iceberg type that
    represents it.
    """
    if word is not None and stands_for(word, text):
        return word
    if text.startswith("decimal"):
        return text.replace(" ", "")
    if text.startswith("fixed"):
        return text.replace("[", "(").replace("]", ")")
    return _GRAVITINO_TYPES.get(text) or {"type": "external", "catalogString": text}


def stands_for(word: str, iceberg: str) -> bool:
    """Return whether the original type `word` is one that Limnos stores as the Iceberg type `iceberg`."""
    try:
        return plain_of(word, "") == PlainType(iceberg, word)
    except BadRequest:
        return False
