# SPDX-License-Identifier: Apache-2.0
"""Strict percent-decoding, and decoding once for clients that encode too much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.names.percent import quote, unquote_form, unquote_once_if_encoded, unquote_strict
from tests.names.strategies import parts, refusal


@given(parts())
def test_quote_and_unquote_are_inverse(part: str) -> None:
    """A quoted text is ASCII and unquotes to the original."""
    encoded = quote(part)

    assert encoded.isascii()
    assert unquote_strict(encoded) == part
    assert unquote_strict(encoded.encode()) == part
    assert unquote_form(encoded) == part
    assert unquote_once_if_encoded(encoded) == part


@pytest.mark.parametrize(
    "raw,text",
    [("a%20b", "a b"), ("a+b", "a+b"), ("%41", "A"), ("%e6%97%a5", "日"), ("日", "日"), ("%2525", "%25"), ("", "")],
)
def test_strict_unquote_decodes_once_and_preserves_plus(raw: str | bytes, text: str) -> None:
    """Escapes in upper and lower case are decoded once, and `+` is unchanged."""
    assert unquote_strict(raw) == text


@pytest.mark.parametrize("raw", ["%", "a%", "%1", "%zz", "%%41", "a%2", "100% sure"])
def test_bad_escapes_are_refused(raw: str | bytes) -> None:
    """A `%` needs two hex digits, and the message says how to write a percent sign."""
    error = refusal(unquote_strict, raw)

    assert error.reason == "bad-escape"
    assert "%25" in error.message


@pytest.mark.parametrize("raw", [b"%FF", b"\xff", b"%C3%28", b"%ED%A0%80", b"%C0%AF"])
def test_invalid_utf8_is_refused(raw: str | bytes) -> None:
    """Invalid UTF-8, encoded surrogates and overlong forms are refused, escaped or raw."""
    assert refusal(unquote_strict, raw).reason == "bad-utf8"


def test_lone_surrogates_are_refused() -> None:
    """Text with lone surrogates is refused in both directions."""
    assert refusal(quote, "\ud800").reason == "bad-utf8"
    assert refusal(unquote_strict, "\ud800").reason == "bad-utf8"


def test_form_decoding_reads_plus_as_space() -> None:
    """With form encoding, `+` is a space and `%2B` a plus."""
    assert unquote_form(b"a+b%2Bc") == "a b+c"


@pytest.mark.parametrize(
    "text,decoded",
    [
        ("a%3Ab%3Ac", "a:b:c"),
        ("a%20b", "a b"),
        ("a:b", "a:b"),
        ("100%", "100%"),
        ("50%-off", "50%-off"),
        ("50% a%20b", "50% a b"),
        ("%zz", "%zz"),
        ("%FF", "%FF"),
        ("%2541", "%41"),
        ("a+b", "a+b"),
        ("%E6%97%A5", "日"),
    ],
)
def test_unquote_once_retains_invalid_escapes(text: str, decoded: str) -> None:
    """Valid escapes are decoded once, and invalid ones are kept."""
    assert unquote_once_if_encoded(text) == decoded


@given(st.text())
def test_unquote_once_never_raises(text: str) -> None:
    """Any text is accepted, and text without `%` does not change."""
    decoded = unquote_once_if_encoded(text)

    assert "%" in text or decoded == text
