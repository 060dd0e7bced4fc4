# SPDX-License-Identifier: Apache-2.0
"""Views of federated catalogs, whose source is another Iceberg REST catalog.

Must not know access rules.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.http.iceberg import federated_objects
from limnos.http.iceberg.federated_bodies import (
    COMMIT,
    SourceLoadResponse,
    passed_fields_of,
    read_reply,
    source_load_response,
)
from limnos.http.iceberg.paths import levels_of, split_path
from limnos.http.iceberg.tables import NewTableName
from limnos.http.iceberg.views import RegisterView, new_view_name
from limnos.http.request import Request
from limnos.http.response import Response, json_response, no_content
from limnos.model.kinds import Kind
from limnos.services.federation import forwarded_requests as federation
from limnos.services.federation.forwarded_requests import SourceObjectRequest
from limnos.services.request.context import Context
from limnos.sources.connectors.capabilities import RestCall, RestReply
from limnos.sources.connectors.rest_terms import NAMESPACE, VIEW, VIEWS

_NEW_VIEW: Final = ("schema", "view-version", "location", "properties")


async def views_list(request: Request, ctx: Context) -> Response:
    """List the views of a namespace."""
    return await federated_objects.federated_objects_list(request, ctx, kind=Kind.VIEW, endpoint=f"GET {VIEWS}")


async def view_create(request: Request, ctx: Context) -> Response:
    """Create a view in the source, which the caller then owns here."""
    data = await request.body()
    name = new_view_name(request, request.decode_fields(data, NewTableName).name)
    return await _make_view(
        request, ctx, name=name, sent=passed_fields_of(request, data, names=_NEW_VIEW), endpoint=f"POST {VIEWS}"
    )


async def view_register(request: Request, ctx: Context) -> Response:
    """Register a view in the source from an existing metadata file."""
    body = request.decode(await request.body(), RegisterView)
    source_body: dict[str, object] = {"metadata-location": body.metadata_location}
    name = new_view_name(request, body.name)
    return await _make_view(request, ctx, name=name, sent=source_body, endpoint=f"POST {NAMESPACE}/register-view")


async def _make_view(request: Request, ctx: Context, *, name: str, sent: dict[str, object], endpoint: str) -> Response:
    scope, params = split_path(request, ctx, 1)
    namespace = levels_of(params[0])
    call = RestCall(
        endpoint=endpoint,
        namespace=namespace,
        name=name,
        body=msgspec.json.encode({**sent, "name": name}),
        conflict_meaning="view",
    )
    reply, vending_decision = await federation.forward_create(
        ctx, scope, thing=SourceObjectRequest(Kind.VIEW, call.path, Action.VIEW_CREATE), call=call
    )
    return source_load_response(call, reply, scope=scope, vending_decision=vending_decision, etag_prefix="")


async def view_load(request: Request, ctx: Context) -> Response:
    """Load a view from the source."""
    leaf = federated_objects.federated_object_of(request, ctx, kind=Kind.VIEW, action=Action.VIEW_LOAD)
    call = leaf.call(f"GET {VIEW}")
    return _view(call, await federation.forward_request(ctx, leaf.scope, thing=leaf.thing, call=call))


def _view(call: RestCall, reply: RestReply) -> Response:
    fields = read_reply(call, reply, shape=dict[str, msgspec.Raw])
    read_reply(call, reply, shape=SourceLoadResponse)  # raises an error if the response is not a view
    return json_response({**fields, "config": {}})


async def view_exists(request: Request, ctx: Context) -> Response:
    """Check whether a view exists: 204 or 404."""
    leaf = federated_objects.federated_object_of(request, ctx, kind=Kind.VIEW, action=Action.VIEW_EXISTS)
    return await federated_objects.federated_object_exists(ctx, leaf, endpoint=f"HEAD {VIEW}")


async def view_replace(request: Request, ctx: Context) -> Response:
    """Replace the metadata of a view in the source."""
    leaf = federated_objects.federated_object_of(request, ctx, kind=Kind.VIEW, action=Action.VIEW_ALTER)
    passed_fields, path = passed_fields_of(request, await request.body(), names=COMMIT), leaf.thing.path
    source_body = {**passed_fields, "identifier": {"namespace": path[:-1], "name": path[-1]}}
    call = leaf.call(f"POST {VIEW}", body=msgspec.json.encode(source_body))
    return _view(call, await federation.forward_request(ctx, leaf.scope, thing=leaf.thing, call=call))


async def view_drop(request: Request, ctx: Context) -> Response:
    """Drop a view in the source."""
    leaf = federated_objects.federated_object_of(request, ctx, kind=Kind.VIEW, action=Action.VIEW_DROP)
    await federation.forward_drop(ctx, leaf.scope, thing=leaf.thing, call=leaf.call(f"DELETE {VIEW}"))
    return no_content()


async def view_rename(request: Request, ctx: Context) -> Response:
    """Rename a view in the source; its grants and tags stay attached."""
    return await federated_objects.federated_object_rename(request, ctx, kind=Kind.VIEW, endpoint="POST /views/rename")
