# SPDX-License-Identifier: Apache-2.0
"""Pages of catalogs and namespaces: their content by kind, properties, and policies.

Has no business rules.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.http.response import Response
from limnos.model.errors import LimnosError, PermissionDenied, SourceFailed
from limnos.names.percent import quote
from limnos.rooms.console.http.addresses import ObjectAddress, quote_path, segment_of
from limnos.rooms.console.http.external.failures import external_response, failed_frame, failure_text
from limnos.rooms.console.http.frame import Frame, icon_of
from limnos.rooms.console.http.governance.object_policies import policies_tab
from limnos.rooms.console.http.navigation.heading_words import kind_chips
from limnos.rooms.console.http.object_tabs import NAMESPACE_TABS, NARROW_NAMESPACE_TABS
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import render, static_version
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.sheets import TabPart
from limnos.rooms.console.http.tabs import (
    Chip,
    Fact,
    ObjectHeading,
    Property,
    child_after,
    creation_path,
    facts_of,
    heading_of,
    object_frame,
    properties_of,
    tab_of,
)
from limnos.services.catalog.children import ChildObject, ChildrenRequest
from limnos.services.catalog.namespaces import may_create_namespace
from limnos.services.governance.details import ObjectDetails, details_load
from limnos.services.request.request_view import RequestView

ROWS: Final = 100
"""The number of children on one page of the list."""
_NAME_ONLY: Final = (
    "You may not load this {kind}, but something in it: this page lists that, and leaves out owner, comment, properties"
    " and policies."
)


class ChildRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A row of the list of a namespace's children."""

    name: str
    kind: str
    icon: str
    href: str
    format: str
    owner: str
    comment: str
    changed_ms: int | None


class ContentsPart(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the list of children. `following` is the URL of the next page; empty at the end."""

    base: str
    version: str
    rows: tuple[ChildRow, ...]
    following: str
    now_ms: int
    begins_inside: bool


class NamespacePage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page of a catalog or namespace."""

    frame: Frame
    path: str
    heading: ObjectHeading
    tab: str
    facts: tuple[Fact, ...]
    contents: ContentsPart
    properties: tuple[Property, ...]
    part: TabPart
    warning: str = ""
    note: str = ""


async def namespace_page(page_request: PageRequest, address: ObjectAddress) -> Response:
    """Show a catalog or namespace. Requests of the page's script receive only the next rows of the list of children."""
    if page_request.is_part:
        return html_response(page_request.request, render("part_rows.html", await contents_part(page_request, address)))
    tab = tab_of(page_request, NAMESPACE_TABS)
    details, may_create = await page_request.ctx.read(address.scope, lambda view: _read(view, address))
    create = page_request.base + creation_path(address) if may_create else ""
    contents = ContentsPart(base="", version="", rows=(), following="", now_ms=page_request.now_ms, begins_inside=False)
    failure: SourceFailed | None = None
    try:
        if tab == "contents":
            contents = await contents_part(page_request, address)
    except SourceFailed as error:
        failure = error
    record = details.node.record
    comment = getattr(record, "comment", None) or ""
    heading = heading_of(
        page_request,
        address,
        details=details,
        tabs=NAMESPACE_TABS,
        tab=tab,
        chips=kind_chips(details),
        comment=comment,
        create=create,
    )
    frame = await (object_frame(page_request, address) if failure is None else failed_frame(page_request, address))
    view = NamespacePage(
        frame=frame,
        path=address.path,
        heading=heading,
        tab=tab,
        facts=facts_of(details),
        contents=contents,
        properties=properties_of(getattr(record, "properties", {})),
        part=await policies_tab(page_request, address) if tab == "policies" else TabPart(),
        warning="" if failure is None else failure_text(address.catalog, failure),
    )
    return external_response(page_request, render("namespace.html", view), failure=failure)


async def narrow_namespace_page(
    page_request: PageRequest, address: ObjectAddress, *, refusal: PermissionDenied
) -> Response:
    """Show the name of a catalog or namespace that the caller may not load, and the children that lists show them.

    Lists decide the access, so the page reveals no more than they do. Raises `refusal` if they show no child.
    """
    try:
        contents = await contents_part(page_request, address)
    except LimnosError:
        raise refusal from None
    if not contents.rows:
        raise refusal
    if page_request.is_part:
        return html_response(page_request.request, render("part_rows.html", contents))
    heading = heading_of(
        page_request,
        address,
        details=None,
        tabs=NARROW_NAMESPACE_TABS,
        tab="contents",
        chips=(Chip("You may see its name", "plain", "eye"),),
        has_access=False,
    )
    view = NamespacePage(
        frame=await object_frame(page_request, address),
        path=address.path,
        heading=heading,
        tab="contents",
        facts=(),
        contents=contents,
        properties=(),
        part=TabPart(),
        note=_NAME_ONLY.format(kind=address.kind.word),
    )
    return html_response(page_request.request, render("namespace.html", view))


def _read(request_view: RequestView, address: ObjectAddress) -> tuple[ObjectDetails, bool]:
    """Return an object's details, and whether the caller may create a namespace in it."""
    details = details_load(request_view, address.kind, levels=address.levels)
    return details, may_create_namespace(request_view, address.levels)


async def contents_part(page_request: PageRequest, address: ObjectAddress) -> ContentsPart:
    """Return the requested page of the children of a catalog or namespace. Raises as `children_list`."""
    after = child_after(page_request.request.query("after"))
    page = await page_request.children(address.scope, address.levels, request=ChildrenRequest(after, ROWS))
    following = ""
    if page.following is not None:
        kind, name = page.following
        following = f"{page_request.base}{address.path}?after={kind.word}:{quote(name)}"
    prefix = quote_path((address.metalake, address.catalog, *address.levels))
    rows = tuple(_row(page_request.base, prefix, child=child) for child in page.children)
    return ContentsPart(
        base=page_request.base,
        version=static_version(),
        rows=rows,
        following=following,
        now_ms=page_request.now_ms,
        begins_inside=after is not None,
    )


def _row(base: str, prefix: str, *, child: ChildObject) -> ChildRow:
    """Return a child as a row. `prefix` is the quoted path of its parent."""
    word = child.kind.word
    return ChildRow(
        name=child.name,
        kind=word.replace("_", " "),
        icon=icon_of(word),
        href=f"{base}/o/{word}/{prefix}/{segment_of(child.name)}",
        format="" if child.node is None else child.node.format,
        owner="" if child.owner is None else child.owner.name,
        comment=child.comment or "",
        changed_ms=child.changed_at,
    )
