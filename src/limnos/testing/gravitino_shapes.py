# SPDX-License-Identifier: Apache-2.0
"""Checks the JSON of tables that connectors return against Gravitino's: columns, types, indexes and layouts.

Each function yields sentences about what is wrong. Must not know connectors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from limnos.sources.connectors.capabilities import SourceTableInfo

_PLAIN: Final = re.compile(
    r"(boolean|float|double|date|string|binary|uuid|null|variant|interval_year|interval_day"
    r"|(byte|short|integer|long)( unsigned)?|(time|timestamp|timestamp_tz)(\(\d{1,2}\))?"
    r"|(fixed|char|varchar)\(\d+\)|decimal\(\s*\d{1,2}\s*,\s*\d{1,2}\s*\)|(geometry|geography)(\(.*\))?)"
)
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_PRECISION_MAX: Final = 38
_NESTED: Final[Mapping[str, tuple[str, ...]]] = {"list": ("elementType",), "map": ("keyType", "valueType")}
_TEXTS: Final[Mapping[str, str]] = {"external": "catalogString", "unparsed": "unparsedType"}
_COLUMN_KEYS: Final = frozenset({"name", "type", "comment", "nullable", "autoIncrement", "defaultValue"})
_LAYOUT_KEYS: Final = frozenset({"distribution", "sortOrders", "partitioning"})
_STRATEGIES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("identity", "year", "month", "day", "hour"), ("fieldName",)),
    "bucket": ("numBuckets", "fieldNames"),
    "truncate": ("width", "fieldName"),
    "list": ("fieldNames",),
    "range": ("fieldName",),
    "function": ("funcName", "funcArgs"),
}
"""The strategies of partitioning, each with the keys that it needs."""
_DISTRIBUTIONS: Final = frozenset({"none", "hash", "range", "even"})


def table_problems(table: str, information: SourceTableInfo) -> Iterator[str]:
    """Yield what is wrong with a table that `table_load` returned. `table` is its name in the sentences."""
    comment: object = information.comment
    if not isinstance(comment, str | None):
        yield f"the comment of table {table} is {comment!r}: return a text or None"
    yield from _property_problems(table, information.properties)
    parts: tuple[tuple[str, object], ...] = (("columns", information.columns), ("indexes", information.indexes))
    for part, rows in parts:
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            yield f"{part} of table {table} are {rows!r}: return a list of JSON objects"
            return
    names = [column.get("name") for column in information.columns]
    if len(names) != len(set(map(str, names))):
        yield f"table {table} has a column twice"
    for column in information.columns:
        yield from _column_problems(table, column)
    for index in information.indexes:
        if not {"indexType", "name", "fieldNames"} <= index.keys():
            yield f"an index of table {table} lacks indexType, name or fieldNames: {index}"
    if information.layout is not None:
        yield from _layout_problems(table, information.layout, columns=names)


def _property_problems(table: str, properties: object) -> Iterator[str]:
    if not (
        isinstance(properties, dict) and all(isinstance(text, str) for pair in properties.items() for text in pair)
    ):
        yield f"properties of table {table} are not texts"


def _column_problems(table: str, column: Mapping[str, object]) -> Iterator[str]:
    if not isinstance(column.get("name"), str) or "type" not in column:
        yield f"a column of {table} has no name or no type: {column}"
        return
    where = f"column {column['name']} of table {table}"
    if unknown := sorted(column.keys() - _COLUMN_KEYS):
        yield f"{where} has the keys {', '.join(unknown)}, which Gravitino's columns lack"
    for key, kind in (("nullable", bool), ("autoIncrement", bool), ("comment", str)):
        if key in column and not isinstance(column[key], kind):
            yield f"{key} of {where} is {column[key]!r}: return a {kind.__name__}, or leave it out"
    yield from type_problems(where, column["type"])


def type_problems(where: str, value: object) -> Iterator[str]:
    """Yield what is wrong with a type, which is a text, or an object for nested and unknown types."""
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) is None:
            other = json.dumps({"type": "external", "catalogString": value})
            advice = "write decimal(PRECISION,SCALE)" if value.startswith("decimal") else f"use {other}"
            yield f"the type of {where} is {value!r}, which Gravitino lacks: {advice}"
        elif (match := _DECIMAL.fullmatch(value)) and not int(match[2]) <= int(match[1]) <= _PRECISION_MAX:
            yield (
                f"the type of {where} is {value!r}: a decimal has at most {_PRECISION_MAX} digits, and its scale is"
                " not above them"
            )
        return
    nested: Mapping[str, object] = value if isinstance(value, dict) else {}
    kind = str(nested.get("type"))
    if kind in _NESTED:
        for key in _NESTED[kind]:
            yield from type_problems(f"{key} in {where}", nested.get(key))
    elif kind in _TEXTS:
        if not isinstance(nested.get(_TEXTS[kind]), str):
            yield f"the type {kind} of {where} has no {_TEXTS[kind]}"
    elif kind == "struct":
        yield from _struct_problems(where, nested.get("fields"))
    elif kind != "union":
        yield f"the type of {where} is {value!r}: use a name of a type, or list, map, struct, union, external, unparsed"


def _struct_problems(where: str, fields: object) -> Iterator[str]:
    if not isinstance(fields, list):
        yield f"the struct of {where} has no list of fields"
        return
    for each in fields:
        if not (isinstance(each, dict) and isinstance(each.get("name"), str) and "type" in each):
            yield f"a field in {where} has no name or no type: {each}"
        else:
            yield from type_problems(f"{each['name']} in {where}", each["type"])


def _layout_problems(table: str, layout: object, *, columns: list[object]) -> Iterator[str]:
    if not isinstance(layout, dict) or layout.keys() - _LAYOUT_KEYS:
        yield f"the layout of table {table} is {layout!r}: its keys are {', '.join(sorted(_LAYOUT_KEYS))}"
        return
    for each in layout.get("partitioning") or ():
        strategy = str(each.get("strategy")) if isinstance(each, dict) else ""
        if strategy not in _STRATEGIES or not all(key in each for key in _STRATEGIES[strategy]):
            yield f"partitioning of table {table} has {each!r}: each strategy needs keys: {dict(_STRATEGIES)}"
        elif "fieldName" in each and not (
            isinstance(each["fieldName"], list) and each["fieldName"][:1] in [[name] for name in columns]
        ):
            yield f"partitioning of table {table} names {each['fieldName']!r}, which is no list with a column's name"
    for each in layout.get("sortOrders") or ():
        if not (isinstance(each, dict) and {"sortTerm", "direction", "nullOrdering"} <= each.keys()):
            yield f"a sort order of table {table} lacks sortTerm, direction or nullOrdering: {each!r}"
    distribution = layout.get("distribution")
    if distribution is not None and not (
        isinstance(distribution, dict)
        and distribution.get("strategy") in _DISTRIBUTIONS
        and {"number", "funcArgs"} <= distribution.keys()
    ):
        yield f"the distribution of table {table} lacks strategy, number or funcArgs: {distribution!r}"
