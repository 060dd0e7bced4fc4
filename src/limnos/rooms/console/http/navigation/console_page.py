# SPDX-License-Identifier: Apache-2.0
"""A page of the console in the navigation and the palette. Must not know particular pages."""

from __future__ import annotations

from typing import NamedTuple

from limnos.names.percent import quote
from limnos.rooms.console.http.site import ConsoleSite


class ConsolePage(NamedTuple):
    """A page of the console.

    - `path`: its path below the console's root, with a query or without.
    - `section`: its name in the navigation; empty for a page that is only in the palette.
    - `key`: its keyboard shortcut.
    - `words`: further words by which the palette finds it.
    - `needs`: the name of the right that opens it; empty for pages that every user may open.
    - `place`: its place in the navigation; the console's own pages have 10, 20, 30 and so on.
    - `room`: the room whose page it is; empty for the console's own.
    """

    path: str
    text: str
    icon: str
    section: str = ""
    key: str = ""
    words: str = ""
    needs: str = ""
    place: int = 1000
    room: str = ""

    def is_openable(self, site: ConsoleSite, *, needs: frozenset[str]) -> bool:
        """Return whether a caller who has the rights `needs` may open the page on this server."""
        return self.room not in site.rooms_off and (not self.needs or self.needs in needs)

    def href(self, base: str, metalake: str) -> str:
        """Return the URL of the page for a metalake."""
        return f"{base}{self.path}{'&' if '?' in self.path else '?'}metalake={quote(metalake)}"
