"""Hints below an error of the worksheet: reserved words used as identifiers, and datasets with a similar name.

May import `model`, `names`, `services`, `sqlpp` and this package's shared modules. Has no business rules: it compares a
missing name with the names visible to the caller.
"""

from __future__ import annotations

import re
from contextlib import suppress
from difflib import get_close_matches
from typing import Final

from limnos.http.console.page_requests import PageRequest
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.names.errors import InvalidName
from limnos.services.catalog.children import ChildrenRequest
from limnos.services.request.request_scope import RequestScope
from limnos.sqlpp.tokens import KEYWORDS

COMPARED_MAX: Final = 1_000
"""How many names of a dataverse are compared with a missing one."""
_WORD: Final = re.compile(r'Encountered "(\w+)" at column')
_DATASET: Final = re.compile(r"Cannot find dataset (\S+) in dataverse (\S+) nor")


async def hint_of(page_request: PageRequest, message: str) -> str:
    """Return a sentence that helps with an error of a statement; empty if no hint applies."""
    word = _WORD.search(message)
    if word is not None and word[1].upper() in KEYWORDS:
        return f"{word[1]} is a reserved word. If you mean a name, write it in back-quotes: `{word[1]}`"
    dataset = _DATASET.search(message)
    if dataset is None:
        return ""
    similar: list[str] = []
    with suppress(LimnosError, InvalidName):
        similar = get_close_matches(dataset[1], await _names(page_request, dataverse=dataset[2]))
    if similar:
        return f"Did you mean {' or '.join(similar)}?"
    return "All datasets that you may read: SELECT d.DataverseName, d.DatasetName FROM Metadata.`Dataset` AS d;"


async def _names(page_request: PageRequest, *, dataverse: str) -> list[str]:
    """Return the names of a dataverse's objects that are visible to the caller. Raises as `children_list`."""
    defaults = page_request.ctx.services.defaults
    scope = RequestScope(defaults.metalake, defaults.sqlpp_catalog)
    request = ChildrenRequest(size=COMPARED_MAX)
    page = await page_request.children(scope, tuple(dataverse.split(".")), request=request)
    return [each.name for each in page.children if each.kind is not Kind.NAMESPACE]
