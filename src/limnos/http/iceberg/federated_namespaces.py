# SPDX-License-Identifier: Apache-2.0
"""Namespaces of federated catalogs, whose source is another Iceberg REST catalog.

Must not know access rules.
"""

from __future__ import annotations

import msgspec

from limnos.access.actions import Action
from limnos.http.iceberg.federated_bodies import page_of, read_reply
from limnos.http.iceberg.namespaces import CreateNamespace, UpdateProperties
from limnos.http.iceberg.paths import levels_of, split_path
from limnos.http.request import Request
from limnos.http.response import Response, json_response, no_content
from limnos.model.kinds import Kind
from limnos.names import iceberg
from limnos.services.federation import forwarded_requests as federation
from limnos.services.federation.forwarded_requests import SourceObjectRequest
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.sources.connectors.capabilities import RestCall, RestReply
from limnos.sources.connectors.rest_terms import NAMESPACE, NAMESPACES


async def namespaces_list(request: Request, ctx: Context) -> Response:
    """List the visible namespaces of the source below `parent`."""
    scope, _ = split_path(request, ctx, 0)
    parent, _ = iceberg.decode_parent(request.query_raw("parent") or b"")
    call = RestCall(endpoint=f"GET {NAMESPACES}", namespace=parent, query=page_of(request))
    names = await federation.forward_list(ctx, scope, kind=Kind.NAMESPACE, call=call)
    return json_response({"namespaces": [(*parent, name) for name in names.names], "next-page-token": names.token})


async def namespace_create(request: Request, ctx: Context) -> Response:
    """Create a namespace. The source decides whether missing parents are created."""
    scope, _ = split_path(request, ctx, 0)
    body = request.decode(await request.body(), CreateNamespace)
    levels = iceberg.decode_body(body.namespace)
    source_body = {"namespace": levels, "properties": body.properties or {}}
    call = RestCall(
        endpoint=f"POST {NAMESPACES}",
        namespace=levels,
        body=msgspec.json.encode(source_body),
        conflict_meaning="namespace",
    )
    reply, _ = await federation.forward_create(
        ctx, scope, thing=SourceObjectRequest(Kind.NAMESPACE, levels, Action.NAMESPACE_CREATE), call=call
    )
    return _namespace(call, reply)


def _namespace(call: RestCall, reply: RestReply) -> Response:
    properties = read_reply(call, reply, shape=_NamespaceProperties).properties
    return json_response({"namespace": call.namespace, "properties": properties})


class _NamespaceProperties(msgspec.Struct):
    properties: dict[str, str] | None = None


class _PropertiesUpdate(msgspec.Struct):
    updated: list[str] = []
    removed: list[str] = []
    missing: list[str] | None = None


async def namespace_load(request: Request, ctx: Context) -> Response:
    """Load the properties of a namespace."""
    scope, thing = _one_namespace(request, ctx, action=Action.NAMESPACE_LOAD_ICEBERG)
    call = RestCall(endpoint=f"GET {NAMESPACE}", namespace=thing.path)
    return _namespace(call, await federation.forward_request(ctx, scope, thing=thing, call=call))


async def namespace_exists(request: Request, ctx: Context) -> Response:
    """Check whether a namespace exists: 204 or 404."""
    scope, thing = _one_namespace(request, ctx, action=Action.NAMESPACE_LOAD_ICEBERG)
    await federation.forward_request(
        ctx, scope, thing=thing, call=RestCall(endpoint=f"HEAD {NAMESPACE}", namespace=thing.path)
    )
    return no_content()


async def namespace_drop(request: Request, ctx: Context) -> Response:
    """Drop a namespace in the source."""
    scope, thing = _one_namespace(request, ctx, action=Action.NAMESPACE_DROP)
    await federation.forward_drop(
        ctx,
        scope,
        thing=thing,
        call=RestCall(endpoint=f"DELETE {NAMESPACE}", namespace=thing.path, conflict_meaning="empty"),
    )
    return no_content()


async def namespace_properties(request: Request, ctx: Context) -> Response:
    """Set and remove properties of a namespace."""
    scope, thing = _one_namespace(request, ctx, action=Action.NAMESPACE_ALTER)
    body = request.decode(await request.body(), UpdateProperties)
    source_body = {"removals": list(dict.fromkeys(body.removals or [])), "updates": body.updates or {}}
    call = RestCall(
        endpoint=f"POST {NAMESPACE}/properties", namespace=thing.path, body=msgspec.json.encode(source_body)
    )
    return json_response(
        read_reply(call, await federation.forward_request(ctx, scope, thing=thing, call=call), shape=_PropertiesUpdate)
    )


def _one_namespace(request: Request, ctx: Context, *, action: Action) -> tuple[RequestScope, SourceObjectRequest]:
    scope, params = split_path(request, ctx, 1)
    return scope, SourceObjectRequest(Kind.NAMESPACE, levels_of(params[0]), action)
