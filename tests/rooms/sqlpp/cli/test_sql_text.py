# SPDX-License-Identifier: Apache-2.0
"""SQL++ text in the shell: whether a statement is complete, the position of an error, and the dataverse in use."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.cli.sql_text import (
    active_dataverse,
    changes_names,
    error_position,
    is_whole,
    takes_words,
    underline_position,
)
from limnos.rooms.sqlpp.language import SqlppError, TextPosition, parse


@pytest.mark.parametrize(
    "text",
    [
        "select 1;",
        "select\n1\n;",
        "use a; select 1;  ",
        "select ';' ;",
        "select 1; -- done",
        "select 1; /* done */",
        "",
        "  \n",
        "select value {'a': {'b': {{1}}}};",
        "select ~;",
        "select } ;",
    ],
)
def test_statement_ending_with_semicolon_is_complete(text: str) -> None:
    """A statement is complete if it ends with a semicolon, comments aside. Invalid text counts as complete, so that the
    server reports it.
    """
    assert is_whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "use a; select 1",
        "select ';",
        'select ";',
        "select `a;",
        "select 1 -- ;",
        "select 1 /* ; */",
        "select /* ;",
        "select 'a\n;",
        "select 'it''s;",
    ],
)
def test_quoted_semicolon_does_not_end_a_statement(text: str) -> None:
    """A semicolon in a string, a quoted name or a comment does not end a statement."""
    assert not is_whole(text)


@pytest.mark.parametrize("text, word", [("select value x fro y;", "fro"), ("select 'a", ""), ("select\n  ~;", "~")])
def test_position_of_syntax_error_is_parsed_and_underlined(text: str, word: str) -> None:
    """Each form of a syntax error contains its position, which is parsed and underlined."""
    with pytest.raises(SqlppError) as refused:
        parse(text)

    place = error_position(refused.value.text)

    assert place == refused.value.place
    assert place is not None
    line, marks = (underline_position(text, place) or "").split("\n")
    assert marks.strip() == "^" * max(1, len(word))
    assert line[marks.index("^") :].startswith(word)


def test_position_at_end_of_binder_message_is_parsed() -> None:
    """The position at the end of a binder's message is parsed; for a message without a position the result is None."""
    assert error_position("ASX1077: Cannot find dataset x (in line 2, at column 15)") == TextPosition(2, 15)
    assert error_position("ASX1071: A dataverse with this name a already exists.") is None


def test_underline_aligns_with_tabs_and_wide_characters() -> None:
    """A tab counts as one column and a wide character as two. A long line is truncated around the position."""
    assert (
        underline_position("select\t日本, orders x", TextPosition(1, 12))
        == "   1 | select 日本, orders x\n" + " " * 20 + "^^^^^^"
    )
    long = underline_position("x" * 500 + " bad " + "y" * 500, TextPosition(1, 502))
    assert long is not None
    excerpt, marks = long.split("\n")
    assert excerpt[marks.index("^") :].startswith("bad ")
    assert len(excerpt) < 140
    assert marks.count("^") == 3
    assert underline_position("a", TextPosition(2, 1)) is None
    assert underline_position("a", TextPosition(1, 9)) is not None


def test_last_use_statement_sets_the_dataverse() -> None:
    """The last USE statement sets the dataverse, in any case and spelling. Without one it is unchanged."""
    assert active_dataverse("use a; USE `b.c`.d; select 1;", None) == ("b.c", "d")
    assert active_dataverse("select 'use x';", ("a",)) == ("a",)
    assert active_dataverse("not a statement", ("a",)) == ("a",)


def test_strings_names_and_comments_are_not_completed() -> None:
    """Words are not completed in strings, quoted names and comments."""
    assert takes_words("select value ")
    assert takes_words("select 'a' from ")
    assert [takes_words(text) for text in ("select 'a", "-- a", "select 1 // ", "/* ", "select `a")] == [False] * 5


def test_only_create_and_drop_change_names() -> None:
    """Statements that create or drop objects change names; queries do not."""
    assert changes_names("CREATE dataverse a")
    assert changes_names("use a; drop dataset t;")
    assert not changes_names("select created from dropped;")
