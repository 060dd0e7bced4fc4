# SPDX-License-Identifier: Apache-2.0
"""Bounds of columns: values of each type, promotions, and bytes that are no value."""

from __future__ import annotations

import uuid
from decimal import Decimal

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from limnos.formats.iceberg.types import parse_primitive
from limnos.spark.statistics.bounds import TEXT_MAX, BoundValue, bound_of, bound_text

ID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


def decoded(kind: str, data: bytes) -> BoundValue | None:
    """Decode a bound."""
    primitive = parse_primitive(kind)
    return bound_of(primitive.family, primitive.text, data=data)


@pytest.mark.parametrize(
    "kind, value, text",
    [
        (BooleanType(), True, "true"),
        (IntegerType(), -7, "-7"),
        (LongType(), 1 << 40, str(1 << 40)),
        (FloatType(), 1.5, "1.5"),
        (DoubleType(), -0.25, "-0.25"),
        (DecimalType(9, 2), Decimal("-12.30"), "-12.30"),
        (DecimalType(38, 0), Decimal("9" * 38), "9" * 38),
        (DateType(), -1, "1969-12-31"),
        (TimeType(), 3_723_000_004, "01:02:03.000004"),
        (TimestampType(), 1_500_000, "1970-01-01 00:00:01.5"),
        (TimestamptzType(), -1_000_000, "1969-12-31 23:59:59+00:00"),
        (TimestampNanoType(), 1_000_000_001, "1970-01-01 00:00:01.000000001"),
        (StringType(), "zürich", "zürich"),
        (UUIDType(), ID.bytes, str(ID)),
        (FixedType(3), b"\x01\x02\xff", "0102ff"),
        (BinaryType(), b"\x00", "00"),
    ],
)
def test_bound_has_the_text_of_its_value(kind: PrimitiveType, value: object, text: str) -> None:
    """A bound as PyIceberg writes it has the text of the value."""
    family = parse_primitive(str(kind)).family
    bound = decoded(str(kind), to_bytes(kind, value))

    assert bound is not None
    assert bound_text(family, bound) == text


def test_bounds_from_before_a_promotion_compare_with_later_ones() -> None:
    """Bounds of four bytes of a long and a double are their values; those of a promoted date are not compared."""
    assert decoded("long", to_bytes(IntegerType(), -3)) == -3
    assert decoded("double", to_bytes(FloatType(), 0.5)) == 0.5
    assert decoded("timestamp", to_bytes(DateType(), 20_000)) is None


@pytest.mark.parametrize(
    "kind, data",
    [
        ("int", b""),
        ("int", b"\x00" * 5),
        ("double", b"\x00"),
        ("double", b"\x00" * 6 + b"\xf8\x7f"),
        ("boolean", b"\x00\x00"),
        ("decimal(9, 2)", b""),
        ("decimal(9, 2)", b"\x01" * 17),
        ("uuid", b"\x01"),
        ("unknown", b"\x01"),
        ("geometry", b"\x01"),
    ],
)
def test_bytes_without_a_value_are_no_bound(kind: str, data: bytes) -> None:
    """Malformed bounds, NaN, and types without an order have no value."""
    assert decoded(kind, data) is None


def test_texts_of_hostile_bounds_are_short() -> None:
    """Long strings and dates beyond the calendar have a short text."""
    assert len(bound_text("string", "x" * 10_000)) == TEXT_MAX
    assert bound_text("timestamp", (1 << 63) - 1) == str((1 << 63) - 1)
    assert bound_text("date", (1 << 31) - 1) == str((1 << 31) - 1)
