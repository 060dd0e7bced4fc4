# SPDX-License-Identifier: Apache-2.0
"""Static types of arithmetic: the operators and the functions of numbers.

Must not know expressions. The rules are those of AsterixDB: if an operator does not support the kind of an operand, the
type of its result is NULL, which is a known type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from limnos.rooms.sqlpp.language.inference.static_types import (
    ANY,
    MISSING_TYPE,
    NULL_TYPE,
    NUMBERS,
    WHOLE,
    StaticType,
)

_DURATIONS: Final = ("duration", "year-month-duration", "day-time-duration")
_MOMENTS: Final = ("date", "time", "datetime")
ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "div", "mod", "^"})
BOOLEAN: Final = StaticType(kind="boolean")
_OPTIONAL_BOOLEAN: Final = BOOLEAN.optional()


def unknown_first(types: Sequence[StaticType]) -> StaticType | None:
    """Return the result type of a strict function if an argument is always MISSING or NULL; else None."""
    kinds = [type_.kind for type_ in types]
    return MISSING_TYPE if "missing" in kinds else NULL_TYPE if "null" in kinds else None


def with_unknowns(result: StaticType, types: Sequence[StaticType]) -> StaticType:
    """Return the result type of a strict function: `result`, or also NULL or MISSING if an argument may be."""
    any_ = any(type_.kind == "any" for type_ in types)
    null, missing = (any_ or any(type_.null for type_ in types)), (any_ or any(type_.missing for type_ in types))
    return result.optional(null=null, missing=missing) if null or missing else result


def chain_type(operators: Sequence[str], operands: Sequence[StaticType]) -> StaticType:
    """Return the type of operators of one precedence that are applied from left to right."""
    result = operands[0]
    for operator, operand in zip(operators, operands[1:], strict=True):
        result = _operation_type(result, operand, operator=operator)
    return result


def _operation_type(left: StaticType, right: StaticType, *, operator: str) -> StaticType:
    if operator == "||":
        return StaticType(kind="string").optional()
    if operator not in ARITHMETIC:
        return _OPTIONAL_BOOLEAN
    unknown = unknown_first((left, right))
    if unknown is not None:
        return unknown
    kind = _arithmetic_kind(left.kind, right.kind, operator=operator)
    if kind in ("any", "null"):
        return ANY if kind == "any" else NULL_TYPE
    result = StaticType(kind=kind, null=operator in ("/", "div", "mod"))
    return with_unknowns(result, (left, right))


def _arithmetic_kind(left: str, right: str, *, operator: str) -> str:
    """Return the kind of `left operator right`: `any` if it depends on values, `null` if the operator does not support
    the operands.
    """
    takes_times = operator in ("+", "-")
    temporal = (*_MOMENTS, *_DURATIONS) if takes_times else ()
    if "any" in (left, right):
        other = right if left == "any" else left
        return "any" if other == "any" or other in NUMBERS or other in temporal else "null"
    if left in NUMBERS and right in NUMBERS:
        return _number_kind(left, right, operator=operator)
    return _temporal_kind(left, right, operator=operator) if left in temporal and right in temporal else "null"


def _number_kind(left: str, right: str, *, operator: str) -> str:
    """Return the kind of the result for two numbers: the wider of both; double for a quotient of integers."""
    if operator == "/" and left in WHOLE and right in WHOLE:
        return "double"
    return NUMBERS[max(NUMBERS.index(left), NUMBERS.index(right))]


def _temporal_kind(left: str, right: str, *, operator: str) -> str:
    if left in _MOMENTS and right in _DURATIONS:
        return "null" if (left, right) == ("time", "year-month-duration") else left
    if left in _DURATIONS and right in _MOMENTS:
        return "null" if (right, left) == ("time", "year-month-duration") else right
    if left != right or operator != "-":
        return "null"
    return "duration" if left in _MOMENTS else left


def negative_type(operand: StaticType) -> StaticType:
    """Return the type of a unary minus."""
    return same_number((operand,))


def same_number(types: Sequence[StaticType]) -> StaticType:
    """Return the type of a function that returns a number of its argument's type, such as `abs`."""
    kind = types[0].kind
    if kind in NUMBERS or kind in ("any", "missing", "null"):
        return types[0]
    return NULL_TYPE


def rounded_number(types: Sequence[StaticType]) -> StaticType:
    """Return the type of `round`, which converts every integer to a bigint."""
    first = same_number(types)
    return StaticType(kind="bigint", null=first.null, missing=first.missing) if first.kind in WHOLE else first


def power_type(types: Sequence[StaticType]) -> StaticType:
    """Return the type of `power(base, exponent)`, which is that of the operator `^`."""
    return chain_type(("^",), types) if len(types) == 2 else ANY


def sum_type(item: StaticType) -> StaticType:
    """Return the type of a sum of values of a type."""
    if item.kind in ("any", "object"):
        return ANY
    if item.kind in NUMBERS:
        return StaticType(kind="bigint" if item.kind in WHOLE else "double", null=True)
    return MISSING_TYPE if item.kind == "missing" else NULL_TYPE
