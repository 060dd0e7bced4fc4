# SPDX-License-Identifier: Apache-2.0
"""Types of values."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import cast

import pytest

from limnos.rooms.sqlpp.language.values.model import MISSING, Float, Value, is_unknown, object_of, single, type_name
from tests.rooms.sqlpp.language.values.examples import ORDERED

NAMES = {
    "missing",
    "null",
    "boolean",
    "tinyint",
    "smallint",
    "integer",
    "bigint",
    "float",
    "double",
    "string",
    "binary",
    "uuid",
    "date",
    "time",
    "datetime",
    "duration",
    "year-month-duration",
    "day-time-duration",
    "interval",
    "point",
    "point3d",
    "line",
    "rectangle",
    "circle",
    "polygon",
    "geometry",
    "array",
    "multiset",
    "object",
}


def test_every_type_has_an_example() -> None:
    """The examples of the tests have a value of each type."""
    assert {type_name(value) for group in ORDERED for value in group} == NAMES


@pytest.mark.parametrize("value", [[1], {1}, Decimal(1), object()])
def test_other_python_objects_are_not_values(value: object) -> None:
    """Other Python objects are not values."""
    with pytest.raises(TypeError, match="is not a type of SQL"):
        type_name(cast("Value", value))


def test_only_null_and_missing_are_unknown() -> None:
    """Only NULL and MISSING are unknown, not false and empty values."""
    known: list[Value] = [False, 0, "", (), {}]

    assert is_unknown(None)
    assert is_unknown(MISSING)
    assert not any(is_unknown(value) for value in known)


def test_missing_is_false() -> None:
    """MISSING is false in Python."""
    assert not MISSING


def test_objects_hold_no_missing() -> None:
    """A MISSING field is dropped; of two fields with one name the first is kept."""
    assert object_of([("a", 1), ("b", MISSING), ("c", None), ("a", 2)]) == {"a": 1, "c": None}


def test_float_is_rounded_to_single_precision() -> None:
    """A float is rounded to single precision when it is created."""
    assert Float(0.1) == 0.10000000149011612
    assert (single(1e39), single(-1e39)) == (math.inf, -math.inf)
    assert math.isnan(Float(math.nan))
