# SPDX-License-Identifier: Apache-2.0
"""Geometries: construction, parts, predicates and derived geometries, by hand-written examples."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.result_text import adm_text
from limnos.rooms.sqlpp.language.values.model import MISSING, Geometry, Value
from tests.rooms.sqlpp.language.evaluation import value

SQUARE = "st_geom_from_text('POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))')"
LINE = "st_geom_from_text('LINESTRING Z (0 0 5, 3 4 6)')"


def point(x: float, y: float) -> str:
    """Return the call that creates a point."""
    return f"st_make_point({x}, {y})"


@pytest.mark.parametrize(
    "expression, expected",
    [
        (f"st_area({SQUARE})", 15.5),
        (f"st_length({LINE})", 5.0),
        (f"st_n_points({SQUARE})", 7),
        (f"st_npoints({LINE})", 2),
        (f"st_n_rings({SQUARE})", 2),
        (f"st_num_interior_rings({SQUARE})", 1),
        (f"st_coord_dim({LINE})", 3),
        ("st_coord_dim(st_make_point(1, 2, 3, 4))", 4),
        ("st_m(st_make_point(1, 2, 3, 4))", 4.0),
        (f"st_z({LINE})", None),
        (f"st_z_max({LINE})", 6.0),
        (f"st_x_min({SQUARE})", 0.0),
        (f"geometry_type({SQUARE})", "Polygon"),
        (f"ST_GeometryType({SQUARE})", "ST_Polygon"),
        (f"st_as_text({LINE})", "LINESTRING Z(0 0 5, 3 4 6)"),
        ("st_as_text(st_geom_from_text('POINT M (1 2 3)'))", "POINT Z(1 2 3)"),
        (f"st_as_text(st_envelope({LINE}))", "POLYGON ((0 0, 0 4, 3 4, 3 0, 0 0))"),
        (f"st_as_text(st_flip_coordinates({point(1, 2)}))", "POINT (2 1)"),
        (f"st_is_closed({LINE})", False),
        (f"st_is_closed({SQUARE})", True),
        (f"st_contains({SQUARE}, {point(3, 1)})", True),
        (f"st_contains({SQUARE}, {point(5, 1)})", False),
        (f"st_within({point(3, 1)}, {SQUARE})", True),
        (f"st_distance({point(0, 0)}, {point(3, 4)})", 5.0),
        (f"st_dwithin({point(0, 0)}, {point(3, 4)}, 5)", True),
        (f"st_dwithin({point(0, 0)}, {point(3, 4)}, 4.9)", False),
        (f"st_relate({point(0, 0)}, {point(3, 4)}, 'FF0FFF0F2')", True),
        (f"st_relate({point(0, 0)}, {point(3, 4)}, 'T********')", False),
        ("st_relate_match('FF0FFF212', 'FF*FF****')", True),
        (f"round(st_distance_sphere({point(0, 0)}, {point(1, 0)}))", 111195.0),
        (
            "st_is_valid_reason(st_geom_from_text('POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))'))",
            "Self-intersection at or near point (0.5, 0.5, NaN)",
        ),
        (f"st_as_text(st_collection_extract(st_union({LINE}, {point(9, 9)}), 1))", "MULTIPOINT ((9 9))"),
        ("st_srid(st_geom_from_text('POINT(1 2)', 4326))", 4326),
        ("st_as_binary(st_make_point(2, 5))", bytes.fromhex("010100000000000000000000400000000000001440")),
        ("st_as_text(st_geom_from_wkb(hex('010100000000000000000000400000000000001440')))", "POINT (2 5)"),
        ("st_as_text(strict_st_union([st_make_point(1, 1), st_make_point(1, 2)]))", "MULTIPOINT ((1 1), (1 2))"),
    ],
)
def test_geometry_functions_return_expected_values(expression: str, expected: Value) -> None:
    """The expected value, under both spellings of the function's name."""
    assert value(expression) == expected


@pytest.mark.parametrize(
    "function, zero, one",
    [
        ("st_point_n", 0, "POINT Z(0 0 5)"),
        ("st_pointn", 1, "POINT Z(0 0 5)"),
        ("st_point_n", 2, None),
        ("st_pointn", 0, None),
        ("st_pointn", -1, None),
    ],
)
def test_part_positions_start_at_0_or_1_by_function(function: str, zero: int, one: str | None) -> None:
    """Positions count from 0 in the older functions and from 1 in the others; a missing part gives NULL."""
    assert value(f"st_as_text({function}({LINE}, {zero}))") == one


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("st_area(null)", None),
        ("st_area(missing)", MISSING),
        ("st_area('POINT(1 2)')", None),
        ("st_contains(null, missing)", MISSING),
        (f"st_contains({SQUARE}, 1)", None),
        ("st_geom_from_text('POINT(1')", None),
        ("st_geom_from_text('POINT(1 2)', -1)", None),
        ("st_geom_from_wkb(hex('01'))", None),
        ("st_geom_from_geojson({'type': 'Point', 'coordinates': ['1', 2]})", None),
        ("st_geom_from_geojson({'type': 'Circle', 'coordinates': [1, 2]})", None),
        ("st_geom_from_geojson({'type': 'LineString', 'coordinates': [[1, 2], [1, 2, 3]]})", None),
        ("st_make_point('1', 2)", None),
        (f"st_buffer({SQUARE}, 'a')", None),
        (f"st_relate({SQUARE}, {SQUARE}, 'nonsense')", None),
        (f"st_collection_extract({SQUARE}, 99)", None),
        ("st_union([1])", None),
        (f"st_line_from_multipoint({SQUARE})", None),
    ],
)
def test_unknown_and_malformed_arguments_give_missing_or_null(expression: str, expected: Value) -> None:
    """MISSING takes precedence over NULL; arguments of another type and malformed text give NULL."""
    assert value(expression) is expected


def test_results_are_geojson() -> None:
    """ADM and JSON print a geometry as a GeoJSON object; an integer has no fraction."""
    collection = value("st_geom_from_text('GEOMETRYCOLLECTION(POINT(1 2.5), POLYGON((0 0, 1 0, 1 1, 0 0)))')")

    assert isinstance(collection, Geometry)
    assert adm_text(collection) == (
        '{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2.5]},'
        '{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}]}'
    )


def test_geometries_are_equal_by_their_coordinates() -> None:
    """`=` compares a geometry's points; `<` between geometries is NULL."""
    assert value(f"{point(1, 2)} = {point(1, 2)}") is True
    assert value(f"{point(1, 2)} = {point(1, 3)}") is False
    assert value(f"{point(1, 2)} < {point(1, 3)}") is None
