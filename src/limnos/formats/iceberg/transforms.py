# SPDX-License-Identifier: Apache-2.0
"""Partition and sort transforms: parsing, and the column types that they accept.

Must not know specs, orders or tables. Source: Iceberg specification, "Partition Transforms".
"""

from __future__ import annotations

import re

from limnos.formats.iceberg.json_types import INT_MAX, hashable
from limnos.formats.iceberg.schema import SchemaColumn, SchemaColumns
from limnos.model.errors import BadRequest

_WITH_WIDTH = re.compile(r"(bucket|truncate)\[\s*([0-9]{1,10})\s*\]")
_DATES = frozenset(("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"))
_TAKES = {
    "bucket": _DATES | {"int", "long", "decimal", "time", "string", "uuid", "fixed", "binary"},
    "truncate": frozenset(("int", "long", "decimal", "string", "binary")),
    "year": _DATES,
    "month": _DATES,
    "day": _DATES,
    "hour": _DATES - {"date"},
}
_SHAPELESS = frozenset(("variant", "geometry", "geography"))
_WORDS = frozenset(("identity", "void", "year", "month", "day", "hour"))


def parse_transform(text: str, *, where: str) -> str:
    """Return the canonical form of a transform such as `day` or `bucket[16]`.

    Raises BadRequest for an unknown transform; `where` names the field in the message.
    """
    lowered = text.lower()
    if lowered in _WORDS:
        return lowered
    match = _WITH_WIDTH.fullmatch(lowered)
    if match is None:
        raise BadRequest(
            f"{where}: unknown transform '{text[:80]}'; use identity, bucket[n], truncate[n], year, month, day, hour or"
            " void"
        )
    if not 1 <= int(match[2]) <= INT_MAX:
        raise BadRequest(f"{where}: the width of '{text}' must be between 1 and {INT_MAX}")
    return f"{match[1]}[{int(match[2])}]"


def check_spelling(text: str, *, where: str) -> None:
    """Raise BadRequest for a stored transform that not all readers read: `Day`, `bucket[0]`. Readers ignore transforms
    that they do not know.
    """
    word = text.strip().lower()
    if (word in _WORDS or _WITH_WIDTH.fullmatch(word)) and parse_transform(word, where=where) != text:
        raise BadRequest(f"{where}: transform '{text[:80]}' must be {parse_transform(word, where=where)}")


def canonical_transform(text: object) -> object:
    """Return the canonical form of a stored transform; an unknown one is returned unchanged."""
    if not isinstance(text, str):
        return hashable(text)
    try:
        return parse_transform(text, where="")
    except BadRequest:
        return text


def is_readable(column: SchemaColumn, transform_text: str) -> bool:
    """Return whether readers accept a transform of a column, which may have another type than when it was chosen.

    They do not check where the column is, and take `identity` of a struct, list or map.
    """
    name = transform_text.partition("[")[0]
    if name == "void" or column.primitive is None:
        return name in ("void", "identity")
    family = column.primitive.family
    return family not in _SHAPELESS if name == "identity" else family in _TAKES.get(name, (family,))


def check_source(columns: SchemaColumns, source_id: int, transform_text: str, *, where: str) -> SchemaColumn | None:
    """Return the source column of a transform; None for `void`, whose column may have been dropped.

    Raises BadRequest if the column is missing, inside a list or map, not a primitive, or of a type that the transform
    does not accept.
    """
    column = columns.by_id.get(source_id)
    if transform_text == "void":
        return None
    if column is None:
        raise BadRequest(f"{where}: cannot find source column {source_id} in the current schema")
    if column.primitive is None or not column.by_struct:
        raise BadRequest(f"{where}: source column '{column.name}' must be a primitive outside lists and maps")
    if not is_readable(column, transform_text):
        raise BadRequest(
            f"{where}: transform {transform_text} cannot read '{column.name}' of type {column.primitive.text}"
        )
    return column
