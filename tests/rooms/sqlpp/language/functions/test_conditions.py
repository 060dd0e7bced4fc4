# SPDX-License-Identifier: Apache-2.0
"""Functions that test for NULL and MISSING, by hand-written examples."""

from __future__ import annotations

import math

import pytest

from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("if_missing(missing, 1)", 1),
        ("switch_case(2, 1, 'a', 2, 'b', 'c')", "b"),
        ("switch_case(3, 1, 'a', 2, 'b', 'c')", "c"),
        ("switch_case(3, 1, 'a', 2, 'b')", None),
        ("switch_case(2.0, 1, 'a', 2, 'b')", "b"),
        ("switch_case(null, null, 'a', 'b')", "b"),
        ("switch_case(missing, 1, 'a', 'b')", "b"),
        ("if_missing(null, 1)", None),
        ("if_missing(missing, missing)", None),
        ("if_null(null, missing, 2)", MISSING),
        ("if_null(null, 2)", 2),
        ("if_missing_or_null(missing, null, 3)", 3),
        ("coalesce(null, null)", None),
        ("coalesce(missing, 'a')", "a"),
        ("if_nan(double('NaN'), 1.0)", 1.0),
        ("if_nan(null, 1.0)", None),
        ("if_inf(double('INF'), 2)", 2),
        ("if_nan_or_inf(double('NaN'), double('-INF'), 5)", 5),
        ("null_if(1, 1)", None),
        ("null_if(1, 2)", 1),
        ("null_if(1, missing)", 1),
        ("null_if(null, missing)", None),
        ("null_if(missing, null)", MISSING),
        ("nan_if('a', null)", "a"),
        ("if_inf(double('INF'), double('-INF'), [], 2)", None),
        ("if_nan(double('NaN'), missing, 2)", 2),
        ("if_inf(null, 2)", None),
        ("if_nan_or_inf(missing, missing)", None),
        ("missing_if(1, 1)", MISSING),
        ("posinf_if(1, 1)", math.inf),
        ("neginf_if(1, 1)", -math.inf),
        ("nvl(null, 1)", 1),
        ("nvl(2, 1)", 2),
        ("nvl2(null, 1, 2)", 2),
        ("nvl2(0, 1, 2)", 1),
        ("greatest(1, 3, 2)", 3),
        ("least('b', 'a')", "a"),
        ("greatest(1, 'a')", None),
        ("greatest(1, null)", 1),
        ("least(missing, 3, null, -2.5)", -2.5),
        ("greatest(null, missing)", None),
        ("deep_equal([1, {'a': null}], [1, {'a': null}])", True),
        ("deep_equal([1], [2])", False),
        ("deep_equal(null, 1)", None),
        ("is_nan(double('NaN'))", True),
        ("is_nan(1)", False),
        ("is_nan('a')", None),
    ],
)
def test_conditional_functions_return_expected_values(text: str, expected: Value) -> None:
    """The expected value, also for unknown arguments."""
    assert value(text) == expected


def test_nan_if_equal_arguments_returns_nan() -> None:
    """Equal arguments give NaN."""
    assert math.isnan(value("nan_if(1, 1)"))  # type: ignore[arg-type]
