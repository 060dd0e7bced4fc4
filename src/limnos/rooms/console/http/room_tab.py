# SPDX-License-Identifier: Apache-2.0
"""The content of a tab that a room adds to the pages of tables. Knows no room by name."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, cast

from limnos.manifests.manifest import load
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.object_tabs import room_tabs
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.sheets import TabPart


class TabContent(Protocol):
    """Reads the content of a tab."""

    def __call__(self, page_request: PageRequest, address: ObjectAddress, *, is_lance: bool) -> Awaitable[TabPart]:
        """Return the content of the tab of a table."""


async def room_tab(page_request: PageRequest, address: ObjectAddress, *, tab: str, is_lance: bool = False) -> TabPart:
    """Return the content of a tab of a room; empty for a tab that no room has."""
    for entry in room_tabs(page_request.site):
        if entry.name == tab:
            return await cast("TabContent", load(entry.content))(page_request, address, is_lance=is_lance)
    return TabPart()
