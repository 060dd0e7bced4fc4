# SPDX-License-Identifier: Apache-2.0
"""Hints about an error of statements, from its message and their text: words of other dialects, misspelt keywords,
reserved words used as identifiers, and names that begin with the catalog.

Has no business rules, and reads no names of a lake. A correction is proposed only if the corrected text has no syntax
error.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from limnos.names.sqlpp import KEYWORDS
from limnos.rooms.sqlpp.language.dialects import advice_at
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.parser import parse

SEARCHED_CHARS: Final = 300
"""How many characters before an error are searched for a name: the search takes quadratic time."""
PARSED_CHARS: Final = 2_048
"""The size of a text of which corrections are parsed; in longer texts they are proposed without that."""
QUOTED_MAX: Final = 5
"""How many reserved words of a text are read as names."""
_PLACES: Final = (
    re.compile(r"\(in line (?P<line>\d+), at column (?P<column>\d+)\)"),
    re.compile(r"Lexical error at line (?P<line>\d+), column (?P<column>\d+)\."),
    re.compile(r"Syntax error: In line (?P<line>\d+) >>.*<< Encountered .* at column (?P<column>\d+)\.", re.DOTALL),
)
_WORD: Final = re.compile(r'Encountered "(\w+)" at column')
_DOT: Final = re.compile(r'In line (\d+) >>.*<< Encountered "\." at column (\d+)', re.DOTALL)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_PART: Final = r"(?:`(?:[^`\\]|``|\\.)*`|\w+)"
_PATH_BEFORE: Final = re.compile(rf"({_PART})(?:\s*\.\s*{_PART})*\s*$")
_WORD_AFTER: Final = re.compile(r"\.\s*(\w+)")
_LAST_WORD: Final = re.compile(r"(\w+)\s*$")
_DATAVERSE: Final = re.compile(r"Cannot find dataverse with name (\S+)")
_OTHER_VIEW: Final = re.compile(r"View \S+ has no SQL\+\+ text")


def hint_of_text(message: str, text: str, *, catalog: str) -> str:
    """Return a sentence that helps with an error of the statements `text`; empty if no hint applies. `catalog` is the
    one whose namespaces are dataverses.
    """
    offset = _offset(message, text)
    dot = _DOT.search(message)
    if dot is not None and (hint := _dot_hint(text, catalog, line=int(dot[1]), column=int(dot[2]))):
        return hint
    dataverse = _DATAVERSE.search(message)
    if dataverse is not None and dataverse[1].split(".")[0] == catalog:
        return _catalog_hint(catalog)
    if _OTHER_VIEW.search(message) is not None:
        return (
            "'limnos show PATH' has the view's dialect and text; its engine reads it, or CREATE VIEW makes one of SQL++"
        )
    if offset is not None and (advice := advice_at(text, offset, catalog=catalog)):
        return advice
    word = _WORD.search(message)
    if offset is not None and word is not None and word[1].upper() in KEYWORDS:
        return _keyword_hint(word[1], text, offset=offset)
    return ""


def _offset(message: str, text: str) -> int | None:
    """Return the position of an error in the text; None if the message has none, or the text no such place."""
    place = next((match for pattern in _PLACES if (match := pattern.search(message)) is not None), None)
    if place is None:
        return None
    begin = 0
    for _ in range(1, int(place["line"])):
        end = _LINE_END.search(text, begin)
        if end is None:
            return None
        begin = end.end()
    offset = begin + int(place["column"]) - 1
    return offset if offset <= len(text) else None


def _catalog_hint(catalog: str) -> str:
    return f"Names in statements begin below the catalog: leave out {catalog}"


def _reserved_hint(word: str) -> str:
    return f"{word} is a reserved word. If you mean a name, write it in back-quotes: `{word}`"


def _dot_hint(text: str, catalog: str, *, line: int, column: int) -> str:
    """Return the hints for an unexpected dot: the name before it may begin with the catalog, and the word after it may
    be reserved.
    """
    lines = _LINE_END.split(text)
    if not 0 < line <= len(lines):
        return ""
    whole = lines[line - 1]
    before, after = _PATH_BEFORE.search(whole[: column - 1][-SEARCHED_CHARS:]), _WORD_AFTER.match(whole[column - 1 :])
    hints: list[str] = []
    if before is not None and before[1].strip("`") == catalog:
        hints.append(_catalog_hint(catalog))
    if after is not None and after[1].upper() in KEYWORDS:
        hints.append(_reserved_hint(after[1]))
    return ". ".join(hints)


def _keyword_hint(word: str, text: str, *, offset: int) -> str:
    """Return the hint for an unexpected keyword: the word before it may be a misspelt keyword, or it may be a name."""
    word_match = _LAST_WORD.search(text[max(0, offset - SEARCHED_CHARS) : offset])
    if word_match is not None and word_match[1].upper() not in KEYWORDS:
        similar = get_close_matches(word_match[1].upper(), KEYWORDS, n=1, cutoff=0.8)
        start = offset - len(word_match[0])
        if similar and _is_valid(f"{text[:start]}{similar[0]}{text[start + len(word_match[1]) :]}"):
            return f"Did you mean {similar[0]} instead of {word_match[1]}?"
    is_call = text[offset + len(word) :].lstrip().startswith("(")
    return _reserved_hint(word) if not is_call and _is_valid(text, quoted=((offset, word),)) else ""


def _is_valid(text: str, *, quoted: tuple[tuple[int, str], ...] = ()) -> bool:
    """Return whether a text has no syntax error if the words at some places, and further reserved words that stand
    where a name belongs, are names. A long text is not read.
    """
    if len(text) > PARSED_CHARS:
        return True
    for _ in range(QUOTED_MAX):
        for start, word in reversed(quoted):
            if text[start : start + len(word)] != word:
                return False
            text = f"{text[:start]}`{word}`{text[start + len(word) :]}"
        try:
            parse(text)
        except SqlppError as error:
            following = _WORD.search(error.text)
            offset = _offset(error.text, text)
            if following is None or offset is None or following[1].upper() not in KEYWORDS:
                return False
            quoted = ((offset, following[1]),)
        else:
            return True
    return False
