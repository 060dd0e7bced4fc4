# SPDX-License-Identifier: Apache-2.0
"""Results as ADM, lossless JSON and CSV."""

from __future__ import annotations

import json
import math
import uuid

import pytest

from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.result_text import (
    ResultFormat,
    ResultText,
    adm_text,
    csv_text,
    lossless_json_text,
    tagged_line,
)
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    Bag,
    Circle,
    Date,
    DateTime,
    DayTimeDuration,
    Integer,
    Interval,
    Line,
    Point,
    Point3D,
    Polygon,
    Rectangle,
    SmallInt,
    Time,
    TinyInt,
    Value,
)

ID = uuid.UUID(int=1)


@pytest.mark.parametrize(
    "value,text",
    [
        ({"a": 1, "b": ("x", None)}, '{ "a": 1, "b": [ "x", null ] }'),
        (Bag((TinyInt(1), SmallInt(2), True)), "{{ 1, 2, true }}"),
        (Date(0), 'date("1970-01-01")'),
        (Time(1000), 'time("00:00:01.000")'),
        (DateTime(12), 'datetime("1970-01-01T00:00:00.012")'),
        (DayTimeDuration(1000), 'day-time-duration("PT1S")'),
        (Interval(Date(0), Date(1)), 'interval(date("1970-01-01"), date("1970-01-02"))'),
        (ID, f'uuid("{ID}")'),
        (b"\xab", 'hex("AB")'),
        ('a"\n', r'"a\"\n"'),
        ((MISSING,), "[ null ]"),
        ({"\x7f": "\x00\x80\x9f\xa0"}, '{ "\\u007f": "\\u0000\\u0080\\u009f\xa0" }'),
        (1e10, "1.0E10"),
    ],
)
def test_adm_prints_non_json_values_as_constructors(value: Value, text: str) -> None:
    """Values that JSON lacks are printed as calls of their constructors."""
    assert adm_text(value).startswith(text)


def test_lossless_json_omits_types_of_strings_booleans_and_null() -> None:
    """Strings, booleans and NULL are printed without a type."""
    value: Value = {"a": (Integer(1), 2, 2.5, math.nan), "b": Bag(("x", True, None)), "c": Date(1)}

    assert json.loads(lossless_json_text(value)) == {
        "a": {"orderedlist": [{"int32": 1}, {"int64": 2}, 2.5, "NaN"]},
        "b": {"unorderedlist": ["x", True, None]},
        "c": {"date": "1970-01-02"},
    }


@pytest.mark.parametrize(
    "value,document",
    [
        (Point((1.0, 2.5)), {"point": [1.0, 2.5]}),
        (Point3D((1.0, 2.0, 3.0)), {"point3d": [1.0, 2.0, 3.0]}),
        (Line((1.0, 2.0, 3.0, 4.0)), {"line": [{"point": [1.0, 2.0]}, {"point": [3.0, 4.0]}]}),
        (Rectangle((1.0, 2.0, 3.0, 4.0)), {"rectangle": [{"point": [1.0, 2.0]}, {"point": [3.0, 4.0]}]}),
        (Circle((1.0, 2.0, 3.0)), {"circle": [{"point": [1.0, 2.0]}, 3.0]}),
        (Polygon((1.0, 2.0, 3.0, 4.0)), {"polygon": [{"point": [1.0, 2.0]}, {"point": [3.0, 4.0]}]}),
        (b"\xab\x01", "AB01"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_lossless_json_has_points_and_plain_values(value: Value, document: object) -> None:
    """Points and plain values are printed as in AsterixDB's case scan/alltypes_01."""
    assert json.loads(lossless_json_text(value)) == document


@pytest.mark.parametrize(
    "value,text",
    [
        ('a"b', '"a""b"'),
        (None, ""),
        (MISSING, ""),
        (True, "true"),
        (1.5, "1.5"),
        (Date(0), '"1970-01-01"'),
        ((1,), '"[ 1 ]"'),
    ],
)
def test_csv_quotes_strings_temporal_and_nested_values(value: Value, text: str) -> None:
    """Strings, temporal values and nested values are quoted."""
    assert csv_text(value) == text


def test_lossless_json_interval_has_two_typed_ends() -> None:
    """In lossless JSON an interval has both ends, each with its type."""
    assert json.loads(lossless_json_text(Interval(Date(0), Date(1)))) == {
        "interval": {"start": {"date": "1970-01-01"}, "end": {"date": "1970-01-02"}}
    }


def lines(form: ResultFormat, *values: Value) -> list[object]:
    """Return results in the form of a response."""
    text = ResultText(form)
    return [json.loads(line) for value in values for line in text.lines(tagged_line(value).encode())]


def test_the_first_object_gives_the_columns_of_csv() -> None:
    """The first object determines the columns, which the header line names; missing fields are empty."""
    first, second = {"a": 1, "b": "x"}, {"b": None}

    assert lines("csv", first, second) == ['1,"x"', ","]
    assert lines("csv-header", first, second) == ['"a","b"', '1,"x"', ","]


@pytest.mark.parametrize("second", [{"c": 1}, 1, None])
def test_csv_refuses_additional_fields_and_non_objects(second: Value) -> None:
    """CSV refuses additional fields, and values that are not objects."""
    with pytest.raises(SqlppError, match="ASX4000: CSV has"):
        lines("csv", {"a": 1}, second)


def test_adm_is_a_string_in_json_and_lossless_json_is_a_value() -> None:
    """In a JSON response an ADM result is a string and a lossless JSON result is a value."""
    assert lines("adm", {"a": Date(0)}) == ['{ "a": date("1970-01-01") }']
    assert lines("lossless-json", TinyInt(1)) == [{"int8": 1}]
