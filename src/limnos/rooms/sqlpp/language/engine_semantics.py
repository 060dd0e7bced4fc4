# SPDX-License-Identifier: Apache-2.0
"""Comparisons, groupings and aggregates that have the same result in an engine with typed columns as in SQL++.

Must not know an engine's own language. A null in a column represents MISSING or NULL: no comparison with it is true, no
aggregate counts it, and all nulls are one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.conditions import Condition
from limnos.rooms.sqlpp.language.stored import RecordType, Scalar, columns, type_at
from limnos.rooms.sqlpp.language.values.model import MISSING, Date, DateTime, Value

IN_MAX = 1000
"""The maximum number of values of an IN that is pushed down to an engine."""
_WIDE = 1 << 53
WHOLE = frozenset({"tinyint", "smallint", "integer", "bigint"})
GROUPED = WHOLE | {"string", "boolean", "date", "datetime"}
"""Types by which an engine groups as SQL++ does.

Floating-point types are excluded: equal numbers have several representations.
"""
AGGREGATES: Mapping[str, frozenset[str]] = {
    "count": GROUPED | {"double", "float", "uuid", "binary", "time"},
    "sum": WHOLE | {"float", "double"},
    "avg": WHOLE | {"float", "double"},
    "min": WHOLE | {"string", "date", "datetime", "double"},
    "max": WHOLE | {"string", "date", "datetime", "double"},
}
"""Aggregates, and the types for which an engine computes them. Sums of doubles may differ in their last digits."""


def aggregates_in(item: object) -> Iterator[plan.Aggregate]:
    """Yield the aggregates of a block, but not those of subqueries."""
    waiting: list[object] = [item]
    while waiting:
        one = waiting.pop()
        if isinstance(one, plan.Aggregate):
            yield one
        elif isinstance(one, plan.PlanNode) and not isinstance(one, plan.Block):
            waiting.extend(getattr(one, name) for name in one.__struct_fields__[1:])
        elif type(one) is tuple:
            waiting.extend(one)


def result_of(function: str, type_: str) -> str:
    """Return the type of an aggregate's result for an argument of a type: `sum` of integers is a bigint."""
    if function == "sum":
        return "bigint" if type_ in WHOLE else "double"
    return {"count": "bigint", "avg": "double"}.get(function, type_)


def column_type(record: RecordType, path: tuple[str, ...]) -> Scalar | None:
    """Return the type at a path of columns; None if the path is not stored as columns."""
    around: RecordType | None = record
    for length in range(1, len(path) + 1):
        if around is None or path[length - 1] not in {field.name for field in columns(around)}:
            return None
        field_type = type_at(record, path[:length])
        inner = None if field_type is None else field_type.type
        if length == len(path):
            return inner if isinstance(inner, Scalar) else None
        around = inner if isinstance(inner, RecordType) else None
    return None


def is_exact(record: RecordType, condition: Condition) -> bool:
    """Return whether an engine evaluates a condition with the same result as SQL++, so that it can be pushed down."""
    scalar = column_type(record, condition.path)
    if scalar is None:
        return False
    values = condition.value if condition.operator == "in" else (condition.value,)
    if not isinstance(values, tuple) or not 0 < len(values) <= IN_MAX:
        return False
    return all(literal(scalar, value) is not MISSING for value in values)


def literal(scalar: Scalar, value: Value) -> Value:
    """Convert a value for comparison with a column of this type; MISSING if the comparison would differ from SQL++."""
    name = scalar.name
    if isinstance(value, bool):
        return value if name == "boolean" else MISSING
    if name in WHOLE:
        return _to_integer(value)
    if name == "double" and isinstance(value, (int, float)):
        return float(value) if float(value) == value and abs(value) <= _WIDE else MISSING
    fits = (
        (name == "string" and isinstance(value, str))
        or (name == "date" and isinstance(value, Date))
        or (name == "datetime" and isinstance(value, DateTime))
    )
    return value if fits else MISSING


def _to_integer(value: Value) -> Value:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= _WIDE else MISSING
    return int(value) if isinstance(value, int) else MISSING
