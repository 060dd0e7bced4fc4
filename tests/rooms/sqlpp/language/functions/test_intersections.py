# SPDX-License-Identifier: Apache-2.0
"""Intersections of shapes, by hand-written examples."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "one, other, expected",
    [
        ("point('1,2')", "point('1,2')", True),
        ("point('1,2')", "point('1,3')", False),
        ("point('0,1')", "circle('0,0 1')", True),
        ("point('0,1.1')", "circle('0,0 1')", False),
        ("point('1,1')", "line('0,0 2,2')", True),
        ("point('1,1.5')", "line('0,0 2,2')", False),
        ("point('2,1')", "rectangle('0,0 2,2')", True),
        ("point('1,1')", "polygon('0,0 4,0 0,4')", True),
        ("point('3,3')", "polygon('0,0 4,0 0,4')", False),
        ("circle('0,0 1')", "circle('2,0 1')", True),
        ("circle('0,0 1')", "circle('2.1,0 1')", False),
        ("circle('2,2 1')", "rectangle('0,0 1,1')", False),
        ("circle('2,2 1.5')", "rectangle('0,0 1,1')", True),
        ("circle('5,5 1')", "rectangle('0,0 9,9')", True),
        ("line('0,0 2,2')", "line('0,2 2,0')", True),
        ("line('0,0 2,2')", "polygon('3,0 4,0 4,1')", False),
        ("rectangle('0,0 1,1')", "polygon('1,1 2,1 1,2')", True),
        ("point('5,1')", "polygon('4,1 4,4 12,4 12,1')", False),
        ("point('4,3')", "polygon('4,1 4,4 12,4 12,1')", True),
        ("point('12,3')", "polygon('4,1 4,4 12,4 12,1')", False),
        ("polygon('4,1 4,4 12,4 12,1')", "point('5,4')", True),
        ("line('0,0 2,2')", "line('1,1 3,3')", False),
        ("point('1,2')", "1", None),
        ("point('1,2')", "point3d('1,2,3')", None),
        ("missing", "point('1,2')", MISSING),
        ("null", "point('1,2')", None),
    ],
)
def test_touching_shapes_intersect_in_either_order(one: str, other: str, expected: Value) -> None:
    """Shapes that touch intersect; the order of the arguments does not matter."""
    assert value(f"spatial_intersect({one}, {other})") is expected
    assert value(f"`spatial-intersect`({other}, {one})") is expected
