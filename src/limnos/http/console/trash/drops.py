"""Dropping an object: a page that says what the drop does, and the form that drops the object into the trash.

May import `model`, `names`, `services` and this package's shared modules. The services make all access decisions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlencode

from limnos.http.console.addresses import ObjectAddress, parse_address
from limnos.http.console.answers import redirect
from limnos.http.console.frame import Link, crumbs_of, icon_of
from limnos.http.console.page_requests import ConsoleRoute, PageRequest
from limnos.http.console.sheets import FormView, SheetPage, sheet_response
from limnos.http.console.tabs import Fact, drop_address, facts_of, object_frame
from limnos.http.response import Response
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.names import display
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
    Kind.TABLE: _drop_table,
    Kind.VIEW: lambda ctx, at: view_drop(ctx, at.scope, namespace=at.levels[:-1], name=at.levels[-1]),
    Kind.NAMESPACE: lambda ctx, at: namespace_drop(ctx, at.scope, levels=at.levels),
    Kind.FILESET: lambda ctx, at: fileset_drop(ctx, at.scope, path=at.levels),
    Kind.MODEL: lambda ctx, at: namespace_object_drop(ctx, at.scope, path=at.levels, kind=Kind.MODEL),
    Kind.TOPIC: lambda ctx, at: namespace_object_drop(ctx, at.scope, path=at.levels, kind=Kind.TOPIC),
}


async def drop_page(page_request: PageRequest) -> Response:
    """Show what dropping an object does, with the form that does it if the caller may drop the object."""
    address = _address_of(page_request)
    details = await page_request.ctx.read(address.scope, lambda view: _read(view, address))
    frame = await object_frame(page_request, address)
    path = display.render((address.catalog, *address.levels))
    count, has_more = 0, False
    if address.kind is Kind.NAMESPACE:
        page = await page_request.children(address.scope, address.levels, request=ChildrenRequest(size=COUNTED))
        count, has_more = len(page.children), page.following is not None
    warning = ""
    if details.is_access_on and "drop" not in details.rights:
        warning = "You may not drop it. Its owner and administrators may."
    elif count:
        warning = (
            f"It contains {'more than ' if has_more else ''}{count} object{'s' if count > 1 else ''}. Drop these first."
        )
    form = FormView(page_request.base + drop_address(address), "Drop", label=f"Drop {path}", is_danger=True)
    own = Link(address.name, page_request.base + address.path)
    return sheet_response(
        page_request,
        SheetPage(
            frame, f"Drop {address.name}?", icon_of(address.kind.word), _consequence(page_request, address),
            (*crumbs_of(page_request, address), own), warning=warning, forms=() if warning else (form,),
            facts=(Fact("Path", path, is_code=True), *facts_of(details)),
        ),
    )  # fmt: skip


async def drop(page_request: PageRequest) -> Response:
    """Drop an object, and redirect to the page of its parent."""
    address = _address_of(page_request)
    await page_request.ctx.read(address.scope, lambda view: _read(view, address))
    await _DROPS[address.kind](page_request.ctx, address)
    parent = address.parent
    path = display.render((address.catalog, *address.levels))
    done = f"{path} is dropped" + ("; it can be restored from the trash" if _keep_ms(page_request) else "")
    return redirect(f"{page_request.base}{'/' if parent is None else parent.path}?{urlencode({'done': done})}")


def _address_of(page_request: PageRequest) -> ObjectAddress:
    """Return the object of the route. Raises BadRequest for a kind that is not dropped here."""
    address = parse_address(page_request.request.params)
    if address.kind not in _DROPS or not address.levels:
        word = address.kind.word.replace("_", " ")
        raise BadRequest(f"The console does not drop a {word}; `limnos --help` and SQL++ have the commands that do")
    return address


def _read(request_view: RequestView, address: ObjectAddress) -> ObjectDetails:
    """Return an object's details. Raises UnsupportedOperation in an external system, whose objects have no trash."""
    details = details_load(request_view, address.kind, levels=address.levels)
    if is_sourced(request_view):
        raise UnsupportedOperation(
            f"The objects of catalog {request_view.catalog.name} are in an external system, and the console does not"
            " drop these: drop them there, or with `limnos drop`"
        )
    return details


def _keep_ms(page_request: PageRequest) -> int:
    return page_request.ctx.services.defaults.keep_dropped_ms


def _consequence(page_request: PageRequest, address: ObjectAddress) -> str:
    """Return the sentences that say what the drop does, and whether it can be undone."""
    days = _keep_ms(page_request) / DAY_MS
    if not days:
        return "No user can read it any more, and it cannot be restored: this server has no trash."
    files = " Its files are not deleted before that." if address.kind is Kind.TABLE else ""
    time = f"{days:g} day{'' if days == 1 else 's'}"
    return f"No user can read it any more. It is in the trash for {time}, and can be restored with its grants.{files}"


ROUTES = (
    ConsoleRoute("GET", "/drop/{kind}/{path...}", drop_page, "drop-page"),
    ConsoleRoute("POST", "/drop/{kind}/{path...}", drop, "drop-from-console"),
)
