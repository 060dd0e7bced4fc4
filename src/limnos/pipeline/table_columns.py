# SPDX-License-Identifier: Apache-2.0
"""Columns of Iceberg tables and Lance tables in Spark's SQL, from a table's metadata or schema.

Must not know Spark. A table with a type that Spark cannot read has no known columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from limnos.client.values import Json
from limnos.names import engine

_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
    "string": "STRING",
    "uuid": "STRING",
    "binary": "BINARY",
    "variant": "VARIANT",
}
_LANCE_TYPES = {
    "boolean": "BOOLEAN",
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "uint8": "SMALLINT",
    "uint16": "INT",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20,0)",
    "float16": "FLOAT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "utf8": "STRING",
    "large_utf8": "STRING",
    "binary": "BINARY",
    "large_binary": "BINARY",
    "fixed_size_binary": "BINARY",
    "date32": "DATE",
    "date64": "DATE",
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_FIXED = re.compile(r"fixed\[\d+\]")


def spark_columns(metadata: Json | None) -> tuple[tuple[str, str], ...] | None:
    """Return the names and types of a table's columns; None if they are not known, or not readable by Spark."""
    schemas = (metadata or {}).get("schemas")
    current = (metadata or {}).get("current-schema-id")
    for schema in schemas if isinstance(schemas, list) else ():
        if isinstance(schema, dict) and schema.get("schema-id") == current:
            return _fields(schema)
    return None


def lance_columns(schema: Json | None) -> tuple[tuple[str, str], ...] | None:
    """Return the names and types of a Lance table's columns, from the schema as Lance REST has it; None if they are not
    known, or one has a type whose form in Spark does not follow from it (timestamps have no time zone there).
    """
    fields = (schema or {}).get("fields")
    results: list[tuple[str, str]] = []
    for each in fields if isinstance(fields, list) else ():
        kind = _lance_type(each.get("type")) if isinstance(each, dict) else None
        if kind is None:
            return None
        results.append((str(each.get("name")), kind))
    return tuple(results) or None


def _lance_type(kind: object) -> str | None:
    if not isinstance(kind, dict):
        return None
    word, length = str(kind.get("type")), kind.get("length")
    if word in {"struct", "list", "large_list", "fixed_size_list"}:
        fields = lance_columns(kind)
        if fields is None:
            return None
        if word != "struct":
            return f"ARRAY<{fields[0][1]}>"
        return f"STRUCT<{', '.join(f'{engine.render_spark((name,))}: {text}' for name, text in fields)}>"
    if word in {"decimal128", "decimal256"} and isinstance(length, int):
        return f"DECIMAL({length // 1000},{length % 1000})"
    return _LANCE_TYPES.get(word)


def _fields(struct: Mapping[str, object]) -> tuple[tuple[str, str], ...] | None:
    fields = struct.get("fields")
    results: list[tuple[str, str]] = []
    for each in fields if isinstance(fields, list) else ():
        kind = _type(each.get("type"))
        if kind is None:
            return None
        results.append((str(each.get("name")), kind))
    return tuple(results) or None


def _type(kind: object) -> str | None:
    if isinstance(kind, str):
        if (decimal := _DECIMAL.fullmatch(kind)) is not None:
            return f"DECIMAL({decimal[1]},{decimal[2]})"
        return "BINARY" if _FIXED.fullmatch(kind) else _TYPES.get(kind)
    if not isinstance(kind, dict):
        return None
    if kind.get("type") == "struct":
        fields = _fields(kind)
        texts = None if fields is None else [f"{engine.render_spark((name,))}: {text}" for name, text in fields]
        return None if texts is None else f"STRUCT<{', '.join(texts)}>"
    if kind.get("type") == "list":
        element = _type(kind.get("element"))
        return None if element is None else f"ARRAY<{element}>"
    key, value = _type(kind.get("key")), _type(kind.get("value"))
    return None if key is None or value is None else f"MAP<{key}, {value}>"
