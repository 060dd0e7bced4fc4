# SPDX-License-Identifier: Apache-2.0
"""Search queries: the words and filters of a query, parsed from its text.

Pure. A query consists of words and `key:value` pairs; double quotes join several words into one. Case does not matter
in words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from limnos.model.errors import BadRequest
from limnos.model.kinds import KINDS, Kind
from limnos.model.privileges import escape_percent
from limnos.names import display
from limnos.names.errors import InvalidName
from limnos.names.parts import fold

TEXT_MAX: Final = 500
"""The maximum length of a query, in characters."""
WORDS_MAX: Final = 10
NUMBER_DIGITS_MAX: Final = 16
SEARCHED: Final = tuple(kind for kind in KINDS.values() if kind.is_node and kind is not Kind.METALAKE)
"""The kinds that a search can find."""
_KINDS: Final = {kind.word: kind for kind in SEARCHED} | {"schema": Kind.NAMESPACE}
_TOKEN: Final = re.compile(r'(?:(?P<key>[a-z]+):)?(?:"(?P<quoted>[^"]*)"?|(?P<bare>[^\s"]+))')
FILTERS: Final = ("tag", "owner", "kind", "in", "format")
"""The keys of filters."""


class SearchQuestion(NamedTuple):
    """A parsed search query.

    - `words`: case-folded words, all of which must match.
    - `path`: the text parsed as a path; empty if it is not a path.
    - `number`: the text parsed as an object's id; None if it is not an integer.
    - `tags`: names of tags, each with a value or None.
    - `owner`: the name of a user or group.
    - `kinds`: the kinds to find.
    - `table_format`: the format of tables, such as `iceberg`.
    - `below`: the path of an ancestor, from the catalog down.
    - `other_keys`: keys such as `column` that are not filters; they are searched as words.
    """

    text: str = ""
    words: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    number: int | None = None
    tags: tuple[tuple[str, str | None], ...] = ()
    owner: str | None = None
    kinds: tuple[Kind, ...] = SEARCHED
    table_format: str | None = None
    below: tuple[str, ...] = ()
    other_keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The words joined to one name, for the tiers that compare whole names."""
        return " ".join(self.words)

    @property
    def has_filter(self) -> bool:
        """Whether the query has tags or an owner as filters, which select objects even without words."""
        return bool(self.tags) or self.owner is not None


def question_of(text: str, filters: Mapping[str, str | None] | None = None) -> SearchQuestion:
    """Parse a query. `filters` are values of keys given in addition to the text, as `{"kind": "table"}`.

    Raises BadRequest for a query that is empty or too long, has too many words, or has an invalid value of a key.
    """
    if len(text) > TEXT_MAX:
        raise BadRequest(f"A search may have at most {TEXT_MAX} characters, not {len(text)}")
    words: list[str] = []
    argument = [(key, value) for key, value in (filters or {}).items() if value]
    other_keys: list[str] = []
    has_key = False
    for match in _TOKEN.finditer(text):
        key, value = match["key"], match["bare"] if match["quoted"] is None else match["quoted"]
        if key in FILTERS:
            has_key = True
            argument.append((key, value))
        elif value.strip():
            words.append(fold(value if key is None else f"{key}:{value}"))
            if key is not None and not value.startswith("//"):  # the other ones are URLs
                other_keys.append(key)
    if len(words) > WORDS_MAX:
        raise BadRequest(f"A search may have at most {WORDS_MAX} words, not {len(words)}")
    plain = "" if has_key else text.strip()
    is_number = plain.isascii() and plain.isdecimal() and len(plain) <= NUMBER_DIGITS_MAX
    question = SearchQuestion(
        text=plain,
        words=tuple(words),
        path=_path(plain),
        number=int(plain) if is_number else None,
        other_keys=tuple(dict.fromkeys(other_keys)),
    )
    for key, value in argument:
        question = _with_filter(question, key, value=value)
    if not question.words and not question.has_filter and question.kinds == SEARCHED:
        if argument:
            key, value = argument[0]
            raise BadRequest(
                f"{key}: needs a word, tag:, owner: or kind: beside it, as '{key}:{escape_percent(value)} kind:table'"
            )
        raise BadRequest("Give a word, a path, or tag:, owner: or kind: with a value")
    return question


def _path(text: str) -> tuple[str, ...]:
    try:
        return display.parse(text) if text else ()
    except InvalidName:
        return ()


def _with_filter(question: SearchQuestion, key: str, *, value: str) -> SearchQuestion:
    match key:
        case "tag":
            name, sign, tag_value = value.partition("=")
            return question._replace(tags=(*question.tags, (name, tag_value if sign else None)))
        case "owner":
            return question._replace(owner=value)
        case "format":
            return question._replace(table_format=value.lower())
        case "kind":
            if value not in _KINDS:
                raise BadRequest(f"'{value[:50]}' is not a kind that can be searched: kinds are {', '.join(_KINDS)}")
            return question._replace(kinds=(_KINDS[value],))
        case _:
            parts = _path(value)
            if not parts:
                raise BadRequest(f"'{value[:50]}' is not a path to search below: write it as main.raw.nyc")
            return question._replace(below=parts)
