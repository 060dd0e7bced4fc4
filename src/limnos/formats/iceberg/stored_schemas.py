# SPDX-License-Identifier: Apache-2.0
"""Schemas as they are stored: every client's spelling of the same schema becomes one that all readers can read.

Must not know tables or commits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, cast

from limnos.formats.iceberg.default_values import default_in_stored_form, lossless_default
from limnos.formats.iceberg.json_types import Json, as_object, objects_at
from limnos.formats.iceberg.schema import SchemaColumns
from limnos.formats.iceberg.types import PrimitiveType, parse_primitive
from limnos.model.errors import BadRequest

_SPACED: Final = ("decimal", "fixed", "geometry", "geography")
_DEFAULTS: Final = frozenset(("initial-default", "write-default"))
_COMPACT: Final = re.compile(r"decimal\([0-9]+,\s*[0-9]+\)|fixed\[[0-9]+\]")
"""The spellings of decimals and fixed types that PyIceberg reads."""


def in_stored_form(schema: Json, schema_columns: SchemaColumns) -> Json:
    """Return a checked schema as it is stored: without null attributes, which stand for absent ones, with canonical
    names of types, fractions as the defaults of floating-point numbers, and `+00:00` as the offset of times in UTC.

    Iceberg's Java library cannot read null for several optional attributes, and PyIceberg no other names of types.

    Args:
        schema: The schema.
        schema_columns: Its columns.
    """
    if not schema_columns.loose and None not in schema.values():
        return schema
    return cast("Json", _stored_type(schema, default_of=default_in_stored_form))


def _stored_type(value: object, *, default_of: Callable[[object, PrimitiveType], object]) -> object:
    if isinstance(value, str):
        return parse_primitive(value).text
    nested = {key: item for key, item in as_object(value, "type").items() if item is not None}
    if nested["type"] == "struct":
        nested["fields"] = [
            _stored_field(one, default_of=default_of) for one in objects_at(nested, "fields", where="Schema")
        ]
        return nested
    for part in ("element",) if nested["type"] == "list" else ("key", "value"):
        nested[part] = _stored_type(nested[part], default_of=default_of)
    return nested


def _stored_field(one: Json, *, default_of: Callable[[object, PrimitiveType], object]) -> Json:
    stored_field = {key: item for key, item in one.items() if item is not None}
    stored_field["type"] = _stored_type(one["type"], default_of=default_of)
    for key in ("initial-default", "write-default"):
        if key in stored_field:
            stored_field[key] = default_of(stored_field[key], parse_primitive(str(one["type"])))
    return stored_field


def correct_schema(schema: Json) -> Json:
    """Return a stored schema in stored form, with default values in the form of their types where nothing is lost; the
    schema itself if it cannot be corrected so.
    """
    try:
        return cast("Json", _stored_type(schema, default_of=lossless_default))
    except (BadRequest, ValueError, KeyError, TypeError):
        return schema


def refuse_unreadable(value: object, where: str) -> None:
    """Check that a checked schema, or a type in it, is spelled as all readers read it, at any depth: no default or
    identifier fields of null, no spaces inside of types, and no integers as defaults of fractions.

    A document that is registered is not rewritten. Raises BadRequest; `where` names the document.
    """
    if isinstance(value, str):
        if value.startswith(_SPACED) and _COMPACT.fullmatch(value) is None:
            canonical = parse_primitive(value).text
            if value != canonical:
                raise BadRequest(f"{where}: type {value} must be {canonical} for all readers to read it")
        return
    if not isinstance(value, dict):
        return
    if value.get("identifier-field-ids", ()) is None:
        raise _null_error(where, "identifier-field-ids")
    for one in value.get("fields") or ():
        if type(one["type"]) is str and not one["type"].startswith(_SPACED) and _DEFAULTS.isdisjoint(one):
            continue  # an ordinary field, without the message that another one may need
        field = f"{where}, field '{one['name']}'"
        for key in ("initial-default", "write-default"):
            if key in one and one[key] is None:
                raise _null_error(field, key)
            if one["type"] in ("timestamptz", "timestamptz_ns") and str(one.get(key, "")).endswith("Z"):
                raise BadRequest(f"{field}: {key} must end with +00:00, not Z, for all readers to read it")
            if one["type"] in ("float", "double") and type(one.get(key)) is int:
                raise BadRequest(f"{field}: {key} must be {float(one[key])} for all readers to read it")
        refuse_unreadable(one["type"], field)
    for part in ("element", "key", "value"):
        refuse_unreadable(value.get(part), where)


def refuse_null(entry: Json, where: str) -> None:
    """Raise BadRequest for null in an optional field: Iceberg's Java library reads only absent ones."""
    for key, value in entry.items():
        if value is None:
            raise _null_error(where, key)


def _null_error(where: str, key: str) -> BadRequest:
    return BadRequest(f"{where}: {key} is null, which not all readers can read: leave it out")
