# SPDX-License-Identifier: Apache-2.0
"""Dropping an object: a page with the consequences, and its form. Dropped objects go to the trash, except catalogs.

The services make all access decisions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol, cast
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import load
from limnos.model.declared_kinds import DECLARED_KINDS
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address
from limnos.rooms.console.http.frame import Link, crumbs_of, icon_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import FormView, Sheet, SheetPage, sheet_response
from limnos.rooms.console.http.tabs import Fact, drop_path, facts_of, object_frame
from limnos.services.catalog.catalogs import catalog_drop
from limnos.services.catalog.children import ChildrenRequest
from limnos.services.catalog.filesets import fileset_drop
from limnos.services.catalog.namespaces import namespace_drop
from limnos.services.catalog.tables import table_drop
from limnos.services.catalog.views import view_drop
from limnos.services.governance.details import ObjectDetails, details_load
from limnos.services.lance.tables import table_drop as lance_table_drop
from limnos.services.lookup.namespace_objects import namespace_object_drop
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, format_of, is_sourced

Drop = Callable[[Context, ObjectAddress], Awaitable[object]]


class RoomSheets(Protocol):
    """Reads what a room says about an object that is to be dropped."""

    def __call__(self, page_request: PageRequest, address: ObjectAddress) -> Awaitable[Sequence[Sheet]]:
        """Return tables for the page."""


COUNTED: Final = 1000
"""The maximum number of children of a namespace that its page counts."""
DAY_MS: Final = 86_400_000


async def _drop_table(ctx: Context, address: ObjectAddress) -> None:
    scope, levels = address.scope, address.levels
    if await ctx.read(scope, format_of) == LANCE:
        await lance_table_drop(ctx, scope, levels=levels)
    else:
        await table_drop(ctx, scope, namespace=levels[:-1], name=levels[-1], purge=False)


_DROPS: Final[Mapping[Kind, Drop]] = {
    Kind.CATALOG: lambda ctx, at: catalog_drop(
        ctx, metalake=at.metalake, name=at.catalog, force=False, in_use_too=True
    ),
    Kind.TABLE: _drop_table,
    Kind.VIEW: lambda ctx, at: view_drop(ctx, at.scope, namespace=at.levels[:-1], name=at.levels[-1]),
    Kind.NAMESPACE: lambda ctx, at: namespace_drop(ctx, at.scope, levels=at.levels),
    Kind.FILESET: lambda ctx, at: fileset_drop(ctx, at.scope, path=at.levels),
    **dict.fromkeys(
        (Kind.MODEL, Kind.TOPIC, *DECLARED_KINDS),
        lambda ctx, at: namespace_object_drop(ctx, at.scope, path=at.levels, kind=at.kind),
    ),
}


async def drop_page(page_request: PageRequest) -> Response:
    """Show the consequences of dropping an object, with the form that drops it, if the caller may and it is empty."""
    address = _address_of(page_request)
    details, is_external = await page_request.ctx.read(address.scope, lambda view: _read(view, address))
    frame = await object_frame(page_request, address)
    path = display.render((address.catalog, *address.levels))
    count, has_more = 0, False
    if address.kind in (Kind.CATALOG, Kind.NAMESPACE) and not is_external:
        page = await page_request.children(address.scope, address.levels, request=ChildrenRequest(size=COUNTED))
        count, has_more = len(page.children), page.following is not None
    warning = ""
    if "drop" not in details.rights:
        warning = "You may not drop it. Its owner and administrators may."
    elif count:
        warning = (
            f"It contains {'more than ' if has_more else ''}{count} object{'s' if count > 1 else ''}. Drop these first."
        )
    form = FormView(action=page_request.base + drop_path(address), button="Drop", label=f"Drop {path}", is_danger=True)
    object_link = Link(address.name, page_request.base + address.path)
    return sheet_response(
        page_request,
        SheetPage(
            frame=frame,
            title=f"Drop {address.name}?",
            icon=icon_of(address.kind.word),
            intro=_consequence(_keep_ms(page_request), address, is_external=is_external),
            crumbs=(*crumbs_of(page_request, address), object_link),
            warning=warning,
            forms=() if warning else (form,),
            facts=(Fact(label="Path", text=path, is_code=True), *facts_of(details)),
            cancel=object_link.href,
            sheets=await _room_sheets(page_request, address),
        ),
    )


async def _room_sheets(page_request: PageRequest, address: ObjectAddress) -> tuple[Sheet, ...]:
    """Return the sentences of rooms about an object before it is dropped."""
    sheets: list[Sheet] = []
    for room in installed_rooms().manifests:
        if room.drop_sheets and room.name not in page_request.site.rooms_off:
            sheets += await cast("RoomSheets", load(room.drop_sheets))(page_request, address)
    return tuple(sheets)


async def drop(page_request: PageRequest) -> Response:
    """Drop an object, and redirect to the page of its parent."""
    address = _address_of(page_request)
    await page_request.ctx.read(address.scope, lambda view: _read(view, address))
    await _DROPS[address.kind](page_request.ctx, address)
    parent = address.parent
    path = display.render((address.catalog, *address.levels))
    is_kept = address.kind is not Kind.CATALOG and _keep_ms(page_request)
    notice = f"{path} is dropped" + ("; it can be restored from the trash" if is_kept else "")
    return redirect(f"{page_request.base}{'/' if parent is None else parent.path}?{urlencode({'done': notice})}")


def _address_of(page_request: PageRequest) -> ObjectAddress:
    """Return the object of the route. Raises BadRequest for a kind that is not dropped here."""
    address = parse_address(page_request.request.params)
    if address.kind not in _DROPS or (address.kind is Kind.CATALOG) is bool(address.levels):
        word = address.kind.word.replace("_", " ")
        raise BadRequest(f"The console does not drop a {word}; 'limnos --help' and SQL++ have the commands that do")
    return address


def _read(request_view: RequestView, address: ObjectAddress) -> tuple[ObjectDetails, bool]:
    """Return an object's details, and whether the source of its catalog's objects is an external system or a directory.

    Raises UnsupportedOperation for an object of an external system: these have no trash.
    """
    details = details_load(request_view, address.kind, levels=address.levels)
    if is_sourced(request_view) and address.kind is not Kind.CATALOG:
        raise UnsupportedOperation(
            f"The objects of catalog {request_view.catalog.name} are in an external system, and the console does not"
            " delete these: delete them there, or with 'limnos delete'"
        )
    traits = request_view.settled.traits
    return details, traits is not None and (traits.is_sourced or traits.shows_directory)


def _keep_ms(page_request: PageRequest) -> int:
    return page_request.ctx.services.defaults.keep_dropped_ms


def _consequence(keep_ms: int, address: ObjectAddress, *, is_external: bool) -> str:
    """Describe the effect of the drop, and whether it can be undone.

    `keep_ms` is the time in milliseconds for which dropped objects are in the trash, `is_external` whether the object
    is a catalog of an external system or of a directory.
    """
    if is_external:
        return (
            "No user can read its objects here any more. The external system or directory keeps them. The catalog, its"
            " grants and its settings cannot be restored."
        )
    if address.kind is Kind.CATALOG:
        return (
            "The catalog, its grants and its settings cannot be restored, and neither can objects that are in its trash"
            " now. Files are not deleted."
        )
    days = keep_ms / DAY_MS
    if not days:
        return "No user can read it any more, and it cannot be restored: this server has no trash."
    files = " Its files are not deleted before that." if address.kind is Kind.TABLE else ""
    time = f"{days:g} day{'' if days == 1 else 's'}"
    return f"No user can read it any more. It is in the trash for {time}, and can be restored with its grants.{files}"


ROUTES = (
    ConsoleRoute(method="GET", path="/drop/{kind}/{path...}", handler=drop_page, operation="drop-page"),
    ConsoleRoute(method="POST", path="/drop/{kind}/{path...}", handler=drop, operation="drop-from-console"),
)
