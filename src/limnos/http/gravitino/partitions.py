"""How an Iceberg table is partitioned and sorted, in Gravitino's expressions (reference section 2.2).

May import `formats.iceberg` for its typed JSON. Pure. A transform that Gravitino has no word for is told as a function of its own name.
"""

from __future__ import annotations

import re
from typing import Final

from limnos.formats.iceberg.json_types import Json, objects_at

_PLAIN: Final = frozenset({"identity", "year", "month", "day", "hour"})
_SIZED: Final = re.compile(r"(bucket|truncate)\[(\d+)\]")


def partitioning_of(spec: Json, schema: Json) -> list[Json]:
    """Tell a partition spec."""
    names = paths_of(schema)
    found: list[Json] = []
    for field in objects_at(spec, "fields", where="Partition spec"):
        path = names.get(field.get("source-id"), [str(field.get("name"))])
        transform = str(field.get("transform"))
        sized = _SIZED.fullmatch(transform)
        if transform in _PLAIN:
            found.append({"strategy": transform, "fieldName": path})
        elif sized is not None and sized[1] == "bucket":
            found.append({"strategy": "bucket", "numBuckets": int(sized[2]), "fieldNames": [path]})
        elif sized is not None:
            found.append({"strategy": "truncate", "width": int(sized[2]), "fieldName": path})
        elif transform != "void":  # a field that was dropped from the spec
            found.append({"strategy": "function", "funcName": transform, "funcArgs": [_field(path)]})
    return found


def sort_orders_of(order: Json, schema: Json) -> list[Json]:
    """Tell a sort order."""
    names = paths_of(schema)
    found: list[Json] = []
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
        found.append({"sortTerm": term, "direction": str(field.get("direction", "asc")), "nullOrdering": nulls})
    return found


def _field(path: list[str]) -> Json:
    return {"type": "field", "fieldName": path}


def paths_of(schema: Json) -> dict[object, list[str]]:
    """Return the path of each field of a schema's structs, by its id."""
    found: dict[object, list[str]] = {}
    for field in objects_at(schema, "fields", where="Schema"):
        own = [str(field.get("name"))]
        found[field.get("id")] = own
        inner = field.get("type")
        if isinstance(inner, dict) and inner.get("type") == "struct":
            found |= {key: own + path for key, path in paths_of(inner).items()}
    return found
