"""Views of catalogs that show another Iceberg REST catalog.

May import `access`, `model`, `names`, `services`, `sources` for the shape of a request, and this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from limnos.access.actions import Action
from limnos.http.iceberg.federated_bodies import COMMIT, Loaded, known_of, read_reply, told
from limnos.http.iceberg.federated_leaves import leaf_exists, leaf_of, leaves_list, renamed
from limnos.http.iceberg.paths import levels_of, split
from limnos.http.iceberg.tables import NewName
from limnos.http.iceberg.views import RegisterView, new_view_name
from limnos.http.response import Response, json_response, no_content
from limnos.model.kinds import Kind
from limnos.services.federation import requests as federation
from limnos.services.federation.requests import Thing
from limnos.sources.connectors.capabilities import Call
from limnos.sources.connectors.iceberg_rest import NAMESPACE, VIEW, VIEWS

if TYPE_CHECKING:
    from limnos.http.request import Request
    from limnos.services.request.context import Context
    from limnos.sources.connectors.capabilities import Reply


_NEW_VIEW: Final = ("schema", "view-version", "location", "properties")


async def views_list(request: Request, ctx: Context) -> Response:
    """GET views of a namespace."""
    return await leaves_list(request, ctx, kind=Kind.VIEW, endpoint=f"GET {VIEWS}")


async def view_create(request: Request, ctx: Context) -> Response:
    """POST views."""
    data = await request.body()
    name = new_view_name(request, request.glance(data, NewName).name)
    return await _view_made(
        request, ctx, name=name, sent=known_of(request, data, names=_NEW_VIEW), endpoint=f"POST {VIEWS}"
    )


async def view_register(request: Request, ctx: Context) -> Response:
    """POST register-view."""
    body = request.decode(await request.body(), RegisterView)
    sent: dict[str, object] = {"metadata-location": body.metadata_location}
    name = new_view_name(request, body.name)
    return await _view_made(request, ctx, name=name, sent=sent, endpoint=f"POST {NAMESPACE}/register-view")


async def _view_made(request: Request, ctx: Context, *, name: str, sent: dict[str, object], endpoint: str) -> Response:
    scope, params = split(request, ctx, 1)
    namespace = levels_of(params[0])
    call = Call(endpoint, namespace, name, body=msgspec.json.encode({**sent, "name": name}), taken="view")
    reply, lent = await federation.made(ctx, scope, thing=Thing(Kind.VIEW, call.path, Action.VIEW_CREATE), call=call)
    return told(call, reply, scope=scope, lent=lent, mark="")


async def view_load(request: Request, ctx: Context) -> Response:
    """GET a view."""
    leaf = leaf_of(request, ctx, kind=Kind.VIEW, action=Action.VIEW_LOAD)
    call = leaf.call(f"GET {VIEW}")
    return _view(call, await federation.passed(ctx, leaf.scope, thing=leaf.thing, call=call))


def _view(call: Call, reply: Reply) -> Response:
    whole = read_reply(call, reply, shape=dict[str, msgspec.Raw])
    read_reply(call, reply, shape=Loaded)  # it is one
    return json_response({**whole, "config": {}})


async def view_exists(request: Request, ctx: Context) -> Response:
    """HEAD a view."""
    leaf = leaf_of(request, ctx, kind=Kind.VIEW, action=Action.VIEW_EXISTS)
    return await leaf_exists(ctx, leaf, endpoint=f"HEAD {VIEW}")


async def view_replace(request: Request, ctx: Context) -> Response:
    """POST a view."""
    leaf = leaf_of(request, ctx, kind=Kind.VIEW, action=Action.VIEW_ALTER)
    found, path = known_of(request, await request.body(), names=COMMIT), leaf.thing.path
    sent = {**found, "identifier": {"namespace": path[:-1], "name": path[-1]}}
    call = leaf.call(f"POST {VIEW}", body=msgspec.json.encode(sent))
    return _view(call, await federation.passed(ctx, leaf.scope, thing=leaf.thing, call=call))


async def view_drop(request: Request, ctx: Context) -> Response:
    """DELETE a view."""
    leaf = leaf_of(request, ctx, kind=Kind.VIEW, action=Action.VIEW_DROP)
    await federation.dropped(ctx, leaf.scope, thing=leaf.thing, call=leaf.call(f"DELETE {VIEW}"))
    return no_content()


async def view_rename(request: Request, ctx: Context) -> Response:
    """POST rename of a view."""
    return await renamed(request, ctx, kind=Kind.VIEW, endpoint="POST /views/rename")
