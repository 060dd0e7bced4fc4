# SPDX-License-Identifier: Apache-2.0
"""Texts that are API tokens, and texts that are not."""

from __future__ import annotations

import pytest

from limnos.model.token_text import TOKEN_CHARACTERS_MAX, token_fault


@pytest.mark.parametrize("text", ["lim_7_Kp-h_9", "eyJhbGciOi.eyJzdWIi.c2ln", "abc+/~==", "x" * TOKEN_CHARACTERS_MAX])
def test_tokens_have_no_fault(text: str) -> None:
    """Tokens of the server and of external issuers have the form of Bearer tokens."""
    assert token_fault(text) is None


@pytest.mark.parametrize(
    "text,reason",
    [
        ("", "empty"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvg\n-----END PRIVATE KEY-----", "several lines"),
        ("lim_1_planted\rX-Other: 1", "several lines"),
        ("lim_1_planted\x85x", "several lines"),
        ('{"token":"lim_1_planted"}', "characters"),
        ("lim_1_planted x", "characters"),
        ("lim_1_plänted", "characters"),
        ("lim_1_planted\x00", "characters"),
        ("Bearer lim_1_planted", "word Bearer"),
        ("x" * (TOKEN_CHARACTERS_MAX + 1), "longer than 16,384"),
    ],
)
def test_other_texts_have_a_fault_without_their_content(text: str, reason: str) -> None:
    """The fault of a text that is no token says why, and has no part of the text."""
    fault = token_fault(text)

    assert fault is not None
    assert reason in fault
    assert "planted" not in fault
    assert "MIIEvg" not in fault
