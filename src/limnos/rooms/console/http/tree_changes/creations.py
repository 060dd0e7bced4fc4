# SPDX-License-Identifier: Apache-2.0
"""Creating a namespace in a catalog or in another namespace: a page with a form, and the form's request.

The services make all access decisions, and decide which names are valid and free.
"""

from __future__ import annotations

from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address
from limnos.rooms.console.http.frame import Link, crumbs_of, icon_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import FormInput, FormView, SheetPage, sheet_response
from limnos.rooms.console.http.tabs import Fact, creation_path, object_frame
from limnos.rooms.console.http.tree_changes.form_errors import NAME_ERRORS, refused_form_response
from limnos.services.catalog.namespaces import may_create_namespace, namespace_create
from limnos.services.governance.details import details_load
from limnos.services.request.request_view import RequestView

_INTRO = (
    "A namespace contains tables and other objects, and you own it. Clients create tables in it by writing them;"
    " the command limnos create creates catalogs and other objects."
)


async def creation_page(page_request: PageRequest) -> Response:
    """Show the form that creates a namespace in a catalog or namespace, or a warning if the caller may not do so."""
    parent = _parent_of(page_request)
    is_allowed = await page_request.ctx.read(parent.scope, lambda view: _read(view, parent))
    return sheet_response(page_request, await _page(page_request, parent, fields={}, is_allowed=is_allowed))


async def create(page_request: PageRequest) -> Response:
    """Create a namespace, and redirect to its page. If its name is refused, show the form again with the reason."""
    parent = _parent_of(page_request)
    is_allowed = await page_request.ctx.read(parent.scope, lambda view: _read(view, parent))
    fields = await page_request.form()
    name, comment = (fields.get(each, "").strip() for each in ("name", "comment"))
    target = parent.child(Kind.NAMESPACE, name)
    try:
        if not name:
            raise BadRequest("Give the namespace a name")
        await namespace_create(
            page_request.ctx, target.scope, levels=target.levels, comment=comment or None, properties={}, parents=False
        )
    except NAME_ERRORS as error:
        page = await _page(page_request, parent, fields=fields, is_allowed=is_allowed)
        return refused_form_response(page_request, page, error=error)
    notice = f"{display.render((target.catalog, *target.levels))} is created"
    return redirect(f"{page_request.base}{target.path}?{urlencode({'done': notice})}")


def _parent_of(page_request: PageRequest) -> ObjectAddress:
    """Return the container of the route. Raises BadRequest for a kind that contains no namespaces."""
    parent = parse_address(page_request.request.params)
    if parent.kind not in (Kind.CATALOG, Kind.NAMESPACE):
        raise BadRequest("Namespaces are created in catalogs and namespaces")
    return parent


def _read(request_view: RequestView, parent: ObjectAddress) -> bool:
    """Return whether the caller may create a namespace in a container. Raises as `details_load` for one that the caller
    may not load.
    """
    details_load(request_view, parent.kind, levels=parent.levels)
    return may_create_namespace(request_view, parent.levels)


async def _page(
    page_request: PageRequest, parent: ObjectAddress, *, fields: dict[str, str], is_allowed: bool
) -> SheetPage:
    """Return the page of the form, whose inputs have the values of `fields`."""
    path = display.render((parent.catalog, *parent.levels))
    inputs = (
        FormInput(name="name", label="Name", value=fields.get("name", ""), is_required=True),
        FormInput(name="comment", label="Description", value=fields.get("comment", "")),
    )
    action = page_request.base + creation_path(parent)
    form = FormView(
        action=action,
        button="Create",
        fields=(),
        inputs=inputs,
        label=f"Create the namespace in {path}",
        is_primary=True,
    )
    parent_link = Link(parent.name, page_request.base + parent.path)
    warning = "You may not create a namespace here, or the catalog contains none below its first level."
    return SheetPage(
        frame=await object_frame(page_request, parent),
        title=f"Create a namespace in {parent.name}",
        icon=icon_of("namespace"),
        intro=_INTRO,
        crumbs=(*crumbs_of(page_request, parent), parent_link),
        facts=(Fact(label="In", text=path, is_code=True),),
        forms=(form,) if is_allowed else (),
        warning="" if is_allowed else warning,
        cancel=parent_link.href if is_allowed else "",
    )


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/create-namespace/{kind}/{path...}",
        handler=creation_page,
        operation="create-namespace-page",
    ),
    ConsoleRoute(
        method="POST",
        path="/create-namespace/{kind}/{path...}",
        handler=create,
        operation="create-namespace-from-console",
    ),
)
