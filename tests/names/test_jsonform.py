# SPDX-License-Identifier: Apache-2.0
"""The JSON spelling of SQL++ REST, and repeated HTTP parameters."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from limnos.names import jsonform
from tests.names.strategies import levels, refusal


@pytest.mark.parametrize(
    "name,value",
    [
        (("sales",), "sales"),
        (("sales", "east"), ["sales", "east"]),
        (("sales.east",), "sales.east"),
        (("a.b", "c"), ["a.b", "c"]),
    ],
)
def test_json_forms_match_vectors(name: tuple[str, ...], value: object) -> None:
    """A name of one part is a string, which is never split. Several parts are an array."""
    assert jsonform.encode(name) == value
    assert jsonform.decode(value) == name


def test_an_array_of_one_is_one_part() -> None:
    """An array may hold a single part."""
    assert jsonform.decode(["sales.east"]) == ("sales.east",)


@pytest.mark.parametrize(
    "value,reason,word",
    [
        (None, "bad-type", "null"),
        (1, "bad-type", "a number"),
        (1.5, "bad-type", "a number"),
        (True, "bad-type", "a boolean"),
        ({}, "bad-type", "an object"),
        (["a", None], "bad-type", "null"),
        (["a", ["b"]], "bad-type", "an array"),
        ([], "empty-name", "no part"),
        ("", "empty-part", "empty"),
        (["a", ""], "empty-part", "empty"),
    ],
)
def test_values_of_other_types_are_refused(value: object, reason: str, word: str) -> None:
    """A value that is neither text nor a list of texts is refused, and the message says what was sent."""
    error = refusal(jsonform.decode, value)

    assert error.reason == reason
    assert word in error.message


def test_text_is_refused_where_array_is_required() -> None:
    """If the protocol requires an array, text is refused."""
    assert refusal(jsonform.decode_array, "a").reason == "bad-type"


@given(levels())
def test_round_trip(name: tuple[str, ...]) -> None:
    """Every name is restored from its JSON text."""
    assert jsonform.decode(json.loads(json.dumps(jsonform.encode(name)))) == name
