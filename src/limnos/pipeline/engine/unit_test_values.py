# SPDX-License-Identifier: Apache-2.0
"""Values of unit tests that are not of their column's type, or would change in it, and what to write instead.

Compares the text of a test with the value that Spark made of it. Must not know declarations.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from limnos.pipeline.problems import nearest_word

_NULL_WORDS: Final = frozenset({"none", "nil", "null", "na", "n/a", "nan", "undefined", "-"})
_DIGITS: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_COMMA_NUMBER: Final = re.compile(r"[+-]?[0-9]+,[0-9]+")


def value_fault(text: str, value: object, *, kind: DataType, is_csv: bool) -> str | None:
    """Return what is wrong with the text of a cell, and what to write; None if its value is exact.

    Args:
        text: The text of the cell in the test.
        value: The value of type `kind` that Spark made of it, None if it could not.
        kind: The type of the column.
        is_csv: Whether the text is from a CSV file.
    """
    name = kind.simpleString()
    if isinstance(kind, StringType):
        return None
    if isinstance(kind, (DateType, TimestampType, TimestampNTZType)) and _DIGITS.fullmatch(text):
        return f"is a number and not {name}: write {_example(kind)}"
    is_compound = isinstance(kind, (StructType, ArrayType, MapType))
    if value is None or (is_compound and not _is_form_of(text, kind)):
        if text.lower() in _NULL_WORDS:
            return f"is not {name}: NULL is an empty value" if is_csv else f"is not {name}: NULL is written null"
        return f"is not {name}{_advice(text, kind)}"
    if isinstance(kind, (DecimalType, IntegralType)) and _is_changed(text, value):
        return f"has more digits than {name}: it would become {value}"
    return _field_fault(json.loads(text), kind) if is_compound else None


def _is_form_of(text: str, kind: DataType) -> bool:
    """Return whether a text is JSON of the form of a compound type. Spark makes a struct of NULLs of other texts."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, list if isinstance(kind, ArrayType) else dict)


def _is_changed(text: str, value: object) -> bool:
    try:
        return Decimal(text.strip()) != Decimal(str(value))
    except InvalidOperation:
        return False


def _example(kind: DataType) -> str:
    return "2026-01-31" if isinstance(kind, DateType) else "2026-01-31T12:00:00Z"


def _advice(text: str, kind: DataType) -> str:
    """Return the advice for a text that is not of a type."""
    if isinstance(kind, (DateType, TimestampType, TimestampNTZType)):
        return f": write {_example(kind)}"
    if isinstance(kind, BooleanType):
        return ": write true or false"
    if isinstance(kind, ArrayType):
        return ": write a list, [a, b]"
    if isinstance(kind, (StructType, MapType)):
        return ": write a mapping, {name: value}"
    if _COMMA_NUMBER.fullmatch(text):
        return f": write {text.replace(',', '.')}"
    if isinstance(kind, AtomicType) and _DIGITS.fullmatch(text):
        return ": it is too large" if "." not in text else ": write a whole number"
    return ": write a number" if isinstance(kind, NumericType) else ""


def _field_fault(value: object, kind: DataType) -> str | None:
    """Return the first field of a value that its type lacks; None if there is none."""
    faults: list[str | None] = []
    if isinstance(kind, StructType) and isinstance(value, dict):
        names = kind.fieldNames()
        for name, part in value.items():
            if name not in names:
                near = nearest_word(name, names) or f"; it has {', '.join(names)}"
                return f"has a field '{name}', which {kind.simpleString()} lacks{near}"
            faults.append(_field_fault(part, kind[name].dataType))
    elif isinstance(kind, ArrayType) and isinstance(value, list):
        faults += [_field_fault(part, kind.elementType) for part in value]
    elif isinstance(kind, MapType) and isinstance(value, dict):
        faults += [_field_fault(part, kind.valueType) for part in value.values()]
    return next((fault for fault in faults if fault is not None), None)
