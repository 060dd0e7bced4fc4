# SPDX-License-Identifier: Apache-2.0
"""Types of columns as short texts: of Iceberg, Lance and Gravitino.

Must not know objects or requests. A field is a JSON object with a name and a type; malformed parts appear as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from limnos.cli.catalog.metadata_values import structs_of
from limnos.client.values import Json

_TEXT_MAX: Final = 400
"""The maximum length of a type's text; `--output json` has whole types in `metadata`."""


def iceberg_column(field: Json) -> str:
    """Return the type of a field of an Iceberg schema, such as `list<struct<at: timestamp, city: string>> required`."""
    text = _cut(_iceberg_type(field.get("type")))
    return f"{text} required" if field.get("required") else text


def gravitino_column(column: Json) -> str:
    """Return the type of a column of Gravitino, such as `map<string, decimal(10,2)>`."""
    text = _cut(_gravitino_type(column.get("type")))
    return text if column.get("nullable", True) else f"{text} required"


def lance_column(field: Json) -> str:
    """Return the type of a field of a Lance schema."""
    kind = field.get("type")
    inner = kind if isinstance(kind, dict) else {}
    items = ", ".join(lance_column(each) for each in structs_of(inner, "fields"))
    length = f"[{inner['length']}]" if "length" in inner else ""
    word = f"{inner.get('type')}{length}{f'<{items}>' if items else ''}"
    return word if field.get("nullable", True) else f"{word} required"


def _iceberg_type(kind: object) -> str:
    if not isinstance(kind, dict):
        return str(kind)
    match kind.get("type"):
        case "list":
            return f"list<{_iceberg_type(kind.get('element'))}>"
        case "map":
            return f"map<{_iceberg_type(kind.get('key'))}, {_iceberg_type(kind.get('value'))}>"
        case "struct":
            return _struct(kind, _iceberg_type)
        case word:
            return str(word)


def _gravitino_type(kind: object) -> str:
    if not isinstance(kind, dict):
        return str(kind)
    match kind.get("type"):
        case "list":
            return f"list<{_gravitino_type(kind.get('elementType'))}>"
        case "map":
            return f"map<{_gravitino_type(kind.get('keyType'))}, {_gravitino_type(kind.get('valueType'))}>"
        case "struct":
            return _struct(kind, _gravitino_type)
        case word:
            return str(kind.get("catalogString") or kind.get("unparsedType") or word)


def _struct(kind: Json, text_of: Callable[[object], str]) -> str:
    fields = ", ".join(f"{each.get('name')}: {text_of(each.get('type'))}" for each in structs_of(kind, "fields"))
    return f"struct<{fields}>"


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
