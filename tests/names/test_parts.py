# SPDX-License-Identifier: Apache-2.0
"""Rules for parts of names, and Gravitino's stricter patterns."""

from __future__ import annotations

import pytest
from hypothesis import given

from limnos.names.parts import (
    check_catalog_name,
    check_gravitino_name,
    check_levels,
    check_metalake_name,
    check_part,
    check_some_levels,
    fold,
    quote_for_message,
)
from tests.names.strategies import levels, parts, refusal

REFUSED = [
    ("", "empty-part"),
    (".", "dot-part"),
    ("..", "dot-part"),
    ("a\x00b", "forbidden-character"),
    ("a\x01b", "forbidden-character"),
    ("a\x1fb", "forbidden-character"),
    ("a\ud800", "bad-utf8"),
    ("\udc00", "bad-utf8"),
    ("a" * 256, "part-too-long"),
    ("ä" * 128, "part-too-long"),
    ("😀" * 64, "part-too-long"),
]


@pytest.mark.parametrize("part,reason", REFUSED)
def test_invalid_parts_are_refused_with_reason(part: str, reason: str) -> None:
    """Each refusal of a part has its own reason and a message of one line."""
    error = refusal(check_part, part)

    assert error.reason == reason
    assert error.message.isprintable()


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "a" * 255,
        "ä" * 127,
        "...",
        ".a",
        "a.",
        "a b",
        " ",
        "a/b",
        "a:b",
        "%",
        "a%2Fb",
        "日本",
        "😀",
        "a\tb",
        "A",
        "é",
        "e\u0301",
    ],
)
def test_valid_parts_are_not_normalized_or_trimmed(part: str) -> None:
    """Every other part is allowed, and is neither normalized nor trimmed."""
    assert check_part(part) == part


@given(parts())
def test_generated_parts_are_allowed(part: str) -> None:
    """Any text without the forbidden characters, up to 255 bytes, is a valid part."""
    assert check_part(part) is part


def test_levels_have_at_most_32_parts() -> None:
    """32 parts are allowed, 33 are not."""
    assert check_levels(["a"] * 32) == ("a",) * 32
    assert refusal(check_levels, ["a"] * 33).reason == "too-many-parts"


def test_empty_levels_are_allowed_only_if_representable() -> None:
    """A name without parts is allowed only in spellings that can represent it."""
    assert check_levels([]) == ()
    assert refusal(check_some_levels, []).reason == "empty-name"


def test_every_level_is_checked() -> None:
    """One invalid part makes the name invalid."""
    assert refusal(check_levels, ("a", "", "b")).reason == "empty-part"


@given(levels(size_max=32))
def test_generated_levels_are_allowed(name: tuple[str, ...]) -> None:
    """Valid parts make a valid name."""
    assert check_levels(list(name)) == name


@pytest.mark.parametrize("name", ["a", "lake", "_x", "1", "A_9", "a" * 64])
def test_valid_metalake_names_are_allowed(name: str) -> None:
    """Gravitino's pattern for metalakes: 1 to 64 ASCII word characters."""
    assert check_metalake_name(name) == name


@pytest.mark.parametrize(
    "name,reason",
    [
        ("", "name-pattern"),
        ("a-b", "name-pattern"),
        ("a.b", "name-pattern"),
        ("a b", "name-pattern"),
        ("*", "name-pattern"),
        ("é", "name-pattern"),
        ("a\n", "name-pattern"),
        ("a" * 65, "name-pattern"),
        ("system", "reserved-name"),
    ],
)
def test_invalid_metalake_names_are_refused(name: str, reason: str) -> None:
    """Names that Gravitino refuses for metalakes are refused, also with a final newline."""
    error = refusal(check_metalake_name, name)

    assert error.reason == reason
    assert "METALAKE" in error.message


@pytest.mark.parametrize("name", ["main", "a-b", "a-", "_-", "9", "a" * 64])
def test_valid_catalog_names_are_allowed(name: str) -> None:
    """Gravitino's pattern for catalogs: as for metalakes, and `-` after the first character."""
    assert check_catalog_name(name) == name


@pytest.mark.parametrize(
    "name,reason",
    [
        ("-a", "name-pattern"),
        ("a.b", "name-pattern"),
        ("", "name-pattern"),
        ("a" * 65, "name-pattern"),
        ("system", "reserved-name"),
    ],
)
def test_invalid_catalog_names_are_refused(name: str, reason: str) -> None:
    """A catalog's name contains no dot, does not start with `-`, and is not `system`."""
    assert refusal(check_catalog_name, name).reason == reason


@pytest.mark.parametrize("name", ["a", "a/b", "a=b", "a-b", "a.b", "my.schema", "a" * 64])
def test_valid_gravitino_names_are_allowed(name: str) -> None:
    """Names created through Gravitino's API follow its default pattern, with dots allowed."""
    assert check_gravitino_name(name) == name


@pytest.mark.parametrize("name", ["", "/a", ".a", "=a", "-a", "a b", "a:b", "table:name", "*", "é", "a%b", "a" * 65])
def test_invalid_gravitino_names_are_refused(name: str) -> None:
    """The refusal of a name by Gravitino's pattern names the kind."""
    error = refusal(check_gravitino_name, name, kind="TABLE")

    assert error.reason == "name-pattern"
    assert error.message.startswith(f"The TABLE name '{name}' is illegal")


def test_text_in_messages_is_escaped_and_truncated() -> None:
    """A message shows control characters escaped and truncates long text."""
    assert quote_for_message("a b") == "'a b'"
    assert quote_for_message("a\nb\x1f") == r"'a\nb\x1f'"
    assert quote_for_message("\ud800") == r"'\ud800'"
    assert quote_for_message("a" * 100) == "'" + "a" * 77 + "...'"


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
