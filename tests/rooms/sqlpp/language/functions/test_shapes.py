# SPDX-License-Identifier: Apache-2.0
"""Points, lines, rectangles, circles and polygons, by hand-written examples."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.functions.types import json_text
from limnos.rooms.sqlpp.language.values.model import MISSING, Circle, Line, Point, Point3D, Polygon, Rectangle, Value
from tests.rooms.sqlpp.language.evaluation import ask, value


@pytest.mark.parametrize(
    "text, expected",
    [
        ("point('80.1, -1e3')", Point((80.1, -1000.0))),
        ("point('1,2,3')", None),
        ("point('a,b')", None),
        ("point(1)", None),
        ("point(missing)", MISSING),
        ("point3d('1,2,3.5d')", Point3D((1.0, 2.0, 3.5))),
        ("line('1,2 3,4')", Line((1.0, 2.0, 3.0, 4.0))),
        ("rectangle('5,6 1,2')", Rectangle((1.0, 2.0, 5.0, 6.0))),
        ("circle('1,2 3')", Circle((1.0, 2.0, 3.0))),
        ("polygon('0,0 1,0 1,1')", Polygon((0.0, 0.0, 1.0, 0.0, 1.0, 1.0))),
        ("polygon('0,0 1,0')", None),
        ("create_point(1, float('2.5'))", Point((1.0, 2.5))),
        ("create_point('1', 2)", None),
        ("create_line(create_point(1, 2), point('3,4')) = line('1,2 3,4')", True),
        ("create_rectangle(point('5,6'), point('1,2')) = rectangle('1,2 5,6')", True),
        ("create_circle(point('1,2'), 3) = circle('1,2 3')", True),
        ("create_polygon([0, 0, 1, 0, 1, 1]) = polygon('0,0 1,0 1,1')", True),
        ("create_polygon([0, 0, 1])", None),
        ("[get_x(point('1,2')), get_y(point('1,2')), get_x(1)]", (1.0, 2.0, None)),
        ("get_points(line('1,2 3,4'))", (Point((1.0, 2.0)), Point((3.0, 4.0)))),
        ("get_points(circle('1,2 3'))", (Point((1.0, 2.0)),)),
        ("get_points(1)", None),
        ("[get_center(circle('1,2 3')), get_radius(circle('1,2 3'))]", (Point((1.0, 2.0)), 3.0)),
        ("spatial_distance(point('0,0'), point('3,4'))", 5.0),
        ("spatial_distance(point('0,0'), 1)", None),
        ("[spatial_area(rectangle('0,0 2,3')), spatial_area(polygon('0,0 0,2 2,2 2,0'))]", (6.0, 4.0)),
        ("spatial_area(circle('0,0 2'))", 4 * 3.14159265),
        ("spatial_area(line('1,2 3,4'))", None),
        ("spatial_cell(point('-0.5,3.2'), point('0,0'), 1, 2) = rectangle('-1,2 0,4')", True),
        ("spatial_cell(point('1,1'), point('0,0'), 0, 1)", None),
        (
            "[is_point(point('1,2')), is_line(point('1,2')), is_spatial(circle('1,2 3')), is_spatial(1)]",
            (True, False, True, False),
        ),
        ("get_type(polygon('0,0 1,0 1,1'))", "polygon"),
        ("string(circle('1,2 3'))", "1.0,2.0 3.0"),
        ("string(rectangle('1,2 3,4'))", "1.0,2.0 3.0,4.0"),
        ("point('1,2') = point('1.0,2.0')", True),
        ("point('1,2') = circle('1,2 3')", False),
        ("point('1,2') < point('2,2')", None),
    ],
)
def test_shape_functions_return_expected_values(text: str, expected: Value) -> None:
    """Construction, parts and measures."""
    assert value(text) == expected


def test_shapes_can_be_ordered_and_grouped() -> None:
    """Points are ordered by x, then by y; equal shapes form one group."""
    text = (
        "select p, count(*) as n from [point('2,1'), point('1,5'), point('1,-5'), point('2.0,1')] p group by p order"
        " by p"
    )

    assert [(one["p"].coordinates, one["n"]) for one in ask(text)] == [
        ((1.0, -5.0), 1),
        ((1.0, 5.0), 1),
        ((2.0, 1.0), 2),
    ]  # type: ignore[index,union-attr,call-overload]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("point('1,2')", "[1.0,2.0]"),
        ("line('1,2 3,4')", "[[1.0,2.0],[3.0,4.0]]"),
        ("circle('1,2 3')", "[[1.0,2.0],3.0]"),
        ("polygon('0,0 1,0 1,1')", "[[0.0,0.0],[1.0,0.0],[1.0,1.0]]"),
    ],
)
def test_shapes_are_printed_as_asterixdb_json(text: str, expected: str) -> None:
    """JSON has shapes in AsterixDB's form."""
    assert json_text(value(text)) == expected
