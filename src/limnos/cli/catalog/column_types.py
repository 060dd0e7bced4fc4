# SPDX-License-Identifier: Apache-2.0
"""Types of columns as short texts: of Iceberg, Lance and Gravitino.

Must not know objects or requests. A field is a JSON object with a name and a type; malformed parts appear as they are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.cli.catalog.metadata_values import structs_of
from limnos.client.values import Json

_TEXT_MAX: Final = 400
"""The maximum length of a type's text; `--output json` has whole types in `metadata`."""


class _Keys(NamedTuple):
    """The keys of the parts of lists and maps."""

    element: str
    key: str
    value: str


_ICEBERG: Final = _Keys("element", "key", "value")
_GRAVITINO: Final = _Keys("elementType", "keyType", "valueType")


def iceberg_column(field: Json) -> str:
    """Return the type of a field of an Iceberg schema, such as `list<struct<at: timestamp, city: string>> required`."""
    text = _cut(_type_text(field.get("type"), _ICEBERG))
    return f"{text} required" if field.get("required") else text


def gravitino_column(column: Json) -> str:
    """Return the type of a column of Gravitino, such as `map<string, decimal(10,2)>`."""
    text = _cut(_type_text(column.get("type"), _GRAVITINO))
    return text if column.get("nullable", True) else f"{text} required"


def lance_column(field: Json) -> str:
    """Return the type of a field of a Lance schema."""
    kind = field.get("type")
    inner = kind if isinstance(kind, dict) else {}
    items = ", ".join(lance_column(each) for each in structs_of(inner, "fields"))
    length = f"[{inner['length']}]" if "length" in inner else ""
    word = f"{inner.get('type')}{length}{f'<{items}>' if items else ''}"
    return word if field.get("nullable", True) else f"{word} required"


def _type_text(kind: object, keys: _Keys) -> str:
    if not isinstance(kind, dict):
        return str(kind)
    match kind.get("type"):
        case "list":
            return f"list<{_type_text(kind.get(keys.element), keys)}>"
        case "map":
            return f"map<{_type_text(kind.get(keys.key), keys)}, {_type_text(kind.get(keys.value), keys)}>"
        case "struct":
            fields = (
                f"{each.get('name')}: {_type_text(each.get('type'), keys)}" for each in structs_of(kind, "fields")
            )
            return f"struct<{', '.join(fields)}>"
        case word:
            return str(kind.get("catalogString") or kind.get("unparsedType") or word)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
