# SPDX-License-Identifier: Apache-2.0
"""Lance's list and string identifiers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.names import InvalidName, lance
from tests.names.strategies import attempt, levels, refusal

delimiters = st.sampled_from(["$", ".", "::", "__delim__", "a", "aa", "→"])


@pytest.mark.parametrize(
    "name,text,delimiter",
    [
        (("cat2", "cat5"), "cat2.cat5", "."),
        (("cat2", "cat5", "t1"), "cat2.cat5.t1", "."),
        (("cat4", "t3"), "cat4$t3", "$"),
        (("a", "b", "t1"), "a::b::t1", "::"),
        (("a", "b"), "a__delim__b", "__delim__"),
        (("a.b", "x/y"), "a.b$x/y", "$"),
        ((), "$", "$"),
        ((), ".", "."),
        ((), "::", "::"),
    ],
)
def test_identifiers_match_vectors(name: tuple[str, ...], text: str, delimiter: str) -> None:
    """A string identifier consists of the names joined by the delimiter. The root is the delimiter itself (seed 3)."""
    assert lance.join(name, delimiter=delimiter) == text
    assert lance.split(text, delimiter=delimiter) == name


def test_default_delimiter_is_a_dollar_sign() -> None:
    """The default delimiter is `$`."""
    assert lance.join(("a", "b")) == "a$b"
    assert lance.split("a$b") == ("a", "b")


def test_empty_string_is_the_root() -> None:
    """The empty string is the root, too, as in the specification."""
    assert lance.split("") == ()


@pytest.mark.parametrize("text", ["a$", "$a", "$$", "a$$b"])
def test_empty_parts_are_refused(text: str) -> None:
    """An identifier that begins or ends with the delimiter, or has it twice in a row, is refused."""
    error = refusal(lance.split, text)

    assert error.reason == "empty-part"
    assert f"'{text}'" in error.message


@pytest.mark.parametrize("text", [".", "a$.", "a$.."])
def test_dot_parts_are_refused(text: str) -> None:
    """The names `.` and `..` are refused."""
    assert refusal(lance.split, text).reason == "dot-part"


def test_part_with_delimiter_needs_another_delimiter() -> None:
    """A name that contains the delimiter cannot be joined with it, but with another one."""
    error = refusal(lance.join, ("a$b", "t"))

    assert error.reason == "separator-in-part"
    assert "'a$b'" in error.message
    assert lance.join(("a$b", "t"), delimiter="::") == "a$b::t"


def test_parts_forming_the_delimiter_when_joined_are_refused() -> None:
    """Parts are refused if a long delimiter would occur where one part meets the next."""
    assert refusal(lance.join, ("a:", "b"), delimiter="::").reason == "separator-in-part"


@pytest.mark.parametrize("delimiter", ["", "\x00", "\n", "$\x1f", "\ud800"])
def test_unusable_delimiters_are_refused(delimiter: str) -> None:
    """A delimiter must have at least one character, and only visible ones."""
    assert refusal(lance.split, "a", delimiter=delimiter).reason == "bad-separator"
    assert refusal(lance.join, ("a",), delimiter=delimiter).reason == "bad-separator"


@pytest.mark.parametrize(
    "raw,delimiter,name",
    [
        (b"a%24b%24t1", "$", ("a", "b", "t1")),
        (b"r$t1", "$", ("r", "t1")),
        (b"%24", "$", ()),
        (b"$", "$", ()),
        (b"a%3A%3Ab", "::", ("a", "b")),
        (b"a+b", "$", ("a+b",)),
    ],
)
def test_path_accepts_escaped_and_bare_delimiter(raw: bytes, delimiter: str, name: tuple[str, ...]) -> None:
    """In a path the delimiter may be escaped or bare, and `+` is a plus."""
    assert lance.decode_path(raw, delimiter=delimiter) == name


def test_plus_in_path_matches_space_in_body() -> None:
    """A path matches the identifier in the body if they are equal, also with `+` read as space."""
    assert lance.is_same_path(("a+b",), ("a b",))
    assert lance.is_same_path(("a+b",), ("a+b",))
    assert not lance.is_same_path(("a b",), ("a+b",))
    assert not lance.is_same_path(("a",), ("a", "b"))


@given(levels(), delimiters)
def test_joined_name_splits_back_or_is_refused(name: tuple[str, ...], delimiter: str) -> None:
    """A joined name splits to the same name, or the name is refused."""
    text = attempt(lance.join, name, delimiter=delimiter)

    if isinstance(text, InvalidName):
        assert text.reason == "separator-in-part"
    else:
        assert lance.split(text, delimiter=delimiter) == name
        assert lance.decode_path(lance.encode_path(name, delimiter=delimiter).encode(), delimiter=delimiter) == name


@given(levels(without="$"))
def test_default_delimiter_represents_names_without_dollar_sign(name: tuple[str, ...]) -> None:
    """Every name without a dollar sign is restored with the default delimiter."""
    assert lance.split(lance.join(name)) == name


@given(st.text(st.sampled_from("ab:$"), max_size=10), delimiters)
def test_text_that_splits_joins_to_itself(text: str, delimiter: str) -> None:
    """A text that can be split joins to the same text. Only the root has a second spelling, the empty string."""
    name = attempt(lance.split, text, delimiter=delimiter)

    if isinstance(name, InvalidName):
        assert name.message.isprintable()
    else:
        assert lance.join(name, delimiter=delimiter) == (text or delimiter)
