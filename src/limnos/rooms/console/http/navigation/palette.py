# SPDX-License-Identifier: Apache-2.0
"""Links of the palette to pages of the console, and to users, groups and roles by name.

The services decide who is listed.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.model.errors import NotInUse, PermissionDenied
from limnos.model.kinds import Kind
from limnos.rooms.console.http.addresses import segment_of
from limnos.rooms.console.http.navigation.console_page import ConsolePage
from limnos.rooms.console.http.navigation.console_pages import CONSOLE_PAGES, openable_needs
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.services.identity.roles import roles_list
from limnos.services.identity.users import principals_list
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.pipelines import pipelines_list

NAMES_MAX: Final = 5
"""The number of users, of groups and of roles among the links."""


class PaletteLink(msgspec.Struct, frozen=True):
    """A link of the palette: its text, the kind of its target (`detail`), its icon and URL."""

    text: str
    detail: str
    icon: str
    href: str


async def palette_links(page_request: PageRequest, metalake: str, *, text: str) -> tuple[PaletteLink, ...]:
    """Return links to the pages, users, groups and roles that match a text and that the caller may see. Raises as
    `Context.read`.
    """
    needs, people = await page_request.ctx.read(
        RequestScope(metalake), lambda view: (openable_needs(view), _people(view, text.casefold()))
    )
    pages = tuple(
        PaletteLink(each.text, "page", each.icon, each.href(page_request.base, metalake))
        for each in CONSOLE_PAGES
        if each.is_openable(page_request.site, needs=needs) and _is_match(each, text)
    )
    return pages + tuple(
        PaletteLink(
            name,
            kind.word,
            "key" if kind is Kind.ROLE else "person",
            f"{page_request.base}/people/{kind.word}/{segment_of(metalake)}/{segment_of(name)}",
        )
        for kind, name in people
    )


async def pipeline_names(page_request: PageRequest, metalake: str) -> frozenset[str]:
    """Return the names of the pipelines that the caller may load. Gravitino's name for them is job template."""
    try:
        versions = await page_request.ctx.read(RequestScope(metalake), pipelines_list)
    except (PermissionDenied, NotInUse):
        return frozenset()
    return frozenset(each.node.name for each in versions)


def _is_match(page: ConsolePage, text: str) -> bool:
    """Return whether each word of a text begins a word of the page."""
    words = f"{page.text} {page.words}".casefold().split()
    return all(any(word.startswith(part) for word in words) for part in text.casefold().split())


def _people(request_view: RequestView, text: str) -> list[tuple[Kind, str]]:
    """Return the first users, groups and roles whose name contains a text; first those whose name begins with it."""
    pairs: list[tuple[Kind, str]] = []
    for kind in (Kind.USER, Kind.GROUP, Kind.ROLE):
        try:
            entities = roles_list(request_view) if kind is Kind.ROLE else principals_list(request_view, kind)
        except (PermissionDenied, NotInUse):
            continue
        names = [each.name for each in entities if text in each.name.casefold()]
        names.sort(key=lambda name: (not name.casefold().startswith(text), name))
        pairs += [(kind, name) for name in names[:NAMES_MAX]]
    return pairs
