# SPDX-License-Identifier: Apache-2.0
"""Matching of a query's words with objects: it gives the same result as the words that the index stores."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.model.records import TableRecord
from limnos.rooms.search.services.joined_texts import JoinedTexts
from limnos.rooms.search.services.object_words import match_words, object_words
from limnos.rooms.search.services.words import is_met, question_words, words_of
from limnos.services.request.table_formats import ICEBERG

LETTERS = "aAbB1_-. Üüßée\u0301ΣςIıİ가\u1100\u1161中"
TEXT = st.text(LETTERS, min_size=1, max_size=8)
NODE = Node(
    id=7,
    zone=3,
    parent_id=2,
    kind=Kind.TABLE,
    name_space="",
    name="t",
    format=ICEBERG,
    implicit=False,
    created_by="ana",
    created_at=1,
    modified_by=None,
    modified_at=None,
    revision=1,
    record=TableRecord(comment=None, properties={}),
)


def document(columns: list[tuple[str, str]], comment: str) -> bytes:
    """Return metadata of a table with columns, given by name and documentation."""
    fields = [{"id": at, "name": name, "doc": doc, "type": "string"} for at, (name, doc) in enumerate(columns)]
    schema = {"schema-id": 0, "type": "struct", "fields": fields}
    properties = {"comment": comment}
    return json.dumps({"current-schema-id": 0, "schemas": [schema], "properties": properties}).encode()


@given(TEXT, st.lists(TEXT, max_size=3), st.lists(st.tuples(TEXT, TEXT | st.just("")), max_size=3), TEXT, st.data())
def test_object_matches_its_indexed_words_and_ancestor_names(
    name: str, above: list[str], columns: list[tuple[str, str]], comment: str, data: st.DataObject
) -> None:
    """An object matches if each word is one of its indexed words or occurs in a name above it, and at least one is its
    own.
    """
    query_words, length = data.draw(st.lists(TEXT)), data.draw(st.integers(1, 8))
    node = with_fields(NODE, name=name, record=replace(NODE.record, comment=comment[:3]))
    body = document(columns, comment)
    own = object_words(node, body)
    indexed = [word for text in own.texts for word in text.split()]
    words = question_words([*query_words, *(word[:length] for word in indexed[::3])])
    is_own = [any(is_met(word, text) for text in own.texts) for word in words]
    is_above = [any(is_met(word, words_of([each])) for each in above) for word in words]

    matches = match_words(words, node, above=tuple(above), body=body)

    assert (matches is not None) == (any(is_own) and all(map(max, is_own, is_above))), (words, own)
    for word, match in zip(words, matches or (), strict=False):
        in_name = is_met(word, own.name)
        assert match.where in {"name", "above", "column", "comment"}
        assert not in_name or match.where == "name"
        assert match.where != "column" or is_met(word, own.columns)
        assert match.where != "comment" or is_met(word, own.comment)


def test_column_with_all_words_ranks_highest() -> None:
    """A column with all words ranks above several columns with one word each. A column with exactly the query's words
    ranks highest.
    """
    names = ["arr_time", "dep_delay", "arr_delay_minutes", "arr_delay"]
    body = document([(name, "") for name in names], "Flights: delays at arrival")

    for query, expected in (
        ("arr_delay", [("column", "arr_delay")] * 2),
        ("delay_min", [("column", "arr_delay_minutes")] * 2),
        ("arr_dep", [("column", "arr_time"), ("column", "dep_delay")]),
        ("delays flights", [("comment", "Flights: delays at arrival")] * 2),
    ):
        assert match_words(question_words([query]), NODE, above=("main",), body=body) == expected
    assert match_words(("arr", "delay"), NODE, above=(), body=document([("arrdelay", "")], "")) is None
    stats = with_fields(NODE, name="arr_stats")
    assert match_words(("arr", "delay"), stats, above=(), body=body) == [("name", "arr_stats"), ("column", "arr_delay")]


def test_long_comment_excerpt_contains_the_word() -> None:
    """The excerpt of a long comment contains the word, and marks where the comment is cut."""
    body = document([], f"{'Flights and their times. ' * 40}Observed weather\nby the hour. {'Sources follow. ' * 40}")

    (match,) = match_words(("weath",), NODE, above=(), body=body) or ()

    assert "Observed weather by the hour." in match.text
    assert (match.text[0], match.text[-1], len(match.text) <= 80) == ("…", "…", True)
    unbroken = document([], f"{'x' * 200}.weather {'y' * 200}")
    assert ".weather " in (match_words(("weath",), NODE, above=(), body=unbroken) or ())[0].text


@given(st.lists(st.lists(TEXT, max_size=3), max_size=6), TEXT)
def test_scan_of_joined_texts_returns_each_matching_text_once(texts: list[list[str]], query: str) -> None:
    """A scan of joined texts finds exactly the texts that have a word with the given prefix, each once and in order."""
    each = [words_of(text) for text in texts]
    joined = JoinedTexts(each)

    for word in question_words([query, *(part[:2] for text in each for part in text.split())]):
        assert joined.having(word) == [place for place, text in enumerate(each) if is_met(word, text)]
    assert joined.words() == {word for text in each for word in text.split()}
