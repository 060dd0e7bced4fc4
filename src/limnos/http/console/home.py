"""The first page: the metalake's catalogs and its latest changes.

May import `model`, `names`, `services` and this package's shared modules. Has no business rules.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from limnos.http.console.addresses import KINDS, ObjectAddress, catalog_address
from limnos.http.console.answers import html_response
from limnos.http.console.frame import Frame, frame_of, icon_of
from limnos.http.console.look import render
from limnos.http.console.page_requests import ConsoleRoute, PageRequest
from limnos.http.response import Response
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.services.activity.feed import changes_latest
from limnos.services.catalog.catalogs import catalogs_list
from limnos.services.lookup.change_publishing import PublishedChange
from limnos.services.request.request_scope import RequestScope

CHANGES_SHOWN: Final = 20


class CatalogLine(msgspec.Struct, frozen=True):
    """A row of the list of catalogs."""

    name: str
    href: str
    provider: str
    comment: str
    is_in_use: bool


class ChangeLine(msgspec.Struct, frozen=True):
    """A change of an object. `href` is empty if the object has no page."""

    words: str
    kind: str
    icon: str
    path: str
    href: str
    user: str
    at_ms: int


class HomePage(msgspec.Struct, frozen=True):
    """The data of the home page: the visible catalogs and the latest changes."""

    frame: Frame
    catalogs: tuple[CatalogLine, ...]
    changes: tuple[ChangeLine, ...]
    is_member: bool


async def home(page_request: PageRequest) -> Response:
    """Show the visible catalogs, and the latest changes."""
    frame = await frame_of(page_request, "Home", section="home")
    is_member = any(link.is_current for link in frame.metalakes)
    catalogs = await _catalogs(page_request, frame.metalake) if is_member else ()
    changes = await _changes(page_request, frame.metalake) if is_member else ()
    return html_response(page_request.request, render("home.html", HomePage(frame, catalogs, changes, is_member)))


async def _catalogs(page_request: PageRequest, metalake: str) -> tuple[CatalogLine, ...]:
    nodes = await page_request.ctx.read(RequestScope(metalake), catalogs_list)
    return tuple(
        CatalogLine(
            node.name, page_request.base + catalog_address(metalake, node.name).path, getattr(node.record, "provider", ""),
            getattr(node.record, "comment", None) or "", bool(getattr(node.record, "in_use", True)),
        )
        for node in nodes
    )  # fmt: skip


async def _changes(page_request: PageRequest, metalake: str) -> tuple[ChangeLine, ...]:
    changes: list[PublishedChange] = []
    with suppress(LimnosError):  # an error in the list must not break the page
        changes = await changes_latest(page_request.ctx, RequestScope(metalake), count=CHANGES_SHOWN)
    return tuple(change_line(page_request, metalake, change=change) for change in changes)


def change_line(page_request: PageRequest, metalake: str, *, change: PublishedChange) -> ChangeLine:
    """Format a change for the page, with the URL of its object's page if the object still exists."""
    path = change.new or change.path or change.old or ()
    kind = change.kind.word
    href = ""
    if path and kind in KINDS and change.operation not in {"drop", "purge"}:
        changes = ObjectAddress(change.kind, metalake, path[0], path[1:])
        href = page_request.base + changes.path if (change.kind is Kind.CATALOG) is (len(path) == 1) else ""
    name = display.render(path) if kind in KINDS else ".".join(path)
    return ChangeLine(change.operation, kind.replace("_", " "), icon_of(kind), name, href, change.actor, change.at)


ROUTES = (ConsoleRoute("GET", "/", home, "home", ("metalake", "done")),)
