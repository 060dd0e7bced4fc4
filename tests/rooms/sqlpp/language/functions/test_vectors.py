# SPDX-License-Identifier: Apache-2.0
"""Functions of vectors, by hand-written examples."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("dot_product([1, 2, 3], [4, 5, 6.0])", 32.0),
        ("cosine_similarity([1, 0], [0, 2])", 0.0),
        ("cosine_similarity([3, 4], [6, 8])", 1.0),
        ("cosine_similarity([0, 0], [6, 8])", None),
        ("euclidean_distance([0, 0], [3, 4])", 5.0),
        ("l2_distance([1], [1])", 0.0),
        ("euclidean_squared_distance([0, 0], [3, 4])", 25.0),
        ("`l2-squared-distance`([0, 0], [3, 4])", 25.0),
        ("dot_product([1, 2], [1])", None),
        ("dot_product([1, 'a'], [1, 2])", None),
        ("dot_product([1, null], [1, 2])", None),
        ("dot_product([], [])", None),
        ("dot_product(5, [1])", None),
        ("dot_product(missing, [1])", MISSING),
    ],
)
def test_vector_functions_return_expected_values(text: str, expected: Value) -> None:
    """The expected value; vectors of different lengths or with items that are not numbers give NULL."""
    assert value(text) == expected
