"""Schemas as they are stored: every client's spelling of the same schema becomes one that all readers can read.

May import the standard library, `limnos.model.errors` and this package's schema. Must not know tables or commits.
"""

from __future__ import annotations

from typing import cast

from limnos.formats.iceberg.default_values import default_in_stored_form
from limnos.formats.iceberg.json_types import Json, as_object, objects_at
from limnos.formats.iceberg.schema import SchemaColumns
from limnos.formats.iceberg.types import parse_primitive
from limnos.model.errors import BadRequest


def in_stored_form(schema: Json, schema_columns: SchemaColumns) -> Json:
    """Return a checked schema as it is stored: without null attributes, which stand for absent ones, with canonical
    names of types, and fractions as the defaults of floating-point numbers.

    Iceberg's Java library cannot read null for several optional attributes, and PyIceberg no other names of types.

    Args:
        schema: The schema.
        schema_columns: Its columns.
    """
    if not schema_columns.loose and None not in schema.values():
        return schema
    return cast("Json", _stored_type(schema))


def _stored_type(value: object) -> object:
    if isinstance(value, str):
        return parse_primitive(value).text
    nested = {key: item for key, item in as_object(value, "type").items() if item is not None}
    if nested["type"] == "struct":
        nested["fields"] = [_stored_field(one) for one in objects_at(nested, "fields", where="Schema")]
        return nested
    for part in ("element",) if nested["type"] == "list" else ("key", "value"):
        nested[part] = _stored_type(nested[part])
    return nested


def _stored_field(one: Json) -> Json:
    stored = {key: item for key, item in one.items() if item is not None}
    stored["type"] = _stored_type(one["type"])
    for key in ("initial-default", "write-default"):
        if key in stored:
            stored[key] = default_in_stored_form(stored[key], parse_primitive(str(one["type"])))
    return stored


def refuse_null_defaults(value: object, where: str) -> None:
    """Check that a checked schema, or a type in it, has no default of null, at any depth.

    A document that is registered is not rewritten. Raises BadRequest; `where` names the document.
    """
    if isinstance(value, dict):
        for one in value.get("fields") or ():
            for key in ("initial-default", "write-default"):
                if key in one and one[key] is None:
                    raise _null_error(f"{where}, field '{one['name']}'", key)
            refuse_null_defaults(one["type"], where)
        for part in ("element", "key", "value"):
            refuse_null_defaults(value.get(part), where)


def refuse_null(entry: Json, where: str) -> None:
    """Raise BadRequest for null in an optional field: Iceberg's Java library reads only absent ones."""
    for key, value in entry.items():
        if value is None:
            raise _null_error(where, key)


def _null_error(where: str, key: str) -> BadRequest:
    return BadRequest(f"{where}: {key} is null, which not all readers can read: leave it out")
