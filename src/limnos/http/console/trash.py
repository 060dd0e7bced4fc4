"""The trash: dropped objects of a catalog that the caller may restore, and restoring one.

May import `model`, `names`, `services` and this package's shared modules. Has no business rules.
"""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec

from limnos.http.console.addresses import KINDS, ObjectAddress
from limnos.http.console.answers import html_response, redirect
from limnos.http.console.frame import Frame, Link, frame_of, icon_of
from limnos.http.console.look import render
from limnos.http.console.page_requests import ConsoleRoute, PageRequest
from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.services.catalog.catalogs import catalogs_list
from limnos.services.request.request_scope import RequestScope
from limnos.services.upkeep.trash import NEWEST, trash_list, trash_restore

SHOWN = 100


class TrashLine(msgspec.Struct, frozen=True):
    """A dropped object."""

    id: int
    path: str
    kind: str
    icon: str
    dropped_by: str
    dropped_ms: int
    expires_ms: int


class TrashPage(msgspec.Struct, frozen=True):
    """The trash of one catalog."""

    frame: Frame
    catalog: str
    catalogs: tuple[Link, ...]
    lines: tuple[TrashLine, ...]
    more: bool


async def trash_page(page_request: PageRequest) -> Response:
    """Show the dropped objects of a catalog that the caller may restore, newest first."""
    frame = await frame_of(page_request, "Trash", section="trash")
    nodes = await page_request.ctx.read(RequestScope(frame.metalake), catalogs_list)
    name = page_request.request.query("catalog")
    catalog = name or (nodes[0].name if nodes else "")
    links = tuple(
        Link(node.name, _address(page_request, frame.metalake, catalog=node.name), node.name == catalog)
        for node in nodes
    )
    if not catalog:
        return html_response(page_request.request, render("trash.html", TrashPage(frame, "", (), (), more=False)))
    page = await trash_list(
        page_request.ctx, RequestScope(frame.metalake, catalog), below=(), before=NEWEST, limit=SHOWN
    )
    lines = tuple(
        TrashLine(
            each.row.id, display.render((catalog, *each.path)), each.row.kind.word.replace("_", " "),
            icon_of(each.row.kind.word), each.row.dropped_by, each.row.dropped_at, each.row.expires_at,
        )
        for each in page.entries
    )  # fmt: skip
    view = TrashPage(frame, catalog, links, lines, more=page.following is not None)
    return html_response(page_request.request, render("trash.html", view))


def _address(page_request: PageRequest, metalake: str, *, catalog: str) -> str:
    return f"{page_request.base}/trash?{urlencode({'metalake': metalake, 'catalog': catalog})}"


async def restore(page_request: PageRequest) -> Response:
    """Restore a dropped object to its former path, and go to its page."""
    fields = await page_request.form()
    text, metalake, catalog = (fields.get(name, "") for name in ("id", "metalake", "catalog"))
    if not (text.isascii() and text.isdigit() and len(text) <= 18) or not metalake or not catalog:
        raise BadRequest("This is not a dropped object of the list")
    restored = await trash_restore(page_request.ctx, RequestScope(metalake, catalog), dropped_id=int(text))
    done = urlencode({"done": f"{display.render((catalog, *restored.path))} is back"})
    if restored.kind.word not in KINDS:
        return redirect(f"{_address(page_request, metalake, catalog=catalog)}&{done}")
    address = ObjectAddress(restored.kind, metalake, catalog, restored.path)
    return redirect(f"{page_request.base}{address.path}?{done}")


ROUTES = (
    ConsoleRoute("GET", "/trash", trash_page, "trash-page", ("metalake", "catalog", "done")),
    ConsoleRoute("POST", "/trash/restore", restore, "restore-dropped"),
)
