# SPDX-License-Identifier: Apache-2.0
"""Parsing of queries: words, filters and paths; invalid queries are refused."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.rooms.search.services.questions import SEARCHED, TEXT_MAX, question_of


def test_query_is_parsed_into_words_and_filters() -> None:
    """Quotes group words, known keys become filters, and a colon after any other word belongs to the word."""
    question = question_of('Flights "New York" kind:table tag:level=high owner:etl in:main.raw a:b format:Lance')

    assert question.words == ("flights", "new york", "a:b")
    assert (question.kinds, question.tags, question.owner) == ((Kind.TABLE,), (("level", "high"),), "etl")
    assert question.other_keys == ("a",)
    assert question_of("https://example.org/a b:c d:").other_keys == ("b",)
    assert (question.below, question.table_format, question.path) == (("main", "raw"), "lance", ())


def test_query_may_be_a_path_or_id_with_separate_filters() -> None:
    """A text without filters may be a path or an id. Filters may also be passed as separate parameters."""
    assert question_of("main.`a b`.T").path == ("main", "a b", "T")
    assert question_of("1042").number == 1042
    assert question_of("t", {"kind": "view", "tag": "pii", "in": None}).tags == (("pii", None),)
    assert question_of("tag:pii").words == ()
    assert Kind.METALAKE not in SEARCHED


@pytest.mark.parametrize(
    "text",
    ["", "  ", '""', "in:main", "format:lance", "kind:thing x", "in:a..b x", "x" * (TEXT_MAX + 1), "a " * 11],
)
def test_empty_or_invalid_query_is_bad_request(text: str) -> None:
    """An empty query, an unknown kind, a bad path, and exceeded limits are BadRequest."""
    with pytest.raises(BadRequest):
        question_of(text)


@pytest.mark.parametrize("text", ["in:main", "format:lance"])
def test_filter_without_a_required_word_is_explained(text: str) -> None:
    """The message for `in:` or `format:` alone says that a word must accompany it."""
    with pytest.raises(BadRequest, match=rf"^{text.partition(':')[0]}: needs a word, tag:, owner: or kind: beside it"):
        question_of(text)
