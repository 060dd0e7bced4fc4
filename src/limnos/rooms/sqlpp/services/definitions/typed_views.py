# SPDX-License-Identifier: Apache-2.0
"""Typed views: the query that casts the results of a view's query to its declared fields.

Must not know the lookup of types. A value that does not fit becomes NULL, as DEFAULT NULL specifies. An object is
omitted if a field that is NOT UNKNOWN or part of the key would be NULL. Keys are not enforced.
"""

from __future__ import annotations

from typing import cast

import msgspec

from limnos.names.sqlpp import identifier
from limnos.rooms.sqlpp.language import parse_body, tree
from limnos.rooms.sqlpp.language.errors import TextPosition, compilation
from limnos.rooms.sqlpp.language.stored import BUILT_IN

_FORMATTED = ("datetime", "date", "time")
_CASTS = {"year-month-duration": "year_month_duration", "day-time-duration": "day_time_duration"}
_ROW = "$row"


def typed_query(body: tree.Expression, schema: tree.ViewSchema, *, type_: tree.TypeExpression) -> tree.QueryExpression:
    """Return the query of a typed view. Raises SqlppError for types and formats that a view cannot have."""
    if not isinstance(type_, tree.RecordType):
        raise compilation("The type of a view is an object type", schema.at)
    formats = {each.name: each.value for each in schema.formats}
    unknown = next((each for each in schema.formats if each.name not in _FORMATTED), None)
    if unknown is not None:
        raise compilation(f"Invalid date/time format: {unknown.name}", unknown.at)
    names = {field.name for field in type_.fields}
    for path in schema.keys:
        if len(path) != 1 or path[0] not in names:
            raise compilation(f"Field '{'.'.join(path)}' of the view's key is not found", schema.at)
    casts = {field.name: _cast(field, formats, at=schema.at) for field in type_.fields}
    keys = {path[0] for path in schema.keys}
    needed = [casts[field.name] for field in type_.fields if not field.optional or field.name in keys]
    pairs = ", ".join(f"{_quote(name)}: if_missing({text}, null)" for name, text in casts.items())
    where = f" where {' and '.join(f'{text} is known' for text in needed)}" if needed else ""
    query = cast("tree.QueryExpression", parse_body(f"from [] as `{_ROW}`{where} select value {{{pairs}}}"))
    term = msgspec.structs.replace(query.block.terms[0], source=body)
    return msgspec.structs.replace(query, block=msgspec.structs.replace(query.block, terms=(term,)))


def _cast(field: tree.FieldType, formats: dict[str, str], *, at: TextPosition) -> str:
    """Return the SQL++ text of an expression that casts a field to its declared type, with the format that the view
    declares for a date, time or datetime. Raises SqlppError for a type without a cast.
    """
    name = field.type.name.last.lower() if isinstance(field.type, tree.NamedType) else ""
    kind = BUILT_IN.get(name)
    value = f"`{_ROW}`.{identifier(field.name)}"
    if name == "any":
        return value
    if kind is None:
        raise compilation(f"Field '{field.name}' of a view has a type that values cannot be cast to", at)
    pattern = formats.get(kind)
    more = "" if pattern is None else f", {_quote(pattern)}"
    return f"{_CASTS.get(kind, kind)}({value}{more})"


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()
