# SPDX-License-Identifier: Apache-2.0
"""Words and n-grams of strings, by hand-written examples and those of AsterixDB's tests."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.values.model import MISSING, Value, type_name
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text, expected",
    [
        ("word_tokens('Hello World, I like_it!')", ("hello", "world", "i", "like", "it")),
        ("word_tokens('ΩΣ')", ("ωσ",)),
        ("word_tokens(1)", None),
        ("gram_tokens('Jürg', 3, false)", ("jür", "ürg")),
        ("gram_tokens('ab', 3, true)", ("##a", "#ab", "ab$", "b$$")),
        ("gram_tokens('ab', 3, false)", ()),
        ("gram_tokens('ab', 0, false)", None),
        ("gram_tokens('ab', 2, 'x')", None),
        ("hashed_gram_tokens('Gen', 3, false)", (-898179210,)),
        ("hashed_word_tokens('Hello I i')", (868875244, 442128209, 442128209)),
        ("counthashed_word_tokens('Hello I i')", (868875244, 442128209, 442128210)),
        ("counthashed_gram_tokens('gen', 3, false)", (-898179210,)),
        ("hashed_word_tokens(missing)", MISSING),
        ("hashed_word_tokens(1)", None),
        ("ftcontains('the Object of a database', 'object')", True),
        ("ftcontains('the Object of a database', ['object', 'system'], {'mode': 'any'})", True),
        ("ftcontains('the Object of a database', {{'object', 'system'}}, {'mode': 'all'})", False),
        ("ftcontains('the Object of a database', ['object', 'database'])", True),
        ("ftcontains('the Object of a database', 'object database')", True),
        ("ftcontains('the Object of a database', 'object system')", False),
        ("ftcontains('the Object of a database', 'object system', {'mode': 'any'})", True),
        ("ftcontains('objects', 'object')", False),
        ("ftcontains(1, 'object')", None),
        ("ftcontains('a', [1])", None),
        ("ftcontains('a', 'a', {'mode': 'none'})", None),
    ],
)
def test_token_functions_return_expected_values(text: str, expected: Value) -> None:
    """Tokens are in lower case; hashes equal those of AsterixDB."""
    assert value(text) == expected


def test_hashes_are_integers() -> None:
    """Hashes are 32-bit integers."""
    hashes = value("hashed_word_tokens('a')")

    assert isinstance(hashes, tuple)
    assert [type_name(one) for one in hashes] == ["integer"]


def test_too_many_grams_are_refused_before_creation() -> None:
    """The length of the result is limited before it is created."""
    with pytest.raises(SqlppError, match="longer than"):
        value("gram_tokens(repeat('a', 10000), 10000, true)")
