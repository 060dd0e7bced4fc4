# SPDX-License-Identifier: Apache-2.0
"""Values from JSON texts."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text, expected",
    [
        ("""parse_json('{"a": [1, 2.5, {"b": null}], "c": "x"}')""", {"a": (1, 2.5, {"b": None}), "c": "x"}),
        ("parse_json('9223372036854775808')", 9223372036854775808.0),
        ("[parse_json('null'), parse_json(''), parse_json('{'), parse_json('NaN'), parse_json(1)]", (None,) * 5),
        ("parse_json(missing)", MISSING),
        ("parse_json(repeat('[', 100000))", None),
    ],
)
def test_parse_json_of_malformed_text_is_null(text: str, expected: Value) -> None:
    """A malformed text is NULL."""
    assert value(text) == expected
