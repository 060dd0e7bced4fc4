# SPDX-License-Identifier: Apache-2.0
"""Words of names and texts, and how words of a query match them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.rooms.search.services import words
from limnos.rooms.search.services.words import WORD_MAX, _text_words, field_words, is_met, question_words, words_of


@pytest.mark.parametrize(
    "name, query",
    [
        ("flight_id", "flightid"),
        ("flight_id", "id"),
        ("flightId", "flight"),
        ("flightId", "FLIGHT_ID"),
        ("HTTPServer2", "server"),
        ("HTTPServer2", "http"),
        ("orders-2024.eu", "2024"),
        ("orders 2024", "orders2024"),
        ("Größe", "GRÖSSE"),
        ("таблица_рейсов", "рейс"),
        ("flights", "fl"),
    ],
)
def test_name_parts_match_by_prefix(name: str, query: str) -> None:
    """Names are split at separators, digits and capitals. The parts, runs of adjacent parts and the whole name match by
    prefix.
    """
    text = words_of([name])

    assert all(is_met(word, text) for word in question_words([query])), text


@pytest.mark.parametrize("name, query", [("flights", "lights"), ("flight_id", "idx"), ("a b", "abc")])
def test_inner_longer_and_missing_words_do_not_match(name: str, query: str) -> None:
    """A word inside another word, a longer word and a missing word do not match."""
    assert not all(is_met(word, words_of([name])) for word in question_words([query]))


def test_word_length_is_bounded_in_names_and_queries() -> None:
    """Overlong words are truncated in names and in queries alike, words of one letter are not searched, and each word
    occurs once.
    """
    long = "x" * 200

    assert words_of([long]) == "x" * WORD_MAX
    assert is_met(question_words([long])[0], words_of([long]))
    assert question_words(["a", "b_c", "id-id"]) == ("id",)
    assert words_of(["id", "ID", ""]) == "id"


@given(st.lists(st.text(alphabet="ab1_- .\n\tA\u00e4", max_size=80), max_size=12))
def test_texts_that_are_split_all_at_once_have_the_words_of_each(texts: list[str]) -> None:
    """Short ASCII texts without capitals, which are split together, have the same words as when split one by one."""
    each = {word for text in texts for kind in _text_words(text) for word in kind}

    assert set(words_of(texts).split(" ")) - {""} == each - {""}


def test_texts_that_are_split_together_keep_their_own_words_when_split_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a list of texts are cached, those of a long list are not; words with digits have their parts."""
    monkeypatch.setattr(words, "CACHED_LIST_CHARS", 30)
    split = words._plain_list_words
    split.cache_clear()
    short, long = ["gate7_id", "flight"], [f"gate{number}_of_flight" for number in range(3)]

    for _ in range(2):
        assert set(words_of(short).split(" ")) == {"gate7", "gate", "7", "id", "gate7id", "flight"}
        assert set(words_of(long).split(" ")) >= {"gate0", "gate2", "of", "flight", "gate2offlight", "0", "2"}
    assert (split.cache_info().hits, split.cache_info().currsize) == (1, 1)


def test_joined_words_are_those_that_only_several_words_make() -> None:
    """A text without its separators is a joined word, unless a text has it as a word of its own."""
    for texts in (["flight_id", "gate 7"], ["Flight_ID", "gate 7"]):
        words = field_words(texts)
        assert (set(words.single), set(words.joined)) == ({"flight", "id", "gate", "7"}, {"flightid", "gate7"})
    for texts in (["flight_id", "flightid"], ["flight_id", "FLIGHTID"], ["flightid", "flight_id"]):
        words = field_words(texts)
        assert (set(words.single), sorted(words.text.split(" "))) == (
            {"flight", "id", "flightid"},
            ["flight", "flightid", "id"],
        )
    words = field_words(["flightId", "x1y2"])
    assert sorted(words.text.split(" ")) == sorted(words.single)
