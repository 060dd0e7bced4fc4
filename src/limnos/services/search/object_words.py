"""Words of objects: extracts the words of an object's record and document, and matches them with a query's words.

May import the layers below. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from limnos.formats.iceberg.descriptions import ColumnDescription, columns_of, summary_of
from limnos.model.entities import Node
from limnos.model.kinds import CONTAINERS, Kind
from limnos.services.request.table_formats import ICEBERG
from limnos.services.search.words import CONTAINER_MARK, ObjectWords, is_met, words_of

_NO_LETTERS: Final = {code: None for code in range(128) if not chr(code).isalnum()}
PARSED_BYTES: Final = 32 << 10
"""The size of documents in bytes that is parsed before other requests run; a larger document is parsed in a thread."""


class WordMatch(NamedTuple):
    """The match of a word: the field (`name`, `above` for the name of an ancestor, `column` or `comment`) and its
    text.
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
    own = _OwnTexts(node, body)
    is_met_above = all(matches)  # ancestors match all words; one word must match the object, too
    for place, word in enumerate(words):
        if matches[place] is None or is_met_above:
            matches[place] = own.match(word) or matches[place]
            if matches[place] is None:
                return None
    whole = [each for each in matches if each is not None]
    return whole if any(each.where != "above" for each in whole) else None


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

    def match(self, word: str) -> WordMatch | None:
        """Return the first column that matches a word, else the comment; None if there is no match."""
        if self._names is None or word in self._names:
            for column, name in zip(self.columns, self.names, strict=True):
                if is_met(word, words_of([name])):
                    return WordMatch("column", column.name)
        is_possible = self._comments is None or word in self._comments
        if is_possible and any(is_met(word, words_of([each])) for each in self.comments):
            return WordMatch("comment", "")
        return None


def _letters_of(texts: Iterable[str]) -> str | None:
    """Return the letters and digits of ASCII texts in lower case; every word of the texts is a substring of the result.

    None for texts that are not ASCII, since case folding may depend on neighbouring letters.
    """
    joined = "\n".join(texts)
    return joined.lower().translate(_NO_LETTERS) if joined.isascii() else None
