"""Namespaces of catalogs that show another Iceberg REST catalog.

May import `access`, `model`, `names`, `services`, `sources` for the shape of a request, and this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.access.actions import Action
from limnos.http.iceberg.federated_bodies import page_of, read_reply
from limnos.http.iceberg.namespaces import CreateNamespace, UpdateProperties
from limnos.http.iceberg.paths import levels_of, split
from limnos.http.response import Response, json_response, no_content
from limnos.model.kinds import Kind
from limnos.names import iceberg
from limnos.services.federation import requests as federation
from limnos.services.federation.requests import Thing
from limnos.sources.connectors.capabilities import Call
from limnos.sources.connectors.iceberg_rest import NAMESPACE, NAMESPACES

if TYPE_CHECKING:
    from limnos.http.request import Request
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scope
    from limnos.sources.connectors.capabilities import Reply


async def namespaces_list(request: Request, ctx: Context) -> Response:
    """GET namespaces."""
    scope, _ = split(request, ctx, 0)
    parent, _ = iceberg.decode_parent(request.query_raw("parent") or b"")
    call = Call(f"GET {NAMESPACES}", parent, query=page_of(request))
    found = await federation.listed(ctx, scope, kind=Kind.NAMESPACE, call=call)
    return json_response({"namespaces": [(*parent, name) for name in found.names], "next-page-token": found.token})


async def namespace_create(request: Request, ctx: Context) -> Response:
    """POST namespaces; missing parents are the source's affair."""
    scope, _ = split(request, ctx, 0)
    body = request.decode(await request.body(), CreateNamespace)
    levels = iceberg.decode_body(body.namespace)
    sent = {"namespace": levels, "properties": body.properties or {}}
    call = Call(f"POST {NAMESPACES}", levels, body=msgspec.json.encode(sent), taken="namespace")
    reply, _ = await federation.made(
        ctx, scope, thing=Thing(Kind.NAMESPACE, levels, Action.NAMESPACE_CREATE), call=call
    )
    return _namespace(call, reply)


def _namespace(call: Call, reply: Reply) -> Response:
    properties = read_reply(call, reply, shape=_Properties).properties
    return json_response({"namespace": call.namespace, "properties": properties})


class _Properties(msgspec.Struct):
    properties: dict[str, str] | None = None


class _Updated(msgspec.Struct):
    updated: list[str] = []
    removed: list[str] = []
    missing: list[str] | None = None


async def namespace_load(request: Request, ctx: Context) -> Response:
    """GET a namespace."""
    scope, thing = _one_namespace(request, ctx, action=Action.NAMESPACE_LOAD_ICEBERG)
    call = Call(f"GET {NAMESPACE}", thing.path)
    return _namespace(call, await federation.passed(ctx, scope, thing=thing, call=call))


async def namespace_exists(request: Request, ctx: Context) -> Response:
    """HEAD a namespace."""
    scope, thing = _one_namespace(request, ctx, action=Action.NAMESPACE_LOAD_ICEBERG)
    await federation.passed(ctx, scope, thing=thing, call=Call(f"HEAD {NAMESPACE}", thing.path))
    return no_content()


async def namespace_drop(request: Request, ctx: Context) -> Response:
    """DELETE a namespace."""
    scope, thing = _one_namespace(request, ctx, action=Action.NAMESPACE_DROP)
    await federation.dropped(ctx, scope, thing=thing, call=Call(f"DELETE {NAMESPACE}", thing.path, taken="empty"))
    return no_content()


async def namespace_properties(request: Request, ctx: Context) -> Response:
    """POST properties."""
    scope, thing = _one_namespace(request, ctx, action=Action.NAMESPACE_ALTER)
    body = request.decode(await request.body(), UpdateProperties)
    sent = {"removals": list(dict.fromkeys(body.removals or [])), "updates": body.updates or {}}
    call = Call(f"POST {NAMESPACE}/properties", thing.path, body=msgspec.json.encode(sent))
    return json_response(read_reply(call, await federation.passed(ctx, scope, thing=thing, call=call), shape=_Updated))


def _one_namespace(request: Request, ctx: Context, *, action: Action) -> tuple[Scope, Thing]:
    scope, params = split(request, ctx, 1)
    return scope, Thing(Kind.NAMESPACE, levels_of(params[0]), action)
