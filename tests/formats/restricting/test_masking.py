# SPDX-License-Identifier: Apache-2.0
"""Masks of strings, compared with the same mask of one Python string."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from limnos.formats.restricting.masking import mask_column

CHARACTERS = "aZ09(),.-@ _\n\tßé€漢😀x\u0301\x00"


def alphanumeric(text: str) -> str:
    """Return the text with its digits as `n` and its other characters as `x`."""
    return "".join("n" if each in "0123456789" else each if each in "(),.-@" else "x" for each in text)


def first_four(text: str) -> str:
    """Return the first four characters of a longer text, and crosses for the others."""
    return text[:4] + "x" * (len(text) - 4) if len(text) > 4 else "x" * len(text)


def last_four(text: str) -> str:
    """Return the last four characters of a longer text, and crosses for the others."""
    return "x" * (len(text) - 4) + text[-4:] if len(text) > 4 else "x" * len(text)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize(
    "action, model",
    [("mask-alphanum", alphanumeric), ("show-first-4", first_four), ("show-last-4", last_four)],
)
@pytest.mark.parametrize("characters", ["a9.@-", CHARACTERS], ids=["ascii", "unicode"])
def test_masked_strings_equal_a_model(
    characters: str, action: str, model: Callable[[str], str], kind: pa.DataType
) -> None:
    """Random strings with and without nulls are masked as single strings are, also in a slice of an array."""
    draw = random.Random(7)
    texts = [
        None if draw.random() < 0.1 else "".join(draw.choices(characters, k=draw.randrange(9))) for _ in range(2000)
    ]
    values = pa.array(texts, kind)

    masked_values = mask_column(values, action)
    masked_slice = mask_column(values.slice(700, 300), action)

    expected = [None if each is None else model(each) for each in texts]
    assert masked_values.to_pylist() == expected
    assert masked_slice.to_pylist() == expected[700:1000]
    assert masked_values.type == kind
    masked_values.validate(full=True)


@pytest.mark.parametrize("action", ["mask-alphanum", "show-first-4", "show-last-4"])
@pytest.mark.parametrize("texts", [[], [None], [None, None], [""], ["é", None]], ids=repr)
def test_arrays_without_text_are_masked(texts: list[str | None], action: str) -> None:
    """Arrays that are empty, of nulls alone, or of empty strings have masked arrays of the same length and nulls."""
    masked_values = mask_column(pa.array(texts, pa.string()), action)

    assert [each is None for each in masked_values.to_pylist()] == [each is None for each in texts]
    masked_values.validate(full=True)
