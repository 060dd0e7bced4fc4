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

from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.sqlpp.language.hints import hint_of_text
from limnos.services.catalog.children import ChildrenRequest
from limnos.services.request.request_scope import RequestScope

COMPARED_MAX: Final = 1_000
"""The maximum number of names of a dataverse that are compared with a missing one."""
_READ_ONLY: Final = "statement is not supported in read-only mode"
_DATASET: Final = re.compile(r"Cannot find dataset (\S+) in dataverse (\S+) nor")


async def hint_of(page_request: PageRequest, message: str, *, text: str) -> str:
    """Return a sentence that helps with an error of the statements `text`; empty if no hint applies."""
    if _READ_ONLY in message:
        return 'The worksheet only reads. To run a change, choose "Reads and changes" beside the button Run'
    if hint := hint_of_text(message, text, catalog=page_request.ctx.services.defaults.sqlpp_catalog):
        return hint
    dataset = _DATASET.search(message)
    if dataset is None:
        return ""
    similar: list[str] = []
    with suppress(LimnosError):
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
