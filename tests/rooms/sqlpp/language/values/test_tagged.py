# SPDX-License-Identifier: Apache-2.0
"""Values as tagged JSON."""

from __future__ import annotations

import msgspec

from limnos.rooms.sqlpp.language.values.model import MISSING, type_name
from limnos.rooms.sqlpp.language.values.tagged import from_tagged_json, to_tagged_json
from tests.rooms.sqlpp.language.values.examples import ORDERED


def test_every_value_round_trips_through_json_with_its_type() -> None:
    """Each value is decoded from JSON with its type, including NaN."""
    values = [value for line in ORDERED for value in line]
    nested = [{"a": value, "object": (value,), "t": {"missing": 0}} for value in values if value is not MISSING]

    for value in (*values, *nested):
        back = from_tagged_json(msgspec.json.decode(msgspec.json.encode(to_tagged_json(value))))
        assert type_name(back) == type_name(value)
        assert repr(back) == repr(value)


def test_object_that_looks_like_a_tag_remains_an_object() -> None:
    """An object that looks like a tag remains an object."""
    value = {"double": "NaN"}

    assert from_tagged_json(to_tagged_json(value)) == value
