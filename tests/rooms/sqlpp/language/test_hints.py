# SPDX-License-Identifier: Apache-2.0
"""Hints about errors of statements: a correction is proposed only if it leads somewhere."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import SqlppError, parse
from limnos.rooms.sqlpp.language.hints import PARSED_CHARS, hint_of_text


def hint_of(text: str) -> str:
    """Return the hint for a text that is not SQL++."""
    with pytest.raises(SqlppError) as raised:
        parse(text)
    return hint_of_text(raised.value.text, text, catalog="main")


@pytest.mark.parametrize(
    "text,word",
    [
        ("select 1 as order", "order"),
        ("select value d.group from [1] d", "group"),
        ("select a.order, a.group, a.set from t a", "order"),
        ("select 1;\r\nselect 1 as order", "order"),
    ],
)
def test_reserved_word_in_the_place_of_a_name_is_to_be_quoted(text: str, word: str) -> None:
    """A reserved word as a name is proposed in back-quotes, also if further ones follow."""
    assert hint_of(text) == f"{word} is a reserved word. If you mean a name, write it in back-quotes: `{word}`"


@pytest.mark.parametrize("text", ["select a from t where and b", "select order(1)", "select * from t t2 on"])
def test_reserved_word_in_another_place_is_not_to_be_quoted(text: str) -> None:
    """Where back-quotes lead to another error, or make a function of a word, no hint proposes them."""
    assert "back-quotes" not in hint_of(text)


@pytest.mark.parametrize(
    "text,hint",
    [
        ("selec value 1", "Did you mean SELECT instead of selec?"),
        ("select 1 selec; selec value 1", "Did you mean SELECT instead of selec?"),
        ("select o.id from sales.orders in x", ""),
    ],
)
def test_misspelt_keyword_is_named_if_the_statement_is_right_with_it(text: str, hint: str) -> None:
    """A keyword is proposed for the word before the error, if the text then has no syntax error."""
    assert hint_of(text) == hint


def test_long_text_is_not_parsed_again() -> None:
    """In a text that is too long to be parsed again, a reserved word is proposed without that."""
    text = f"select 1 as order, {' ' * PARSED_CHARS} from from"

    assert "`order`" in hint_of(text)


@pytest.mark.parametrize(
    "message", ["", "ASX1079: no place", "x (in line 9, at column 1)", "x (in line 1, at column 99)"]
)
def test_error_without_a_place_in_the_text_has_no_hint(message: str) -> None:
    """A message without a place, or with one outside of the text, has no hint."""
    assert hint_of_text(message, "select cast(1 as int)", catalog="main") == ""


def test_view_of_another_dialect_is_answered_by_the_command_that_has_its_text() -> None:
    """A view without text of SQL++ is named by the command that shows its dialect."""
    message = "ASX1079: Compilation error: View hot has no SQL++ text: query it in an engine that has its dialect"

    assert hint_of_text(message, "select * from s.hot h", catalog="main").startswith(
        "'limnos show PATH' has the view's"
    )
