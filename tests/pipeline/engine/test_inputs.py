# SPDX-License-Identifier: Apache-2.0
"""What a step's Python function returned, in words."""

from __future__ import annotations

import decimal

import pytest

from limnos.pipeline.engine.inputs import _describe_value


@pytest.mark.parametrize(
    "value, words",
    [
        (None, "nothing, and a step must return a Spark DataFrame: is a `return` missing?"),
        ([1], "list, and a step must return a Spark DataFrame"),
        (decimal.Decimal(1), "decimal.Decimal, and a step must return a Spark DataFrame"),
    ],
)
def test_value_that_is_no_dataframe_is_named_with_its_library(value: object, words: str) -> None:
    """A DataFrame of pandas has the same class name as one of Spark, so the library is named."""
    assert _describe_value(value).startswith(words)
