# SPDX-License-Identifier: Apache-2.0
"""Objects of JSON files, converted to a declared type."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.engine.json_objects import json_converter
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.stored import storage_form_of_record
from limnos.rooms.sqlpp.language.values.model import Line, Point, Polygon, Value


def converted(type_: str, value: Value) -> Value:
    """Return a value converted to a type."""
    return json_converter(storage_form_of_record(type_of(type_)).type)(value)


def test_geometries_become_shapes() -> None:
    """Geometries of declared fields become shapes, also within arrays; others remain objects."""
    point: Value = {"type": "Point", "coordinates": (10, 1.5)}
    line: Value = {"type": "LineString", "coordinates": ((0, 0), (1, 1))}
    polygon: Value = {"type": "Polygon", "coordinates": (((0, 0), (1, 1), (0, 0)),)}

    assert converted("{p: point, l: [line], g: polygon?}", {"p": point, "l": (line,), "g": polygon, "o": point}) == {
        "p": Point((10.0, 1.5)),
        "l": (Line((0.0, 0.0, 1.0, 1.0)),),
        "g": Polygon((0.0, 0.0, 1.0, 1.0, 0.0, 0.0)),
        "o": point,
    }


def test_doubles_become_integers() -> None:
    """Doubles are truncated to integers, as in AsterixDB; NULL and strings are unchanged."""
    values: Value = {"n": 150.11, "m": None, "at_": "2020-01-01", "of": {"n": -1.9}, "b": ("x",)}
    assert converted("{n: bigint, m: tinyint?, at_: date, of: {n: integer}, b: [string] }", values) == {
        "n": 150,
        "m": None,
        "at_": "2020-01-01",
        "of": {"n": -1},
        "b": ("x",),
    }


@pytest.mark.parametrize(
    "name", ["circle", "rectangle", "point3d", "interval", "duration", "day_time_duration", "{{int}}"]
)
def test_types_without_json_form_are_refused(name: str) -> None:
    """Types without a form in JSON are refused before anything is read."""
    with pytest.raises(SqlppError, match="ASX0004: Unsupported type"):
        json_converter(storage_form_of_record(type_of(f"{{a: [{{b: {name}?}}]}}")).type)


@pytest.mark.parametrize(
    "type_,value,says",
    [
        ("{a: string}", {"a": 1}, "ASX3054: Mismatch Type, expecting a value of type string"),
        ("{a: int}", {"a": (1,)}, "value of type bigint"),
        ("{a: [int]}", {"a": {}}, "value of type array"),
        ("{a: {b: int}}", {"a": 1}, "value of type object"),
        ("{a: point}", {"a": {"type": "Point", "coordinates": (1,)}}, "value of type point"),
        ("{a: point}", {"a": {"type": "Point"}}, "value of type point"),
        ("{a: point}", {"a": {"type": "LineString", "coordinates": ()}}, "value of type point"),
        ("{a: line}", {"a": {"type": "LineString", "coordinates": ((0, 0),)}}, "Line must have 4 coordinates"),
        ("{a: polygon}", {"a": {"type": "Polygon", "coordinates": (((0, 0), (1, 1), (2, 2)),)}}, "Unclosed polygon"),
        ("{a: polygon}", {"a": {"type": "Polygon", "coordinates": ((), ())}}, "Only simple geometries"),
        ("{a: point}", {"a": {"type": "MultiPoint"}}, "Only simple geometries"),
    ],
)
def test_value_of_wrong_type_is_refused(type_: str, value: Value, says: str) -> None:
    """A value of another type is refused with the expected type."""
    with pytest.raises(SqlppError, match=says):
        converted(type_, value)
