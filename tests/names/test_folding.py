# SPDX-License-Identifier: Apache-2.0
"""Folded names: equal for all cases and Unicode compositions of a name."""

from __future__ import annotations

import pytest

from limnos.names.folding import fold


@pytest.mark.parametrize(
    "one, other",
    [("Flights", "fLIGHTS"), ("Straße", "STRASSE"), ("Zürich", "Zu\u0308RICH"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("été", "ÉTÉ")],
)
def test_names_differing_in_case_fold_alike(one: str, other: str) -> None:
    """Names that differ only in case and composition fold to the same text, and folding twice changes nothing."""
    assert fold(one) == fold(other)
    assert fold(fold(one)) == fold(one)


def test_accents_digits_and_punctuation_are_not_folded() -> None:
    """Names that differ in accents, digits or punctuation fold to different texts."""
    assert len({fold(text) for text in ("a", "á", "a_", "a1", "b")}) == 5
