# SPDX-License-Identifier: Apache-2.0
"""Descriptions of schemas, tables, views and topics of external systems, as texts and lists for a page.

Pure. Columns and indexes are Gravitino's JSON, in which a connector may omit any field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from limnos.formats.gravitino.views import GravitinoView
from limnos.rooms.console.http.other_objects import Cell, ListSection, TextBlock
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo, SourceTopicInfo

COLUMNS_MAX: Final = 1_000
"""The maximum number of columns on a page."""
DEPTH_MAX: Final = 20
Json = Mapping[str, object]


class ExternalDescription(msgspec.Struct, frozen=True):
    """The comment, texts, lists and properties of an object of an external system."""

    comment: str = ""
    blocks: tuple[TextBlock, ...] = ()
    lists: tuple[ListSection, ...] = ()
    properties: Mapping[str, str] = {}


def schema_description(info: SourceSchemaInfo) -> ExternalDescription:
    """Describe a schema: its comment and properties. The page lists its objects."""
    return ExternalDescription(info.comment or "", properties=info.properties)


def table_description(info: SourceTableInfo) -> ExternalDescription:
    """Describe a table: columns, indexes if it has any, and partitions."""
    lists = [columns_section(info.columns)]
    if info.indexes:
        rows = tuple(
            (
                Cell(_text(each.get("name")), is_name=True),
                Cell(_text(each.get("indexType")).lower().replace("_", " ")),
                Cell(", ".join(_path_text(path) for path in _items(each.get("fieldNames")))),
            )
            for each in info.indexes
        )
        lists.append(ListSection("Indexes", ("Name", "Type", "Columns"), rows))
    partitions = _items((info.layout or {}).get("partitioning"))
    if partitions:
        parts = tuple(
            (Cell(_path_text(each.get("fieldName")), is_name=True), Cell(_text(each.get("strategy"))))
            for each in partitions
            if isinstance(each, Mapping)
        )
        lists.append(ListSection("Partitions", ("Column", "By"), parts))
    return ExternalDescription(info.comment or "", lists=tuple(lists), properties=info.properties)


def view_description(info: GravitinoView) -> ExternalDescription:
    """Describe a view: its query in each dialect, and its columns."""
    blocks = tuple(
        TextBlock(f"Query ({each['dialect']})" if each.get("dialect") else "Query", _text(each.get("sql")))
        for each in info.representations
    )
    return ExternalDescription(info.comment or "", blocks, (columns_section(info.columns),), info.properties)


def topic_description(info: SourceTopicInfo, comment: str | None) -> ExternalDescription:
    """Describe a topic: its comment, and its configuration as properties."""
    return ExternalDescription(comment or "", properties=info.properties)


def columns_section(columns: Sequence[Json]) -> ListSection:
    """Return the list of columns, cut after `COLUMNS_MAX`."""
    rows = tuple(
        (
            Cell(_text(each.get("name")), is_name=True),
            Cell(type_text(each.get("type"))),
            Cell("required" if each.get("nullable") is False else ""),
            Cell(_text(each.get("comment"))),
        )
        for each in columns[:COLUMNS_MAX]
    )
    count = len(columns)
    title = "Columns" if count <= COLUMNS_MAX else f"The first {COLUMNS_MAX:,} of {count:,} columns"
    return ListSection(title, ("Name", "Type", "Null", "Description"), rows, "The external system returned no columns.")


def type_text(value: object, *, depth: int = 0) -> str:
    """Return a type of Gravitino as text, such as `list<struct<a: integer>>`."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping) or depth > DEPTH_MAX:
        return "?"
    word = value.get("type")
    if word == "list":
        return f"list<{type_text(value.get('elementType'), depth=depth + 1)}>"
    if word == "map":
        key, inner = (type_text(value.get(each), depth=depth + 1) for each in ("keyType", "valueType"))
        return f"map<{key}, {inner}>"
    if word == "struct":
        fields = (each for each in _items(value.get("fields")) if isinstance(each, Mapping))
        parts = (f"{_text(each.get('name'))}: {type_text(each.get('type'), depth=depth + 1)}" for each in fields)
        return f"struct<{', '.join(parts)}>"
    return _text(value.get("catalogString") or value.get("unparsedType") or word) or "?"


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _path_text(value: object) -> str:
    return ".".join(map(str, value)) if isinstance(value, list | tuple) else _text(value)
