# SPDX-License-Identifier: Apache-2.0
"""Values of every type survive the conversion to text and back."""

from __future__ import annotations

import json
import random

import pytest

from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.stored import open_part
from limnos.rooms.sqlpp.language.values.model import Bag, Date, DateTime, Duration, Float, Time, Value
from limnos.rooms.sqlpp.language.values.order import key
from tests.rooms.sqlpp.language.stored import values
from tests.rooms.sqlpp.language.stored.test_rows import typed
from tests.rooms.sqlpp.language.values.examples import ORDERED


@pytest.mark.parametrize("value", [value for group in ORDERED for value in group], ids=repr)
def test_values_round_trip_with_their_types(value: Value) -> None:
    """Each example value is decoded with its type."""
    assert typed(open_part.read_json_text(open_part.write_json_text(value))) == typed(value)


@pytest.mark.parametrize("seed", range(200))
def test_nested_values_round_trip(seed: int) -> None:
    """Nested values, MISSING in arrays, and fields that look like tags are decoded to the same value."""
    value = values.anything(random.Random(seed), depth=5)

    assert typed(open_part.read_json_text(open_part.write_json_text(value))) == typed(value)


def _through_variant(text: str) -> str:
    """Return a text after its conversion to VARIANT and back: sorted fields, one type of number, no negative zero."""

    def number(digits: str) -> float:
        return int(float(digits)) if float(digits).is_integer() and "e" not in digits.lower() else float(digits)

    return json.dumps(json.loads(text, parse_float=number), sort_keys=True)


@pytest.mark.parametrize("value", [value for group in ORDERED for value in group], ids=repr)
def test_values_round_trip_through_a_variant(value: Value) -> None:
    """Each value is decoded from a VARIANT with its type and the sign of zero."""
    assert typed(open_part.read_json_text(_through_variant(open_part.write_json_text(value, variant=True)))) == typed(
        value
    )


@pytest.mark.parametrize("seed", range(100))
def test_nested_values_round_trip_through_a_variant(seed: int) -> None:
    """Nested values are decoded from a VARIANT, apart from the order of fields, which is not significant."""
    value = values.anything(random.Random(seed), depth=5)

    decoded = open_part.read_json_text(_through_variant(open_part.write_json_text(value, variant=True)))

    assert key(decoded) == key(value)


@pytest.mark.parametrize(
    "value, text",
    [
        (1.0, '{"$double":1.0}'),
        (0.5, "0.5"),
        (-0.0, '{"$double":"-0.0"}'),
        (Float(2.0), '{"$float":{"$double":2.0}}'),
        ((1, 1e300), '[1,{"$double":1e+300}]'),
    ],
)
def test_whole_double_is_tagged_in_a_variant(value: Value, text: str) -> None:
    """A double that could be read as a bigint is tagged."""
    assert open_part.write_json_text(value, variant=True) == text


@pytest.mark.parametrize(
    "value, text",
    [
        ({"a": 1, "b": 1.0, "c": None, "d": (True, "x")}, '{"a":1,"b":1.0,"c":null,"d":[true,"x"]}'),
        (Date(15_664), '{"$date":"2012-11-20"}'),
        (Bag((1,)), '{"$multiset":[1]}'),
        ({"$date": "2012-11-20"}, '{"$object":[["$date","2012-11-20"]]}'),
        ({"$date": 1, "x": 2}, '{"$date":1,"x":2}'),
        (Duration(14, -5000), '{"$duration":"14,-5000"}'),
        (Date(5_000_000), '{"$date":"5000000"}'),
    ],
)
def test_text_format_is_stable(value: Value, text: str) -> None:
    """Other engines read this text, so its format is stable."""
    assert open_part.write_json_text(value) == text
    assert typed(open_part.read_json_text(text)) == typed(value)


def test_time_beyond_midnight_wraps_around() -> None:
    """A time of day that its offset moves over midnight wraps around."""
    assert open_part.read_json_text(open_part.write_json_text(Time(-3_600_000))) == Time(23 * 3_600_000)


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"$date":"yesterday"}', '{"$double":"x"}', "NaN", '{"$uuid":"1"}', '{"$integer":"x"}', '{"$object":1}'],
)
def test_invalid_text_is_refused_with_a_code(text: str) -> None:
    """Text that encodes no value raises an error of the language."""
    with pytest.raises(SqlppError, match="ASX0006"):
        open_part.read_json_text(text)


def test_a_deep_value_is_refused() -> None:
    """A value that is nested too deeply is refused, in both directions."""
    value: Value = 1
    for _ in range(200_000):
        value = (value,)

    with pytest.raises(SqlppError, match="too deep"):
        open_part.write_json_text(value)
    with pytest.raises(SqlppError, match="too deep"):
        open_part.read_json_text("[" * 200_000 + "]" * 200_000)


def test_plain_json_of_other_engines_is_decoded() -> None:
    """Plain JSON of another engine is decoded as the value that it represents."""
    assert open_part.read_json_text(json.dumps({"a": [1, 2.5, {"b": None}]})) == {"a": (1, 2.5, {"b": None})}
    assert open_part.read_json_text('{"$datetime":"1970-01-01T00:00:01Z"}') == DateTime(1000)
