# SPDX-License-Identifier: Apache-2.0
"""Hints below an error of the worksheet: misspelt keywords, reserved words used as identifiers, names that begin with
the catalog, datasets with a similar name, and changes in the read-only mode.

Has no business rules: it compares a missing name with the names visible to the caller.
"""

from __future__ import annotations

import re
from contextlib import suppress
from difflib import get_close_matches
from typing import Final

from limnos.http.console.page_requests import PageRequest
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.services.catalog.children import ChildrenRequest
from limnos.services.request.request_scope import RequestScope
from limnos.sqlpp.tokens import KEYWORDS

COMPARED_MAX: Final = 1_000
"""The maximum number of names of a dataverse that are compared with a missing one."""
SEARCHED_CHARS: Final = 300
"""How many characters before an error are searched for a name: the search takes quadratic time."""
_WORD: Final = re.compile(r'Encountered "(\w+)" at column')
_DOT: Final = re.compile(r'In line (\d+) >>.*<< Encountered "\." at column (\d+)', re.DOTALL)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_PART: Final = r"(?:`(?:[^`\\]|``|\\.)*`|\w+)"
_PATH_BEFORE: Final = re.compile(rf"({_PART})(?:\s*\.\s*{_PART})*\s*$")
_WORD_AFTER: Final = re.compile(r"\.\s*(\w+)")
_READ_ONLY: Final = "statement is not supported in read-only mode"
_LAST_WORD: Final = re.compile(r"(\w+)\s*$")
_DATAVERSE: Final = re.compile(r"Cannot find dataverse with name (\S+)")
_DATASET: Final = re.compile(r"Cannot find dataset (\S+) in dataverse (\S+) nor")


async def hint_of(page_request: PageRequest, message: str, *, text: str) -> str:
    """Return a sentence that helps with an error of the statements `text`; empty if no hint applies."""
    if _READ_ONLY in message:
        return 'The worksheet only reads. To run a change, choose "Reads and changes" beside the button Run'
    catalog = page_request.ctx.services.defaults.sqlpp_catalog
    dot = _DOT.search(message)
    if dot is not None:
        return _dot_hint(text, catalog, line=int(dot[1]), column=int(dot[2]))
    word = _WORD.search(message)
    if word is not None and word[1].upper() in KEYWORDS:
        return _keyword_hint(word[1], text)
    dataverse = _DATAVERSE.search(message)
    if dataverse is not None and dataverse[1].split(".")[0] == catalog:
        return _catalog_hint(catalog)
    dataset = _DATASET.search(message)
    if dataset is None:
        return ""
    similar: list[str] = []
    with suppress(LimnosError):
        similar = get_close_matches(dataset[1], await _names(page_request, dataverse=dataset[2]))
    if similar:
        return f"Did you mean {' or '.join(similar)}?"
    return "All datasets that you may read: SELECT d.DataverseName, d.DatasetName FROM Metadata.`Dataset` AS d;"


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


async def _names(page_request: PageRequest, *, dataverse: str) -> list[str]:
    """Return the names of a dataverse's objects that are visible to the caller. Raises as `children_list`."""
    defaults = page_request.ctx.services.defaults
    scope = RequestScope(defaults.metalake, defaults.sqlpp_catalog)
    request = ChildrenRequest(size=COMPARED_MAX)
    page = await page_request.children(scope, tuple(dataverse.split(".")), request=request)
    return [each.name for each in page.children if each.kind is not Kind.NAMESPACE]
