# SPDX-License-Identifier: Apache-2.0
"""Literals of filters."""

from __future__ import annotations

import pytest
from pyiceberg.expressions.parser import parse
from pyiceberg.types import DoubleType, FloatType, IcebergType, LongType

from limnos.formats.scans.values import literal_of
from limnos.model.errors import BadRequest


@pytest.mark.parametrize("kind", [DoubleType(), FloatType()])
@pytest.mark.parametrize("text", ["1.5", "-0.25", "12345678.0"])
def test_floating_point_columns_take_decimals_of_pyiceberg(kind: IcebergType, text: str) -> None:
    """A filter that PyIceberg parsed from text states the value as a decimal, whose JSON is a string."""
    value = parse(f"amount > {text}").model_dump(mode="json")["value"]

    assert (value, literal_of(kind, value).value) == (text, float(text))


@pytest.mark.parametrize("value", ["x", "nan", "inf", "1_0", "1e5", "", " 1", "٣.٥", "1" * 401])
def test_other_texts_are_no_numbers(value: str) -> None:
    """Only plain decimals are numbers."""
    with pytest.raises(BadRequest):
        literal_of(DoubleType(), value)


def test_long_columns_take_no_decimals() -> None:
    """A decimal is no value of a column of integers."""
    with pytest.raises(BadRequest):
        literal_of(LongType(), "1.5")
