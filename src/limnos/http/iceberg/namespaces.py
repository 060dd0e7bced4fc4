# SPDX-License-Identifier: Apache-2.0
"""Namespace routes: list, create, load, exists, drop, properties.

A namespace's `comment` property is its comment. Its `location` is returned wherever there can be tables, because some
clients choose a table's location below it.

403 or 404: a missing namespace is 404 to a caller who could load it if it had no grants of its own; otherwise 403. For
a catalog that the caller may not use, these routes return 403, and `/v1/config` returns 404.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import msgspec

from limnos.access.actions import Action
from limnos.http.iceberg.pages import join_page, page_request_of
from limnos.http.iceberg.paths import levels_of, split_path
from limnos.http.request import Request
from limnos.http.response import JSON, Response, no_content
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, NotFound, PermissionDenied, PropertyConflict
from limnos.model.records import NamespaceRecord
from limnos.names import iceberg
from limnos.names.path import Levels
from limnos.services.catalog import namespaces
from limnos.services.request.context import Context
from limnos.services.storage.namespace_locations import LOCATION

COMMENT = "comment"


class CreateNamespace(msgspec.Struct):
    """The body of a request to create a namespace."""

    namespace: object
    properties: dict[str, str] | None = None


class UpdateProperties(msgspec.Struct):
    """The body of a properties update."""

    removals: list[str] | None = None
    updates: dict[str, str] | None = None


def properties_of(record: NamespaceRecord) -> dict[str, str]:
    """Return a namespace's properties, with its comment as the property `comment`."""
    comment = {} if record.comment is None else {COMMENT: record.comment}
    return {**record.properties, **comment}


async def namespaces_list(request: Request, ctx: Context) -> Response:
    """List the direct children of the namespace `parent`, or of the catalog, as full paths."""
    scope, _ = split_path(request, ctx, 0)
    parent, again = iceberg.decode_parent(request.query_raw("parent") or b"")
    page_request = page_request_of(request)
    try:
        page = await ctx.read(
            scope, lambda request_view: namespaces.namespaces_list(request_view, parent, page_request)
        )
    except (PermissionDenied, NotFound):
        if again is None:
            raise
        parent = again
        page = await ctx.read(scope, lambda request_view: namespaces.namespaces_list(request_view, again, page_request))
    head = msgspec.json.encode(parent)[:-1] + (b"," if parent else b"")
    return Response(200, join_page(b"namespaces", page, before=head, after=b"]"))


async def namespace_create(request: Request, ctx: Context) -> Response:
    """Create a namespace with its missing parents, all or none; with `parents=false` in the query, missing parents are
    an error.
    """
    scope, _ = split_path(request, ctx, 0)
    body = request.decode(await request.body(), CreateNamespace)
    levels = iceberg.decode_body(body.namespace)
    properties = dict(body.properties or {})
    comment = properties.pop(COMMENT, None)
    parents = request.query_flag("parents", default=True)
    response = await namespaces.namespace_create(
        ctx, scope, levels=levels, comment=comment, properties=properties, parents=parents
    )
    return _answer(levels, *response)


async def replay_namespace_create(request: Request, ctx: Context, namespace_id: int) -> Response:
    """Answer a repeated create with the current namespace. Raises NotFound if another object now has the name."""
    scope, _ = split_path(request, ctx, 0)
    levels = iceberg.decode_body(request.decode(await request.body(), CreateNamespace).namespace)
    action = Action.NAMESPACE_LOAD_ICEBERG
    node, home = await ctx.read(
        scope, lambda request_view: namespaces.namespace_load_home(request_view, levels, action=action)
    )
    if node.id != namespace_id:
        raise NotFound(
            f"Namespace does not exist: {iceberg.render(levels)}: another one has its name now", kind="namespace"
        )
    return _answer(levels, node, home)


async def namespace_load(request: Request, ctx: Context) -> Response:
    """Load the properties of a namespace."""
    scope, params = split_path(request, ctx, 1)
    levels = levels_of(params[0])
    action = Action.NAMESPACE_LOAD_ICEBERG
    comment_and_node = await ctx.read(
        scope, lambda request_view: namespaces.namespace_load_home(request_view, levels, action=action)
    )
    return _answer(levels, *comment_and_node)


async def namespace_exists(request: Request, ctx: Context) -> Response:
    """Check whether a namespace exists: 204 or 404."""
    scope, params = split_path(request, ctx, 1)
    levels = levels_of(params[0])
    action = Action.NAMESPACE_LOAD_ICEBERG
    await ctx.read(scope, lambda request_view: namespaces.namespace_load(request_view, levels, action=action))
    return no_content()


async def namespace_drop(request: Request, ctx: Context) -> Response:
    """Drop an empty namespace. 400 for `cascade=true`."""
    if request.query_flag("cascade"):
        raise BadRequest(
            "Query parameter cascade is not supported, so nothing was dropped: drop the namespace's objects first, then"
            " the namespace itself"
        )
    scope, params = split_path(request, ctx, 1)
    await namespaces.namespace_drop(ctx, scope, levels=levels_of(params[0]))
    return no_content()


async def namespace_properties(request: Request, ctx: Context) -> Response:
    """Set and remove properties of a namespace. The same key in both is refused with 422."""
    scope, params = split_path(request, ctx, 1)
    body = request.decode(await request.body(), UpdateProperties)
    removals, updates = dict.fromkeys(body.removals or []), body.updates or {}
    both = [key for key in removals if key in updates]
    if both:
        raise PropertyConflict(f"Keys are in both removals and updates: {', '.join(both)}; choose one for each")
    seen_keys: set[str] = set()

    def edit(record: NamespaceRecord) -> NamespaceRecord:
        former_properties = properties_of(record)
        seen_keys.clear()
        seen_keys.update(former_properties)
        after = {key: value for key, value in former_properties.items() if key not in removals} | updates
        comment = after.pop(COMMENT, None)
        return replace(record, comment=comment, properties=after)

    def encode_outcome() -> bytes:
        return msgspec.json.encode(
            {
                "updated": list(updates),
                "removed": [key for key in removals if key in seen_keys],
                "missing": [key for key in removals if key not in seen_keys],
            }
        )

    ctx.store_response(lambda _: encode_outcome())  # the response describes the state before the change
    await namespaces.namespace_edit(ctx, scope, levels=levels_of(params[0]), edit=edit)
    return Response(200, encode_outcome())


def _answer(levels: Levels, node: Node, home: str | None) -> Response:
    own = properties_of(cast("NamespaceRecord", node.record))
    properties = own if home is None else own | {LOCATION: home}
    return Response(200, msgspec.json.encode({"namespace": levels, "properties": properties}), (JSON,))
