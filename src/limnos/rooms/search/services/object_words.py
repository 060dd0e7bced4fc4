# SPDX-License-Identifier: Apache-2.0
"""Words of objects: extracts the words of an object's record and document, and matches them with a query's words.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from limnos.formats.iceberg.descriptions import ColumnDescription, columns_of, summary_of, texts_of
from limnos.model.entities import Node
from limnos.model.kinds import CONTAINERS, Kind
from limnos.rooms.search.services.words import (
    CONTAINER_MARK,
    ObjectWords,
    field_words,
    is_met,
    question_words,
    words_of,
)
from limnos.services.request.table_formats import ICEBERG

_NO_LETTERS: Final = {code: None for code in range(128) if not chr(code).isalnum()}
PARSED_BYTES: Final = 32 << 10
"""The size of documents in bytes that is parsed before other requests run; a larger document is parsed in a thread."""
EXCERPT_CHARS: Final = 80
"""The maximum length of the excerpt of a matching comment, in characters."""
_BEFORE_WORD: Final = 30


class WordMatch(NamedTuple):
    """The match of a word: the field (`name`, `above` for the name of an ancestor, `column` or `comment`) and its text,
    which is an excerpt for a comment.
    """

    where: str
    text: str


def index_name(words: str, kind: Kind) -> str:
    """Return the words of a name as indexed.

    Each word of a container's name is indexed twice, once prefixed with `CONTAINER_MARK`, so that a search can find
    containers without reading all objects that have the word.
    """
    if kind not in CONTAINERS:
        return words
    return " ".join((words, *(f"{CONTAINER_MARK}{word}" for word in words.split(" ") if word)))


def has_columns(kind: Kind, table_format: str) -> bool:
    """Return whether metadata documents of this kind and format contain columns and a comment."""
    return kind is Kind.VIEW or (kind is Kind.TABLE and table_format == ICEBERG)


def object_words(node: Node, body: bytes | None) -> ObjectWords:
    """Return the words of an object for the search index. `body` is its metadata document; None if it has none."""
    texts = [own] if (own := getattr(node.record, "comment", None)) else []
    columns: list[str] = []
    if body is not None and has_columns(node.kind, node.format):
        columns, comments = texts_of(body)
        texts += comments
    name, column, comment = field_words([node.name]), field_words(columns), field_words(texts)
    return ObjectWords(name.text, column.text, comment.text, name.single | column.single | comment.single)


def match_words(
    words: tuple[str, ...], node: Node, *, above: tuple[str, ...], body: bytes | None
) -> list[WordMatch] | None:
    """Return the best match of each word: in the name, an ancestor, a column or a comment. None if a word has no match.

    At least one word must match the object itself. One column or comment that has all words outside of the name is
    better than several texts with one word each.
    """
    name, ancestors = _name_words(node.name), [(each, _name_words(each)) for each in above]
    matches: list[WordMatch | None] = []
    for word in words:
        ancestor = next((each for each, text in ancestors if is_met(word, text)), None)
        if is_met(word, name):
            matches.append(WordMatch("name", node.name))
        else:
            matches.append(None if ancestor is None else WordMatch("above", ancestor))
    if all(matches) and any(each is not None and each.where == "name" for each in matches):
        return [each for each in matches if each is not None]
    own_texts = _OwnTexts(node, body)
    is_met_above = all(matches)  # ancestors match all words; one word must match the object, too
    open_places = [place for place, match in enumerate(matches) if match is None or is_met_above]
    open_words = [words[place] for place in open_places]
    common = own_texts.match(open_words, question=words) if len(open_words) > 1 else None
    for place in open_places:
        matches[place] = common or own_texts.match([words[place]], question=words) or matches[place]
        if matches[place] is None:
            return None
    complete_matches = [each for each in matches if each is not None]
    return complete_matches if any(each.where != "above" for each in complete_matches) else None


@lru_cache(maxsize=4_096)
def _name_words(name: str) -> str:
    return words_of([name])


class _OwnTexts:
    """The column names and comments of an object. A cheap check avoids splitting texts that cannot contain a word."""

    def __init__(self, node: Node, body: bytes | None) -> None:
        self.columns: list[ColumnDescription] = []
        self.comments = [comment] if (comment := getattr(node.record, "comment", None)) else []
        if body is not None and has_columns(node.kind, node.format):
            self.columns = columns_of(body)
            self.comments += [summary_of(body).comment or "", *(each.doc for each in self.columns if each.doc)]
        self.names = [each.name.rpartition(".")[2] for each in self.columns]
        self._names, self._comments = _letters_of(self.names), _letters_of(self.comments)

    def match(self, words: Sequence[str], *, question: tuple[str, ...]) -> WordMatch | None:
        """Return the best text that has all of some words: a column, else a comment; None if no text has them.

        A column whose name consists of the words of the whole query is the best one, then a column that has all of
        them.
        """
        column = self._column(words, question)
        if column is not None:
            return WordMatch("column", column)
        if self._comments is None or all(word in self._comments for word in words):
            for text in self.comments:
                if _has_all(words, text):
                    return WordMatch("comment", _excerpt(text, words[0]))
        return None

    def _column(self, words: Sequence[str], question: tuple[str, ...]) -> str | None:
        if self._names is not None and not all(word in self._names for word in words):
            return None
        best, has_whole_question, whole_name = None, False, "".join(question)
        for column, name in zip(self.columns, self.names, strict=True):
            letters = _letters_of([name])
            own_name = "".join(question_words([name])) if letters is None else letters
            if own_name == whole_name and _has_all(words, name):
                return column.name
            if not has_whole_question and (best is None or len(words) < len(question)) and _has_all(words, name):
                has_whole_question = _has_all(question, name)
                best = column.name if best is None or has_whole_question else best
        return best


def _has_all(words: Sequence[str], text: str) -> bool:
    letters = _letters_of([text])
    if letters is not None and not all(word in letters for word in words):
        return False
    split = words_of([text])
    return all(is_met(word, split) for word in words)


def _excerpt(text: str, word: str) -> str:
    """Return a part of a text around a word, in one line."""
    line = " ".join(text.split())
    if len(line) <= EXCERPT_CHARS:
        return line
    at = max(line.lower().find(word), 0)
    begin = max(at - _BEFORE_WORD, 0)
    if begin:
        begin = line.find(" ", begin, at) + 1 or begin
    end = begin + EXCERPT_CHARS - 2
    return f"{'…' if begin else ''}{line[begin:end].rstrip()}{'…' if end < len(line) else ''}"


def _letters_of(texts: Iterable[str]) -> str | None:
    """Return the letters and digits of ASCII texts in lower case; every word of the texts is a substring of the result.

    None for texts that are not ASCII, since case folding may depend on neighbouring letters.
    """
    joined_text = "\n".join(texts)
    return joined_text.lower().translate(_NO_LETTERS) if joined_text.isascii() else None
