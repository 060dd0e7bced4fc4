# SPDX-License-Identifier: Apache-2.0
"""Pages of objects: one route for all kinds, which calls the module of the kind; and children in the tree."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from limnos.http.response import Response
from limnos.model.errors import PermissionDenied
from limnos.model.kinds import Kind
from limnos.rooms.console.http import filesets, namespaces, other_objects, tables
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address
from limnos.rooms.console.http.external.objects import external_page
from limnos.rooms.console.http.frame import TREE_SIZE, TreeItem, following_of, item_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import render, static_version
from limnos.rooms.console.http.responses import html_response, redirect
from limnos.rooms.console.http.tabs import child_after
from limnos.services.catalog.children import ChildrenRequest, children_list
from limnos.services.request.table_formats import is_sourced

ObjectPage = Callable[[PageRequest, ObjectAddress], Awaitable[Response]]

_PAGES: Final[dict[Kind, ObjectPage]] = {
    Kind.CATALOG: namespaces.namespace_page,
    Kind.NAMESPACE: namespaces.namespace_page,
    Kind.TABLE: tables.table_page,
    Kind.FILESET: filesets.fileset_page,
}


class BranchPart(msgspec.Struct, frozen=True, kw_only=True):
    """The children of an object in the tree."""

    base: str
    version: str
    items: tuple[TreeItem, ...]
    href: str
    following: str


async def object_page(page_request: PageRequest) -> Response:
    """Show the page of an object, with the tabs of its kind. A container that the caller may not load has a page of the
    children that its list shows.
    """
    address = parse_address(page_request.request.params)
    is_external = bool(address.levels) and await page_request.ctx.read(address.scope, is_sourced)
    page = external_page if is_external else _PAGES.get(address.kind, other_objects.object_page)
    try:
        return await page(page_request, address)
    except PermissionDenied as error:
        if address.kind not in (Kind.CATALOG, Kind.NAMESPACE):
            raise
        return await namespaces.narrow_namespace_page(page_request, address, refusal=error)


async def branch(page_request: PageRequest) -> Response:
    """Show the children of an object in the tree as an HTML fragment; without the page's script, show the object's
    page.
    """
    address = parse_address(page_request.request.params)
    if not page_request.is_part:
        return redirect(page_request.base + address.path)
    children_request = ChildrenRequest(child_after(page_request.request.query("after")), TREE_SIZE)
    page = await children_list(page_request.ctx, address.scope, parent=address.levels, request=children_request)
    items = tuple(item_of(page_request, address.child(child.kind, child.name)) for child in page.children)
    object_url = page_request.base + address.path
    part = BranchPart(
        base=page_request.base,
        version=static_version(),
        items=items,
        href=object_url,
        following=following_of(page_request, address, page=page),
    )
    return html_response(page_request.request, render("part_branch.html", part))


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/o/{kind}/{path...}",
        handler=object_page,
        operation="object-page",
        query=(
            "tab",
            "after",
            "kind",
            "starts",
            "done",
            "why",
            "snapshot",
            "limit",
            "before",
            "from",
            "to",
            "location",
            "directory",
            "file",
        ),
    ),
    ConsoleRoute(method="GET", path="/branch/{kind}/{path...}", handler=branch, operation="branch", query=("after",)),
)
