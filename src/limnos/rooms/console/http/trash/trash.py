# SPDX-License-Identifier: Apache-2.0
"""The trash: dropped objects that the caller may restore, of all catalogs or of one, and the form that restores one of
them.

Has no business rules.
"""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.errors import BadRequest, NotFound, NotInUse, PermissionDenied
from limnos.names import display
from limnos.rooms.console.http.addresses import KINDS, ObjectAddress
from limnos.rooms.console.http.frame import Frame, Link, frame_of, icon_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response, redirect
from limnos.services.catalog.catalogs import catalogs_list
from limnos.services.request.request_scope import RequestScope
from limnos.services.upkeep.trash import NEWEST, trash_list, trash_restore

SHOWN = 100
CATALOGS_MAX = 20
"""The maximum number of catalogs whose trash is shown together; each catalog also has a page of its own."""


class TrashLine(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the trash: a dropped object."""

    id: int
    catalog: str
    path: str
    kind: str
    icon: str
    dropped_by: str
    dropped_ms: int
    expires_ms: int


class TrashPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the trash page. `catalog` is empty if it shows the trash of all catalogs."""

    frame: Frame
    catalog: str
    catalogs: tuple[Link, ...]
    lines: tuple[TrashLine, ...]
    more: bool
    unread: int
    """The number of catalogs whose trash the page of all catalogs omits."""


async def trash_page(page_request: PageRequest) -> Response:
    """Show the dropped objects that the caller may restore, newest first."""
    frame = await frame_of(page_request, "Trash", section="trash")
    nodes = await page_request.ctx.read(RequestScope(frame.metalake), catalogs_list)
    catalog = page_request.request.query("catalog") or ""
    links = tuple(
        Link(name or "All catalogs", _address(page_request, frame.metalake, catalog=name), name == catalog)
        for name in ("", *(node.name for node in nodes))
    )
    if catalog:
        lines, more = await _list_dropped(page_request, frame.metalake, catalog=catalog)
        view = TrashPage(frame=frame, catalog=catalog, catalogs=links, lines=lines, more=more, unread=0)
    else:
        names = [node.name for node in nodes]
        lines, more = await _list_dropped_of_all(page_request, frame.metalake, catalogs=names[:CATALOGS_MAX])
        view = TrashPage(
            frame=frame, catalog="", catalogs=links, lines=lines, more=more, unread=max(0, len(names) - CATALOGS_MAX)
        )
    return html_response(page_request.request, render("trash.html", view))


async def _list_dropped(
    page_request: PageRequest, metalake: str, *, catalog: str
) -> tuple[tuple[TrashLine, ...], bool]:
    """Return the newest dropped objects of a catalog, and whether there are more."""
    page = await trash_list(page_request.ctx, RequestScope(metalake, catalog), below=(), before=NEWEST, limit=SHOWN)
    lines = tuple(
        TrashLine(
            id=each.row.id,
            catalog=catalog,
            path=display.render((catalog, *each.path)),
            kind=each.row.kind.word.replace("_", " "),
            icon=icon_of(each.row.kind.word),
            dropped_by=each.row.dropped_by,
            dropped_ms=each.row.dropped_at,
            expires_ms=each.row.expires_at,
        )
        for each in page.entries
    )
    return lines, page.following is not None


async def _list_dropped_of_all(
    page_request: PageRequest, metalake: str, *, catalogs: list[str]
) -> tuple[tuple[TrashLine, ...], bool]:
    """Return the newest dropped objects of several catalogs. A catalog that is disabled, was dropped concurrently,
    or denies the caller access contributes none.
    """
    lines: list[TrashLine] = []
    more = False
    for catalog in catalogs:
        try:
            entries, has_more = await _list_dropped(page_request, metalake, catalog=catalog)
        except (NotFound, NotInUse, PermissionDenied):
            continue
        lines += entries
        more = more or has_more
    lines.sort(key=lambda each: (each.dropped_ms, each.id), reverse=True)
    return tuple(lines[:SHOWN]), more or len(lines) > SHOWN


def _address(page_request: PageRequest, metalake: str, *, catalog: str) -> str:
    fields = {"metalake": metalake} | ({"catalog": catalog} if catalog else {})
    return f"{page_request.base}/trash?{urlencode(fields)}"


async def restore(page_request: PageRequest) -> Response:
    """Restore a dropped object to its former path, and redirect to its page."""
    fields = await page_request.form()
    text, metalake, catalog = (fields.get(name, "") for name in ("id", "metalake", "catalog"))
    if not (text.isascii() and text.isdigit() and len(text) <= 18) or not metalake or not catalog:
        raise BadRequest("This is not a dropped object of the list")
    restored = await trash_restore(page_request.ctx, RequestScope(metalake, catalog), dropped_id=int(text))
    notice = urlencode({"done": f"{display.render((catalog, *restored.path))} is back"})
    if restored.kind.word not in KINDS:
        return redirect(f"{_address(page_request, metalake, catalog=catalog)}&{notice}")
    address = ObjectAddress(restored.kind, metalake, catalog, restored.path)
    return redirect(f"{page_request.base}{address.path}?{notice}")


ROUTES = (
    ConsoleRoute(
        method="GET", path="/trash", handler=trash_page, operation="trash-page", query=("metalake", "catalog", "done")
    ),
    ConsoleRoute(method="POST", path="/trash/restore", handler=restore, operation="restore-dropped"),
)
