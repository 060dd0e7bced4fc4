"""UPDATE as a query: the objects that a statement changes, with their new fields.

May import `sqlpp` and `names`. Must not know datasets beyond the paths of a key. Each SET sees the result of the
previous one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

import msgspec

from limnos.names.path import Levels
from limnos.sqlpp import identifier, parse_body, tree
from limnos.sqlpp.errors import compilation

STEPS_MAX: Final = 100
"""The maximum total number of fields in the paths of one UPDATE: each SET nests the query once more."""


def update_query(statement: tree.Update, dataset: Levels, *, keys: Iterable[tuple[str, ...]]) -> tree.QueryExpression:
    """Return the query for the changed objects of a dataset.

    Raises SqlppError for a change of a key, for paths of more than `STEPS_MAX` fields, and for one that is nested too
    deep.
    """
    if sum(len(assignment.path) - 1 for assignment in statement.assignments) > STEPS_MAX:
        raise compilation(f"The paths of UPDATE have more than {STEPS_MAX} fields", statement.assignments[0].at)
    variable = identifier(statement.variable)
    query = _query(f"from {'.'.join(map(identifier, dataset))} as {variable} select value {variable}")
    query = msgspec.structs.replace(query, block=msgspec.structs.replace(query.block, where=statement.where))
    for assignment in statement.assignments:
        path = assignment.path[1:]
        for key in keys:
            if key[: len(path)] == path or path[: len(key)] == key:
                raise compilation(f"UPDATE can't change {'.'.join(key)}, which is part of the key", assignment.at)
        changed = _changed(variable, path, value=assignment.value)
        outer = _query(f"from [] as {variable} select value {variable}")
        term = msgspec.structs.replace(outer.block.terms[0], source=query)
        select = msgspec.structs.replace(outer.block.select, value=changed)
        query = msgspec.structs.replace(outer, block=msgspec.structs.replace(outer.block, terms=(term,), select=select))
    return query


def _query(text: str) -> tree.QueryExpression:
    query = parse_body(text)
    if not isinstance(query, tree.QueryExpression):
        raise TypeError("a query is a query")
    return query


def _changed(base: str, path: tuple[str, ...], *, value: tree.Expression) -> tree.Expression:
    """Return an object with a new value at a path: MISSING removes the field. A value that is no object becomes an
    object.

    Each step repeats `base` once, so that the text grows by the same amount with each step and does not double.
    """
    first, *rest = path
    if rest:
        inside = f"if_missing_or_null(to_object({base}.{identifier(first)}), {{}})"
        value = _changed(inside, tuple(rest), value=value)
    call = parse_body(f"object_put({base}, {json.dumps(first)}, 0)")
    if not isinstance(call, tree.Call):
        raise TypeError("a call is a call")
    return msgspec.structs.replace(call, arguments=(*call.arguments[:2], value))
