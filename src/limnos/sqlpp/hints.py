# SPDX-License-Identifier: Apache-2.0
"""Hints about an error of statements, from its message and their text: misspelt keywords, reserved words used as
identifiers, and names that begin with the catalog.

Has no business rules, and reads no names of a lake.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from limnos.sqlpp.tokens import KEYWORDS

SEARCHED_CHARS: Final = 300
"""How many characters before an error are searched for a name: the search takes quadratic time."""
_WORD: Final = re.compile(r'Encountered "(\w+)" at column')
_DOT: Final = re.compile(r'In line (\d+) >>.*<< Encountered "\." at column (\d+)', re.DOTALL)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_PART: Final = r"(?:`(?:[^`\\]|``|\\.)*`|\w+)"
_PATH_BEFORE: Final = re.compile(rf"({_PART})(?:\s*\.\s*{_PART})*\s*$")
_WORD_AFTER: Final = re.compile(r"\.\s*(\w+)")
_LAST_WORD: Final = re.compile(r"(\w+)\s*$")
_DATAVERSE: Final = re.compile(r"Cannot find dataverse with name (\S+)")


def hint_of_text(message: str, text: str, *, catalog: str) -> str:
    """Return a sentence that helps with an error of the statements `text`; empty if no hint applies. `catalog` is the
    one whose namespaces are dataverses.
    """
    dot = _DOT.search(message)
    if dot is not None:
        return _dot_hint(text, catalog, line=int(dot[1]), column=int(dot[2]))
    word = _WORD.search(message)
    if word is not None and word[1].upper() in KEYWORDS:
        return _keyword_hint(word[1], text)
    dataverse = _DATAVERSE.search(message)
    return _catalog_hint(catalog) if dataverse is not None and dataverse[1].split(".")[0] == catalog else ""


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


def _keyword_hint(word: str, text: str) -> str:
    """Return the hint for an unexpected keyword: the word before it may be a misspelt keyword."""
    before = _LAST_WORD.search(text.partition(word)[0][-SEARCHED_CHARS:])
    if before is not None and before[1].upper() not in KEYWORDS:
        similar = get_close_matches(before[1].upper(), KEYWORDS, n=1, cutoff=0.8)
        if similar:
            return f"Did you mean {similar[0]} instead of {before[1]}?"
    return _reserved_hint(word)
