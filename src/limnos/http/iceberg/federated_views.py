"""Views of catalogs that show another Iceberg REST catalog.

May import `access`, `model`, `names`, `services`, `sources` for the shape of a request, and this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from limnos.access.actions import Action
from limnos.http.iceberg.federated_bodies import COMMIT, Loaded, known_of, read_reply, told
from limnos.http.iceberg.federated_tables import leaves_list, renamed
from limnos.http.iceberg.paths import levels_of, name_of, split
from limnos.http.iceberg.tables import NewName
from limnos.http.iceberg.views import RegisterView, new_view_name
from limnos.http.response import Response, json_response, no_content
from limnos.model.kinds import Kind
from limnos.services import federation
from limnos.services.federation import Thing
from limnos.sources.connectors.capabilities import Call
from limnos.sources.connectors.iceberg_rest import NAMESPACE, VIEW, VIEWS

if TYPE_CHECKING:
    from limnos.http.request import Request
    from limnos.services.context import Context
    from limnos.services.scene import Scope
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


def _one_view(request: Request, ctx: Context, *, action: Action) -> tuple[Scope, Thing]:
    scope, params = split(request, ctx, 2)
    path = (*levels_of(params[0]), name_of(params[1]))
    return scope, Thing(Kind.VIEW, path, action, Action.VIEW_MAY_PROBE)


async def view_load(request: Request, ctx: Context) -> Response:
    """GET a view."""
    scope, thing = _one_view(request, ctx, action=Action.VIEW_LOAD)
    call = Call(f"GET {VIEW}", thing.path[:-1], thing.path[-1], missing="view")
    reply = await federation.passed(ctx, scope, thing=thing, call=call)
    return _view(call, reply)


def _view(call: Call, reply: Reply) -> Response:
    whole = read_reply(call, reply, shape=dict[str, msgspec.Raw])
    read_reply(call, reply, shape=Loaded)  # it is one
    return json_response({**whole, "config": {}})


async def view_exists(request: Request, ctx: Context) -> Response:
    """HEAD a view."""
    scope, thing = _one_view(request, ctx, action=Action.VIEW_EXISTS)
    call = Call(f"HEAD {VIEW}", thing.path[:-1], thing.path[-1], missing="view")
    await federation.passed(ctx, scope, thing=thing, call=call)
    return no_content()


async def view_replace(request: Request, ctx: Context) -> Response:
    """POST a view."""
    scope, thing = _one_view(request, ctx, action=Action.VIEW_ALTER)
    namespace, name = thing.path[:-1], thing.path[-1]
    sent = {
        **known_of(request, await request.body(), names=COMMIT), "identifier": {"namespace": namespace, "name": name},
    }  # fmt: skip
    call = Call(f"POST {VIEW}", namespace, name, body=msgspec.json.encode(sent), missing="view")
    return _view(call, await federation.passed(ctx, scope, thing=thing, call=call))


async def view_drop(request: Request, ctx: Context) -> Response:
    """DELETE a view."""
    scope, thing = _one_view(request, ctx, action=Action.VIEW_DROP)
    call = Call(f"DELETE {VIEW}", thing.path[:-1], thing.path[-1], missing="view")
    await federation.dropped(ctx, scope, thing=thing, call=call)
    return no_content()


async def view_rename(request: Request, ctx: Context) -> Response:
    """POST rename of a view."""
    return await renamed(request, ctx, kind=Kind.VIEW, endpoint="POST /views/rename")
