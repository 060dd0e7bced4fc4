# SPDX-License-Identifier: Apache-2.0
"""Functions of dataverse names."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("decode_dataverse_name('a.b')", ("a", "b")),
        ("decode_dataverse_name('Default')", ("Default",)),
        ("decode_dataverse_name('a@.b.c@.d')", ("a.b", "c.d")),
        ("decode_dataverse_name('a@@@.b.c@@d')", ("a@.b", "c@d")),
        ("decode_dataverse_name('a@')", None),
        ("decode_dataverse_name('a@x')", None),
        ("decode_dataverse_name('a..b')", None),
        ("decode_dataverse_name(5)", None),
        ("decode_dataverse_name(null)", None),
        ("decode_dataverse_name(missing)", MISSING),
        ("encode_dataverse_name('a.b')", "a@.b"),
        ("encode_dataverse_name(['a', 'b'])", "a.b"),
        ("encode_dataverse_name(['a@.b', 'c@d'])", "a@@@.b.c@@d"),
        ("encode_dataverse_name([])", None),
        ("encode_dataverse_name(['a', 1])", None),
        ("encode_dataverse_name(decode_dataverse_name('user@@host@.com.inbox'))", "user@@host@.com.inbox"),
    ],
)
def test_dataverse_names_are_encoded_and_decoded(text: str, expected: Value) -> None:
    """A string is one part, an array has several; a name that is not canonical gives NULL."""
    assert value(text) == expected
