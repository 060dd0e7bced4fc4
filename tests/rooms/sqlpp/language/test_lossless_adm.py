# SPDX-License-Identifier: Apache-2.0
"""Lossless ADM: the texts that AsterixDB writes, decoded to the same values, and invalid texts."""

from __future__ import annotations

import json
import math
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.lossless_adm import lossless_adm_text, lossless_adm_value
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    Bag,
    Circle,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Float,
    Integer,
    Interval,
    Point,
    Polygon,
    SmallInt,
    Time,
    TinyInt,
    Value,
    YearMonthDuration,
)

ID = uuid.UUID("5c848e5c-6b6a-498f-8452-8847a2957421")


@pytest.mark.parametrize(
    "value, text",
    [
        (7, "7"),
        (True, "true"),
        (None, "null"),
        ("", '""'),
        ("a:b", '":a:b"'),
        (TinyInt(-1), '"01:-1"'),
        (SmallInt(2), '"02:2"'),
        (Integer(3), '"03:3"'),
        (1.5, '"0C:4609434218613702656"'),
        (Float(1.5), '"0B:1069547520"'),
        (Date(0), '"11:0"'),
        (Time(1000), '"12:1000"'),
        (DateTime(-5), '"10:-5"'),
        (Duration(2, 30), '"13:2:30"'),
        (YearMonthDuration(14), '"24:14"'),
        (DayTimeDuration(9), '"25:9"'),
        (ID, f'"26:{ID}"'),
        (b"\x00\xff", '"09:AP8="'),
        (Point((0.0, 1.0)), '"14:0:4607182418800017408"'),
        ({"a": 1, "b": MISSING, "c": None}, '{"a":1,"c":null}'),
        ((1, MISSING), '[1,"0E"]'),
        (Bag((1,)), "[1]"),
    ],
)
def test_a_value_has_asterixdbs_text(value: Value, text: str) -> None:
    """The text has the type's tag, then the parts as numbers; a double is the number of its bits."""
    assert lossless_adm_text(value) == text


NUMBERS = st.floats(allow_nan=False, width=64)
VALUES: st.SearchStrategy[Value] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.text(),
        st.binary(max_size=9),
        NUMBERS,
        st.integers(-128, 127).map(TinyInt),
        st.integers(-(2**31), 2**31 - 1).map(Integer),
        st.floats(allow_nan=False, width=32).map(Float),
        st.integers(-700_000, 700_000).map(Date),
        st.builds(Duration, st.integers(-99, 99), st.integers(-(10**9), 10**9)),
        st.uuids(),
        st.tuples(NUMBERS, NUMBERS, NUMBERS).map(Circle),
        st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=5).map(
            lambda points: Polygon(tuple(n for p in points for n in p))
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_value_round_trips_with_its_type(value: Value) -> None:
    """A value is decoded with its type."""
    result = lossless_adm_value(json.loads(lossless_adm_text(value)))

    assert (result, type(result)) == (value, type(value))


def test_nan_and_infinities_round_trip() -> None:
    """NaN and the infinities are decoded from their bits."""
    read = lossless_adm_value(json.loads(lossless_adm_text((math.nan, math.inf, -math.inf))))

    assert isinstance(read, tuple)
    assert math.isnan(float(read[0]))  # type: ignore[arg-type]
    assert read[1:] == (math.inf, -math.inf)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "0",
        "0C",
        "0C1",
        "zz:1",
        "0C:x",
        "0C:99999999999999999999",
        "01:300",
        "02:99999",
        "03:9999999999",
        "04:9223372036854775808",
        "13:1",
        "13:1:2:3",
        "14:1",
        "1F:2:1",
        "1F:-1",
        "26:no",
        "09:*",
        "22:1",
        "63:1",
        "11:9999999999",
        "10:99999999999999999999",
        "12:-1",
        "12:86400000",
    ],
)
def test_invalid_lossless_text_is_refused(text: str) -> None:
    """An unknown tag, a part that is not a number, and a number outside of the type are refused."""
    with pytest.raises(ValueError, match=r"\S"):
        lossless_adm_value(text)


def test_an_interval_has_no_text() -> None:
    """An interval is refused, as in AsterixDB, which has no printer for it."""
    with pytest.raises(SqlppError, match="interval"):
        lossless_adm_text(Interval(Date(1), Date(2)))
