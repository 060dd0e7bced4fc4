# SPDX-License-Identifier: Apache-2.0
"""Pages of schemas, tables, views and topics of external systems, read from the system at each request.

Has no business rules: the services decide who may load an object, and call its system in a thread with a deadline. The
pages change nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from limnos.access.actions import Action
from limnos.http.response import Response
from limnos.model.errors import NotFound, SourceFailed
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.external.descriptions import (
    ExternalDescription,
    schema_description,
    table_description,
    topic_description,
    view_description,
)
from limnos.rooms.console.http.external.failures import external_response, failed_frame, failure_text
from limnos.rooms.console.http.namespaces import ContentsPart, NamespacePage, contents_part
from limnos.rooms.console.http.object_tabs import EXTERNAL_NAMESPACE_TABS, OTHER_TABS
from limnos.rooms.console.http.other_objects import ObjectPage
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.sheets import TabPart
from limnos.rooms.console.http.tabs import Chip, Fact, ObjectHeading, heading_of, object_frame, properties_of, tab_of
from limnos.services.federation.placeholder_nodes import SourceLookup, find_source_object
from limnos.services.federation.schemas import schema_load
from limnos.services.federation.tables import table_load
from limnos.services.federation.topics import topic_load
from limnos.services.federation.views import find_source_view, view_load
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView

Load = Callable[[Context, SourceLookup], Awaitable[ExternalDescription]]


async def _load_schema(ctx: Context, lookup: SourceLookup) -> ExternalDescription:
    return schema_description((await schema_load(ctx, lookup)).info)


async def _load_table(ctx: Context, lookup: SourceLookup) -> ExternalDescription:
    return table_description((await table_load(ctx, lookup)).info)


async def _load_view(ctx: Context, lookup: SourceLookup) -> ExternalDescription:
    return view_description((await view_load(ctx, lookup)).info)


async def _load_topic(ctx: Context, lookup: SourceLookup) -> ExternalDescription:
    topic = await topic_load(ctx, lookup)
    return topic_description(topic.info, topic.comment)


_LOADS: Final[Mapping[Kind, Load]] = {
    Kind.NAMESPACE: _load_schema,
    Kind.TABLE: _load_table,
    Kind.VIEW: _load_view,
    Kind.TOPIC: _load_topic,
}
_ACTIONS: Final[Mapping[Kind, Action]] = {
    Kind.NAMESPACE: Action.NAMESPACE_LOAD,
    Kind.TABLE: Action.TABLE_LOAD,
    Kind.TOPIC: Action.TOPIC_LOAD,
}
"""The action that loads an object, by kind; views have a lookup function of their own."""


async def external_page(page_request: PageRequest, address: ObjectAddress) -> Response:
    """Show an object of an external system. If the system fails or exceeds its deadline, the page
    has the message of the failure.
    """
    if address.kind not in _LOADS:
        raise NotFound(
            f"{address.kind.word.capitalize()} does not exist: {display.render(address.levels)}", kind="object"
        )
    lookup = await page_request.ctx.read(address.scope, lambda view: _look_up(view, address))
    is_namespace = address.kind is Kind.NAMESPACE
    tab = tab_of(page_request, EXTERNAL_NAMESPACE_TABS) if is_namespace else "about"
    contents: ContentsPart | None = None
    description, failure = ExternalDescription(), None
    try:
        description = await _LOADS[address.kind](page_request.ctx, lookup)
        if is_namespace and tab == "contents":
            contents = await contents_part(page_request, address)
    except SourceFailed as error:
        failure = error
    if page_request.is_part and contents is not None:
        return html_response(page_request.request, render("part_rows.html", contents))
    heading = heading_of(
        page_request,
        address,
        details=None,
        tabs=EXTERNAL_NAMESPACE_TABS if is_namespace else OTHER_TABS,
        tab=tab,
        chips=(Chip(address.kind.word), Chip(lookup.origin.provider)),
        comment=description.comment,
        has_access=lookup.node is not None,
    )
    if is_namespace:
        return await _namespace_response(
            page_request, address, heading=heading, description=description, contents=contents, tab=tab, failure=failure
        )
    frame = await (object_frame(page_request, address) if failure is None else failed_frame(page_request, address))
    page = ObjectPage(
        frame=frame,
        heading=heading,
        facts=_FACTS,
        blocks=description.blocks,
        lists=description.lists,
        properties=properties_of(description.properties),
        warning="" if failure is None else failure_text(address.catalog, failure),
    )
    return external_response(page_request, render("object.html", page), failure=failure)


_FACTS: Final = (Fact(label="Read", text="from the external system, for this page"),)


async def _namespace_response(
    page_request: PageRequest,
    address: ObjectAddress,
    *,
    heading: ObjectHeading,
    description: ExternalDescription,
    contents: ContentsPart | None,
    tab: str,
    failure: SourceFailed | None,
) -> Response:
    frame = await (object_frame(page_request, address) if failure is None else failed_frame(page_request, address))
    page = NamespacePage(
        frame=frame,
        path=address.path,
        heading=heading,
        tab=tab,
        facts=_FACTS,
        contents=contents
        or ContentsPart(base="", version="", rows=(), following="", now_ms=page_request.now_ms, begins_inside=False),
        properties=properties_of(description.properties),
        part=TabPart(),
        warning="" if failure is None else failure_text(address.catalog, failure),
    )
    return external_response(page_request, render("namespace.html", page), failure=failure)


def _look_up(request_view: RequestView, address: ObjectAddress) -> SourceLookup:
    """Authorize the load of an object of an external system. Raises PermissionDenied, NotInUse."""
    if address.kind is Kind.VIEW:
        return find_source_view(request_view, address.levels, action=Action.VIEW_LOAD)
    return find_source_object(request_view, address.kind, path=address.levels, action=_ACTIONS[address.kind])
