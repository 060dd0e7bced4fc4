# SPDX-License-Identifier: Apache-2.0
"""Rows as JSON with field ids as keys, encoded and decoded."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from limnos.rooms.sqlpp.engine.single_values import Json, NoSingleValue, check, decode_row, encode_row
from limnos.rooms.sqlpp.language.stored import Plain

SCHEMA: Mapping[str, Json] = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long"},
        {"id": 2, "name": "day", "type": "date"},
        {"id": 3, "name": "seen", "type": "timestamptz"},
        {"id": 4, "name": "x", "type": "double"},
        {"id": 5, "name": "f", "type": "float"},
        {"id": 6, "name": "b", "type": "binary"},
        {"id": 7, "name": "u", "type": "uuid"},
        {"id": 8, "name": "tags", "type": {"type": "list", "element-id": 9, "element": "string"}},
        {
            "id": 10,
            "name": "home",
            "type": {"type": "struct", "fields": [{"id": 11, "name": "zip", "type": "string"}]},
        },
    ],
}
ROW: Mapping[str, Plain] = {
    "id": 1 << 60,
    "day": -719162,
    "seen": -1000,
    "x": 0.1,
    "f": 1.100000023841858,
    "b": b"\x00\xff",
    "u": "00000000-0000-0000-0000-000000000001",
    "tags": ["ä", None],
    "home": {"zip": "1"},
}


def test_row_round_trip() -> None:
    """Values of every supported type, including extreme ones, are decoded to the same value; NULL is omitted in the
    text.
    """
    check(SCHEMA)
    text = encode_row(ROW, SCHEMA)

    assert json.loads(text)["2"] == "0001-01-01"
    assert json.loads(text)["3"] == "1969-12-31T23:59:59.999000+00:00"
    assert decode_row(text, SCHEMA) == ROW
    assert encode_row({"id": 1}, SCHEMA) == '{"1": 1}'
    assert decode_row('{"1": 1}', SCHEMA)["home"] is None


def test_values_in_java_spelling_are_decoded() -> None:
    """The shortest text of a float, NaN, and timestamps without a fraction, as Java writes them, are decoded."""
    values = decode_row('{"1": 1, "3": "2020-01-02T03:04:05+00:00", "4": "NaN", "5": 1.1}', SCHEMA)

    assert str(values["x"]) == "nan"
    assert values["f"] == 1.100000023841858
    assert values["seen"] == 1577934245000000


@pytest.mark.parametrize("row", [{"x": float("nan")}, {"f": float("inf")}, {"day": 5_000_000}, {"seen": 1 << 62}])
def test_value_without_json_form_is_refused(row: Mapping[str, float]) -> None:
    """A value that JSON cannot represent is refused before anything is written."""
    with pytest.raises(NoSingleValue):
        encode_row({"id": 1, **row}, SCHEMA)


@pytest.mark.parametrize(
    "type_", ["decimal(9, 2)", "time", "variant", {"type": "map"}, {"type": "list", "element": "date"}]
)
def test_schema_with_unsupported_type_is_refused(type_: Json) -> None:
    """A schema with an unsupported type is refused as a whole."""
    with pytest.raises(NoSingleValue):
        check({"type": "struct", "fields": [{"id": 1, "name": "x", "type": type_}]})


def test_date_outside_python_range_is_unsupported() -> None:
    """A date outside of Python's range, such as the year 10000 from another engine, is unsupported."""
    with pytest.raises(NoSingleValue):
        decode_row('{"2": "+10000-01-01"}', SCHEMA)
