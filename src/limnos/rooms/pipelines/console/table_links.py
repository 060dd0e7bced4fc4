# SPDX-License-Identifier: Apache-2.0
"""Links from a run to the tables that its steps read and write, where the caller may see them.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from limnos.model.errors import LimnosError
from limnos.names import display
from limnos.names.errors import InvalidName
from limnos.names.path import Levels
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.frame import Link
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.services.lookup.visibility import visible_kinds
from limnos.services.request.request_scope import RequestScope

LINKS_MAX: Final = 200
"""The maximum number of names that are looked up; further ones have no link."""


async def table_links(page_request: PageRequest, metalake: str, *, names: Iterable[str]) -> dict[str, str]:
    """Return the URLs of pages by the names of tables and views. Other data and hidden objects are omitted."""
    by_catalog: dict[str, dict[Levels, str]] = {}
    for name in list(dict.fromkeys(names))[:LINKS_MAX]:
        path = _path_of(name)
        if len(path) > 2:
            by_catalog.setdefault(path[0], {})[path[1:]] = name
    hrefs: dict[str, str] = {}
    for catalog, paths in by_catalog.items():
        try:
            scope = RequestScope(metalake, catalog)
            kinds = await page_request.ctx.read(scope, partial(visible_kinds, paths=list(paths)))
        except LimnosError:
            continue  # the catalog was dropped, or the caller may not use it
        for path, kind in kinds.items():
            hrefs[paths[path]] = page_request.base + ObjectAddress(kind, metalake, catalog, path).path
    return hrefs


def link_of(name: str, hrefs: Mapping[str, str]) -> Link:
    """Return a link for a name; its URL is empty if the name has no page."""
    return Link(name, hrefs.get(name, ""))


def _path_of(name: str) -> tuple[str, ...]:
    try:
        return tuple(display.parse(name)) if name else ()
    except InvalidName:
        return ()
