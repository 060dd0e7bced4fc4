"""The columns of a stored table by name, with the ids that Iceberg gives them for ever, read without decoding the rest of its metadata.

May import msgspec alone. Pure. Columns are a schema's own fields, not those nested in them.
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
    """Of version 1, where that is all."""


_TABLE = msgspec.json.Decoder(_TableSchemas)


def field_ids_of(body: bytes) -> dict[str, int]:
    """Return the ids of the current schema's columns by name; none where the metadata is not as it should be."""
    try:
        found = _TABLE.decode(body)
    except msgspec.DecodeError:
        return {}
    current = next((each for each in found.schemas if each.number == found.current), found.only)
    return {} if current is None else {field.name: field.id for field in current.fields}


class _WholeSchemas(msgspec.Struct, frozen=True):
    current: int | None = msgspec.field(name="current-schema-id", default=None)
    schemas: tuple[dict[str, object], ...] = ()
    only: dict[str, object] | None = msgspec.field(name="schema", default=None)


_WHOLE = msgspec.json.Decoder(_WholeSchemas)


def schema_of(body: bytes) -> dict[str, object]:
    """Return the current schema whole; one without columns where the metadata is not as it should be."""
    try:
        found = _WHOLE.decode(body)
    except msgspec.DecodeError:
        return {"fields": []}
    current = next((each for each in found.schemas if each.get("schema-id") == found.current), found.only)
    return {"fields": []} if current is None else current
