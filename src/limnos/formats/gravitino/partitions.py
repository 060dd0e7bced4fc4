# SPDX-License-Identifier: Apache-2.0
"""Partitioning and sort orders of Iceberg tables as Gravitino's expressions, and back (reference section 2.2).

Must not know tables. Pure. A transform that Gravitino lacks becomes a function with its name; a transform that Iceberg
lacks is refused.
"""

from __future__ import annotations

import re
from typing import Final

from limnos.formats.iceberg.json_types import (
    Json,
    as_object,
    integer_at,
    list_at,
    objects_at,
    preview_value,
    strings_at,
    text_at,
)
from limnos.model.errors import BadRequest, UnsupportedOperation

_PLAIN: Final = frozenset({"identity", "year", "month", "day", "hour"})
_SUFFIXES: Final = {
    "year": "_year",
    "month": "_month",
    "day": "_day",
    "hour": "_hour",
    "bucket": "_bucket",
    "truncate": "_trunc",
}
"""The suffix that Iceberg's own builder appends to the column's name, for each transform."""
_DIRECTIONS: Final = ("asc", "desc")
_NULLS: Final = {"nulls_first": "nulls-first", "nulls_last": "nulls-last"}
_MODES: Final = ("none", "hash", "range")
_SIZED: Final = re.compile(r"(bucket|truncate)\[(\d+)\]")


def partitioning_of(spec: Json, schema: Json) -> list[Json]:
    """Convert an Iceberg partition spec to Gravitino's partitioning expressions."""
    names = paths_of(schema)
    results: list[Json] = []
    for field in objects_at(spec, "fields", where="Partition spec"):
        path = names.get(field.get("source-id"), [str(field.get("name"))])
        transform = str(field.get("transform"))
        sized = _SIZED.fullmatch(transform)
        if transform in _PLAIN:
            results.append({"strategy": transform, "fieldName": path})
        elif sized is not None and sized[1] == "bucket":
            results.append({"strategy": "bucket", "numBuckets": int(sized[2]), "fieldNames": [path]})
        elif sized is not None:
            results.append({"strategy": "truncate", "width": int(sized[2]), "fieldName": path})
        elif transform != "void":  # void: a field that was dropped from the spec
            results.append({"strategy": "function", "funcName": transform, "funcArgs": [_field(path)]})
    return results


def sort_orders_of(order: Json, schema: Json) -> list[Json]:
    """Convert an Iceberg sort order to Gravitino's sort order expressions."""
    names = paths_of(schema)
    results: list[Json] = []
    for field in objects_at(order, "fields", where="Sort order"):
        path, transform = names.get(field.get("source-id"), []), str(field.get("transform"))
        sized = _SIZED.fullmatch(transform)
        term = _field(path)
        if sized is not None:
            size: Json = {"type": "literal", "dataType": "integer", "value": sized[2]}
            term = {"type": "function", "funcName": sized[1], "funcArgs": [size, term]}
        elif transform != "identity":
            term = {"type": "function", "funcName": transform, "funcArgs": [term]}
        nulls = "nulls_last" if field.get("null-order") == "nulls-last" else "nulls_first"
        results.append({"sortTerm": term, "direction": str(field.get("direction", "asc")), "nullOrdering": nulls})
    return results


def _field(path: list[str]) -> Json:
    return {"type": "field", "fieldName": path}


def paths_of(schema: Json) -> dict[object, list[str]]:
    """Return the path of each field by its id. Fields within lists and maps are omitted."""
    results: dict[object, list[str]] = {}
    for field in objects_at(schema, "fields", where="Schema"):
        own_path = [str(field.get("name"))]
        results[field.get("id")] = own_path
        inner = field.get("type")
        if isinstance(inner, dict) and inner.get("type") == "struct":
            results |= {key: own_path + path for key, path in paths_of(inner).items()}
    return results


def spec_of(partitioning: list[Json], schema: Json) -> Json:
    """Build the Iceberg partition spec of a new table from Gravitino's expressions.

    Raises BadRequest for a malformed expression or an unknown column, UnsupportedOperation for a transform that Iceberg
    lacks.
    """
    ids, fields = _ids_of(schema), list[Json]()
    for one in partitioning:
        transform, path = _transform_of(one)
        name = ".".join(path) + _SUFFIXES.get(transform.partition("[")[0], "")
        used_names = [each["name"] for each in fields]
        if name in used_names:
            name = f"{name}_{len(used_names)}"
        fields.append({"name": name, "transform": transform, "source-id": _source(ids, path)})
    return {"fields": fields}


def _transform_of(fields: Json) -> tuple[str, list[str]]:
    where = "Partitioning"
    strategy = text_at(fields, "strategy", where=where).lower()
    if strategy in _PLAIN:
        return strategy, strings_at(fields, "fieldName", where=where)
    if strategy == "truncate":
        return f"truncate[{_width(fields, 'width')}]", strings_at(fields, "fieldName", where=where)
    if strategy == "bucket":
        paths = list_at(fields, "fieldNames", where=where)
        if len(paths) != 1:
            raise UnsupportedOperation(f"An Iceberg bucket has one column, not {len(paths)}: name one in fieldNames")
        return f"bucket[{_width(fields, 'numBuckets')}]", strings_at(
            {"fieldNames": paths[0]}, "fieldNames", where=where
        )
    raise UnsupportedOperation(
        f"Iceberg does not partition by {preview_value(strategy)}: use identity, year, month, day, hour, bucket or"
        " truncate"
    )


def _width(fields: Json, key: str) -> int:
    return integer_at(fields, key, where="Partitioning", low=1, high=(1 << 31) - 1)


def _source(ids: dict[tuple[str, ...], object], path: list[str]) -> object:
    result = ids.get(tuple(path))
    if result is None:
        raise BadRequest(f"The table has no column {preview_value('.'.join(path))}")
    return result


def _ids_of(schema: Json) -> dict[tuple[str, ...], object]:
    return {tuple(path): field_id for field_id, path in paths_of(schema).items()}


def order_of(sort_orders: list[Json], schema: Json) -> Json:
    """Build the Iceberg sort order of a new table from Gravitino's expressions.

    Raises BadRequest for a malformed expression or an unknown column, UnsupportedOperation for a transform that Iceberg
    lacks.
    """
    ids, fields = _ids_of(schema), list[Json]()
    for one in sort_orders:
        transform, path = _term_of(as_object(one.get("sortTerm"), "sortTerm"))
        direction = str(one.get("direction") or "asc").lower()
        nulls = str(one.get("nullOrdering") or ("nulls_first" if direction == "asc" else "nulls_last")).lower()
        if direction not in _DIRECTIONS or nulls not in _NULLS:
            raise BadRequest("A sort order's direction must be asc or desc, its nullOrdering nulls_first or nulls_last")
        fields.append(
            {
                "transform": transform,
                "source-id": _source(ids, path),
                "direction": direction,
                "null-order": _NULLS[nulls],
            }
        )
    return {"order-id": 1 if fields else 0, "fields": fields}


def _term_of(term: Json) -> tuple[str, list[str]]:
    """Return the transform and the column path of a sort term.

    Raises BadRequest for a malformed term, UnsupportedOperation for a term that Iceberg lacks.
    """
    where = "sortTerm"
    kind = text_at(term, "type", where=where).lower()
    if kind == "field":
        return "identity", strings_at(term, "fieldName", where=where)
    if kind != "function":
        raise UnsupportedOperation(f"Iceberg does not sort by {preview_value(kind)}: use a field or a function of one")
    name, args = text_at(term, "funcName", where=where).lower(), objects_at(term, "funcArgs", where=where)
    fields = [strings_at(each, "fieldName", where=where) for each in args if each.get("type") == "field"]
    sizes = [str(each.get("value")) for each in args if each.get("type") == "literal"]
    if len(fields) != 1 or name not in _SUFFIXES or len(sizes) != (name in ("bucket", "truncate")):
        raise UnsupportedOperation(
            f"Iceberg has no sort transform {preview_value(name)} with these arguments: use year, month, day or hour of"
            " a field, or bucket or truncate of a number and a field"
        )
    return f"{name}[{sizes[0]}]" if sizes else name, fields[0]


def mode_of(distribution: Json) -> str | None:
    """Return Iceberg's write.distribution-mode for a distribution; None for the strategy `none`.

    Raises BadRequest for a malformed distribution, UnsupportedOperation for one that Iceberg lacks.
    """
    strategy = text_at(distribution, "strategy", where="distribution").lower()
    if strategy not in _MODES:
        raise UnsupportedOperation(f"Iceberg does not distribute by {preview_value(strategy)}: use {', '.join(_MODES)}")
    if distribution.get("funcArgs") or distribution.get("number") not in (None, 0, -1):
        raise UnsupportedOperation(
            "Iceberg distributes rows by the table's partitions: leave number and funcArgs of the distribution out, and"
            " partition by bucket instead"
        )
    return None if strategy == "none" else strategy


def distribution_of(mode: str | None) -> Json:
    """Return Gravitino's distribution for Iceberg's write.distribution-mode."""
    return {"strategy": mode if mode in _MODES else "none", "number": 0, "funcArgs": []}
