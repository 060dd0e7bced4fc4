"""Words of objects: the words of an object's record and document, and their matches with a query's words.

May import the rooms below. Pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.formats.iceberg.descriptions import columns_of, summary_of
from limnos.model.entities import Node
from limnos.model.kinds import CONTAINERS, Kind
from limnos.services.request.table_formats import ICEBERG
from limnos.services.search.words import CONTAINER_MARK, ObjectWords, is_met, words_of

PARSED_BYTES: Final = 32 << 10
"""The size of documents in bytes that is parsed before other requests run; a larger document is parsed in a thread."""


class WordMatch(NamedTuple):
    """The match of a word: the field `name`, `above` (the name of an ancestor), `column` or `comment`, and its text."""

    where: str
    text: str


def index_name(words: str, kind: Kind) -> str:
    """Return the words of a name in the form that is indexed: each word of a container's name is there twice, once with
    `CONTAINER_MARK`, so that containers are found without reading all objects that have the word.
    """
    if kind not in CONTAINERS:
        return words
    return " ".join((words, *(f"{CONTAINER_MARK}{word}" for word in words.split(" ") if word)))


def has_columns(kind: Kind, table_format: str) -> bool:
    """Return whether documents of such objects contain columns and a comment."""
    return kind is Kind.VIEW or (kind is Kind.TABLE and table_format == ICEBERG)


def object_words(node: Node, body: bytes | None) -> ObjectWords:
    """Return the words of an object. `body` is its document; None if it has none."""
    texts = [comment] if (comment := getattr(node.record, "comment", None)) else []
    columns = []
    if body is not None and has_columns(node.kind, node.format):
        texts += [summary_of(body).comment or ""]
        columns = columns_of(body)
        texts += [column.doc for column in columns if column.doc]
    return ObjectWords(
        words_of([node.name]), words_of(column.name.rpartition(".")[2] for column in columns), words_of(texts)
    )


def match_words(
    words: tuple[str, ...], node: Node, *, above: tuple[str, ...], body: bytes | None
) -> list[WordMatch] | None:
    """Return the best match of each word: in the name, an ancestor, a column or a comment. None if a word has no match.

    At least one word must match the object itself.
    """
    name, ancestors = words_of([node.name]), [(each, words_of([each])) for each in above]
    matches: list[WordMatch | None] = []
    for word in words:
        ancestor = next((each for each, text in ancestors if is_met(word, text)), None)
        if is_met(word, name):
            matches.append(WordMatch("name", node.name))
        else:
            matches.append(None if ancestor is None else WordMatch("above", ancestor))
    if all(matches) and any(each is not None and each.where == "name" for each in matches):
        return [each for each in matches if each is not None]
    own = object_words(node, body)
    is_met_above = all(matches)  # ancestors match all words; one word must match the object, too
    for place, word in enumerate(words):
        if matches[place] is None or is_met_above:
            matches[place] = _own_match(word, own, body=body) or matches[place]
    whole = [each for each in matches if each is not None]
    is_own = any(each.where != "above" for each in whole)
    return whole if len(whole) == len(words) and is_own else None


def _own_match(word: str, own: ObjectWords, *, body: bytes | None) -> WordMatch | None:
    """Return the match of a word in an object's columns or comment; None if there is none."""
    if is_met(word, own.columns):
        return WordMatch("column", _column(word, body or b""))
    return WordMatch("comment", "") if is_met(word, own.comment) else None


def _column(word: str, body: bytes) -> str:
    """Return the full name of the first column that matches a word."""
    return next((each.name for each in columns_of(body) if is_met(word, words_of([each.name.rpartition(".")[2]]))), "")
