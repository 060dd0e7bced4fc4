# SPDX-License-Identifier: Apache-2.0
"""Renaming an object of the tree: a page with the consequence and a form, and the form's request.

The services make all access decisions, and decide which names are valid and free.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress, catalog_address, parse_address
from limnos.rooms.console.http.frame import Link, crumbs_of, icon_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import FormInput, FormView, SheetPage, sheet_response
from limnos.rooms.console.http.tabs import Fact, facts_of, object_frame, rename_path
from limnos.rooms.console.http.tree_changes.form_errors import NAME_ERRORS, refused_form_response
from limnos.services.catalog.catalogs import catalog_alter
from limnos.services.catalog.namespaces import namespace_move
from limnos.services.catalog.tables import table_move
from limnos.services.catalog.views import view_move
from limnos.services.governance.details import ObjectDetails, details_load
from limnos.services.lance.tables import table_rename as lance_table_rename
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, format_of, is_sourced


class ObjectRename(NamedTuple):
    """An object's present and new address, which have the same parent."""

    source: ObjectAddress
    target: ObjectAddress


Rename = Callable[[Context, ObjectRename], Awaitable[object]]
_CONSEQUENCE: Final = (
    "Grants, tags and policies stay, because they belong to the object and not to its name; clients, views and"
    " pipelines must use the new name from the next request on."
)


async def _rename_table(ctx: Context, change: ObjectRename) -> None:
    scope, source, target = change.source.scope, change.source.levels, change.target.levels
    if await ctx.read(scope, format_of) == LANCE:
        await lance_table_rename(ctx, scope, source=source, target=target)
    else:
        await table_move(ctx, scope, source=source, target=target)


_RENAMES: Final[Mapping[Kind, Rename]] = {
    Kind.CATALOG: lambda ctx, change: catalog_alter(
        ctx,
        metalake=change.source.metalake,
        name=change.source.catalog,
        edits=PropertyEdits(name=change.target.catalog),
    ),
    Kind.NAMESPACE: lambda ctx, change: namespace_move(
        ctx, change.source.scope, source=change.source.levels, target=change.target.levels
    ),
    Kind.TABLE: _rename_table,
    Kind.VIEW: lambda ctx, change: view_move(
        ctx, change.source.scope, source=change.source.levels, target=change.target.levels
    ),
}


async def rename_page(page_request: PageRequest) -> Response:
    """Show the form that renames an object, or a warning if the caller may not rename it."""
    address = _address_of(page_request)
    details = await page_request.ctx.read(address.scope, lambda view: _read(view, address))
    return sheet_response(page_request, await _page(page_request, address, details=details, name=address.name))


async def rename(page_request: PageRequest) -> Response:
    """Rename an object, and redirect to its page. If its new name is refused, show the form again with the reason."""
    address = _address_of(page_request)
    details = await page_request.ctx.read(address.scope, lambda view: _read(view, address))
    name = (await page_request.form()).get("name", "").strip()
    target = _new_address(address, name)
    try:
        if not name:
            raise BadRequest("Give the new name")
        await _RENAMES[address.kind](page_request.ctx, ObjectRename(address, target))
    except NAME_ERRORS as error:
        page = await _page(page_request, address, details=details, name=name)
        return refused_form_response(page_request, page, error=error)
    notice = f"{_path_of(address)} is now {_path_of(target)}"
    return redirect(f"{page_request.base}{target.path}?{urlencode({'done': notice})}")


def _new_address(address: ObjectAddress, name: str) -> ObjectAddress:
    parent = address.parent
    return catalog_address(address.metalake, name) if parent is None else parent.child(address.kind, name)


def _path_of(address: ObjectAddress) -> str:
    return display.render((address.catalog, *address.levels))


def _address_of(page_request: PageRequest) -> ObjectAddress:
    """Return the object of the route. Raises BadRequest for a kind that is not renamed here."""
    address = parse_address(page_request.request.params)
    if address.kind not in _RENAMES:
        word = address.kind.word.replace("_", " ")
        raise BadRequest(f"The console does not rename a {word}; 'limnos --help' has the commands that do")
    return address


def _read(request_view: RequestView, address: ObjectAddress) -> ObjectDetails:
    """Return an object's details. Raises UnsupportedOperation for an object of an external system."""
    details = details_load(request_view, address.kind, levels=address.levels)
    if is_sourced(request_view) and address.kind is not Kind.CATALOG:
        raise UnsupportedOperation(
            f"The objects of catalog {request_view.catalog.name} are in an external system, and the console does not"
            " rename these: rename them there, or over Gravitino REST"
        )
    return details


async def _page(page_request: PageRequest, address: ObjectAddress, *, details: ObjectDetails, name: str) -> SheetPage:
    """Return the page with the form, whose input has the value `name`; without it if the caller lacks the right."""
    path = _path_of(address)
    form = FormView(
        action=page_request.base + rename_path(address),
        button="Rename",
        fields=(),
        inputs=(FormInput(name="name", label="New name", value=name, is_required=True),),
        label=f"Rename {path}",
        is_primary=True,
    )
    is_allowed = "rename" in details.rights
    object_link = Link(address.name, page_request.base + address.path)
    return SheetPage(
        frame=await object_frame(page_request, address),
        title=f"Rename {address.name}",
        icon=icon_of(address.kind.word),
        intro=_CONSEQUENCE,
        crumbs=(*crumbs_of(page_request, address), object_link),
        forms=(form,) if is_allowed else (),
        cancel=object_link.href if is_allowed else "",
        warning="" if is_allowed else "You may not rename it. Its owner and administrators may.",
        facts=(Fact(label="Path", text=path, is_code=True), *facts_of(details)),
    )


ROUTES = (
    ConsoleRoute(method="GET", path="/rename/{kind}/{path...}", handler=rename_page, operation="rename-page"),
    ConsoleRoute(method="POST", path="/rename/{kind}/{path...}", handler=rename, operation="rename-from-console"),
)
