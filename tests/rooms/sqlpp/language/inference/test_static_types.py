# SPDX-License-Identifier: Apache-2.0
"""Static types: declared ones, those of values, and the common type of several."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.inference.static_types import (
    ANY,
    MISSING_TYPE,
    NULL_TYPE,
    OBJECT,
    StaticType,
    array_of,
    bag_of,
    common_type,
    declared_type,
    object_type,
    type_of_value,
)
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.values.model import MISSING

INT, TEXT = StaticType(kind="bigint"), StaticType(kind="string")


def test_optional_declared_fields_may_be_null_or_missing() -> None:
    """Optional fields may be NULL or MISSING; items that may be unknown have type any."""
    record = declared_type(
        type_of("OPEN { i: int32, s: string?, a: `any`, l: [int], b: {{ string }}, o: { x: date } }")
    )

    assert record.field("i") == StaticType(kind="integer")
    assert record.field("s") == TEXT.optional()
    assert (record.field("a"), record.field("none")) == (ANY, ANY)
    assert (record.field("l"), record.field("b")) == (array_of(INT), bag_of(TEXT))
    assert record.field("o").field("x") == StaticType(kind="date")
    assert array_of(INT.optional()).item == ANY


@pytest.mark.parametrize(
    "value, kind, is_known",
    [
        (1, "bigint", True),
        ("x", "string", True),
        (None, "null", True),
        (MISSING, "missing", False),
        ((1,), "array", True),
        ({"a": 1}, "object", True),
    ],
)
def test_constant_types_are_known_except_for_missing(value: object, kind: str, is_known: bool) -> None:
    """The type of NULL is known; that of MISSING is not, because no field has this value."""
    static_type = type_of_value(value)  # type: ignore[arg-type]
    assert (static_type.kind, static_type.is_known) == (kind, is_known)


@pytest.mark.parametrize(
    "types, expected",
    [
        ([], ANY),
        ([INT, INT], INT),
        ([INT, TEXT], ANY),
        ([INT, NULL_TYPE], INT.optional()),
        ([MISSING_TYPE, TEXT], TEXT.optional()),
        ([INT.optional(), INT], INT.optional()),
        ([array_of(INT), array_of(TEXT)], array_of(ANY)),
        ([bag_of(INT), array_of(INT)], ANY),
        ([object_type([("a", INT), ("b", TEXT)]), object_type([("b", TEXT), ("a", TEXT)])], object_type([("b", TEXT)])),
        ([OBJECT, ANY], ANY),
    ],
)
def test_common_type_of_objects_has_their_common_fields(types: list[StaticType], expected: StaticType) -> None:
    """Different kinds have no common type; objects have those fields in common that have a common type."""
    assert common_type(types) == expected
