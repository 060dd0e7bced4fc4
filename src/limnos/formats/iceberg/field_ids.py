# SPDX-License-Identifier: Apache-2.0
"""Reads the ids of a stored table's columns by name, and its current schema, without decoding the rest of its metadata.

Must not know commits. Pure. Ids are those of top-level columns, not of nested fields. A column's id never changes.
"""

from __future__ import annotations

import msgspec


class _SchemaField(msgspec.Struct, frozen=True):
    id: int
    name: str


class _SchemaIds(msgspec.Struct, frozen=True):
    number: int | None = msgspec.field(name="schema-id", default=None)
    fields: tuple[_SchemaField, ...] = ()


class _TableSchemas(msgspec.Struct, frozen=True):
    current: int | None = msgspec.field(name="current-schema-id", default=None)
    schemas: tuple[_SchemaIds, ...] = ()
    only: _SchemaIds | None = msgspec.field(name="schema", default=None)
    """The only schema in documents of version 1 without `schemas`."""


_TABLE = msgspec.json.Decoder(_TableSchemas)


def field_ids_of(body: bytes) -> dict[str, int]:
    """Return the ids of the current schema's columns by name; empty for malformed metadata."""
    try:
        schemas = _TABLE.decode(body)
    except msgspec.DecodeError:
        return {}
    current = next((each for each in schemas.schemas if each.number == schemas.current), schemas.only)
    return {} if current is None else {field.name: field.id for field in current.fields}


class _WholeSchemas(msgspec.Struct, frozen=True):
    current: int | None = msgspec.field(name="current-schema-id", default=None)
    schemas: tuple[dict[str, object], ...] = ()
    only: dict[str, object] | None = msgspec.field(name="schema", default=None)


_WHOLE = msgspec.json.Decoder(_WholeSchemas)


def schema_of(body: bytes) -> dict[str, object]:
    """Return the current schema; an empty one for malformed metadata."""
    try:
        schemas = _WHOLE.decode(body)
    except msgspec.DecodeError:
        return {"fields": []}
    current = next((each for each in schemas.schemas if each.get("schema-id") == schemas.current), schemas.only)
    return {"fields": []} if current is None else current
