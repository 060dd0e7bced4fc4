# SPDX-License-Identifier: Apache-2.0
"""Geometries as GeoJSON and back."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.functions.geojson import geometry_of, read_geojson, write_geojson
from limnos.rooms.sqlpp.language.values.model import Value


@pytest.mark.parametrize(
    "document",
    [
        {"type": "Point", "coordinates": (1, 2)},
        {"type": "Point", "coordinates": (1, 2.5, 3, 4)},
        {"type": "LineString", "coordinates": ((1, 2, 9), (3, 4, 9))},
        {"type": "LineString", "coordinates": ()},
        {"type": "Polygon", "coordinates": (((0, 0), (4, 0), (4, 4), (0, 0)), ((1, 0.5), (2, 1), (2, 0.5), (1, 0.5)))},
        {"type": "MultiPoint", "coordinates": ((1, 2), (3, 4))},
        {"type": "MultiLineString", "coordinates": (((1, 2), (3, 4)), ((5, 6), (7, 8)))},
        {
            "type": "MultiPolygon",
            "coordinates": ((((0, 0), (4, 0), (4, 4), (0, 0)),), (((9, 9), (9, 8), (8, 9), (9, 9)),)),
        },
        {"type": "GeometryCollection", "geometries": ({"type": "Point", "coordinates": (1, 2)},)},
    ],
)
def test_geometries_round_trip_through_geojson(document: dict[str, Value]) -> None:
    """Each geometry type, with two to four numbers per point and without points, survives the conversion to GeoJSON and
    back.
    """
    geometry = geometry_of(read_geojson(document))

    assert geometry is not None
    assert write_geojson(geometry) == document
