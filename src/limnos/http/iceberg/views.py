# SPDX-License-Identifier: Apache-2.0
"""View routes: list, create, register, load, exists, replace, drop, rename.

Metadata stays JSON bytes from the store to the response.

403 or 404: a missing view is 404 to a caller who could load it if it had no grants of its own, and to one who works
with tables or creates views in its namespace; otherwise 403. A missing namespace of a list or create is 404 to a caller
who could load it, otherwise 403.
"""

from __future__ import annotations

import msgspec

from limnos.http.iceberg.pages import join_page, page_request_of
from limnos.http.iceberg.paths import levels_of, name_of, referencing_views_of, split_path
from limnos.http.iceberg.tables import RenameTable
from limnos.http.request import Request
from limnos.http.response import JSON, Response, no_content
from limnos.model.entities import MetadataDocument
from limnos.model.errors import NotFound
from limnos.names import iceberg
from limnos.names.errors import InvalidName
from limnos.names.path import Levels, check_part
from limnos.services.catalog import views
from limnos.services.iceberg import views as iceberg_views
from limnos.services.request.context import Context
from limnos.services.request.offloaded_work import REQUEST_BYTES_MAX
from limnos.services.request.request_scope import RequestScope

QUOTES_NAMES = b"PyIceberg/"
"""The prefix of the User-Agent of the client that percent-quotes names in bodies of views (decision record 0009)."""


class CreateView(msgspec.Struct, rename="kebab", kw_only=True):
    """The body of a request to create a view."""

    name: str
    schema: dict[str, object]
    view_version: dict[str, object]
    location: str | None = None
    properties: dict[str, str] | None = None


class LargeViewCreate(msgspec.Struct):
    """The part of a large create request that the server decodes itself. A separate process decodes the whole body."""

    name: str
    location: str | None = None


class NewViewName(msgspec.Struct):
    """The name in the body of a create or register; the other fields are not decoded."""

    name: str


class ReplaceView(msgspec.Struct):
    """The body of a request to replace a view."""

    requirements: list[object] = []
    updates: list[object] = []
    identifier: object = None


class LargeViewReplace(msgspec.Struct):
    """The body of a large replace: checked to be JSON, but not decoded into objects."""

    requirements: msgspec.Raw = msgspec.Raw(b"[]")
    updates: msgspec.Raw = msgspec.Raw(b"[]")


class RegisterView(msgspec.Struct, rename="kebab"):
    """The body of a request to register a view."""

    name: str
    metadata_location: str


async def views_list(request: Request, ctx: Context) -> Response:
    """List the views of a namespace."""
    scope, params = split_path(request, ctx, 1)
    namespace = levels_of(params[0])
    page_request = page_request_of(request)
    page = await ctx.read(scope, lambda request_view: views.views_list(request_view, namespace, page_request))
    prefix = b'{"namespace":' + msgspec.json.encode(namespace) + b',"name":'
    return Response(200, join_page(b"identifiers", page, before=prefix, after=b"}"))


async def view_create(request: Request, ctx: Context) -> Response:
    """Create a view, and write its first metadata file. 409 if the name is taken."""
    scope, params = split_path(request, ctx, 1)
    data = await request.body()
    if len(data) > REQUEST_BYTES_MAX:
        large = request.decode_fields(data, LargeViewCreate)
        view_request = iceberg_views.ViewRequest(
            name=new_view_name(request, large.name),
            location=large.location,
            schema={},
            version={},
            properties=None,
            raw=data,
        )
    else:
        body = request.decode(data, CreateView)
        name = new_view_name(request, body.name)
        view_request = iceberg_views.ViewRequest(
            name=name, location=body.location, schema=body.schema, version=body.view_version, properties=body.properties
        )
    state = await iceberg_views.view_create(ctx, scope, namespace=levels_of(params[0]), request=view_request)
    return _load_response(state.document)


async def view_register(request: Request, ctx: Context) -> Response:
    """Create a view from an existing metadata file. 409 if the name is taken."""
    scope, params = split_path(request, ctx, 1)
    body = request.decode(await request.body(), RegisterView)
    state = await iceberg_views.view_register(
        ctx,
        scope,
        namespace=levels_of(params[0]),
        name=new_view_name(request, body.name),
        metadata_location=body.metadata_location,
    )
    return _load_response(state.document)


async def view_load(request: Request, ctx: Context) -> Response:
    """Load a view's metadata and its location."""
    scope, params = split_path(request, ctx, 2)
    namespace, name, through = levels_of(params[0]), name_of(params[1]), referencing_views_of(request)
    return _load_response(
        await ctx.read(scope, lambda request_view: views.view_load(request_view, namespace, name, through))
    )


async def view_exists(request: Request, ctx: Context) -> Response:
    """Check whether a view exists: 204 or 404."""
    scope, params = split_path(request, ctx, 2)
    namespace, name = levels_of(params[0]), name_of(params[1])
    await ctx.read(scope, lambda request_view: views.view_exists(request_view, namespace, name))
    return no_content()


async def view_replace(request: Request, ctx: Context) -> Response:
    """Replace a view: check the requirements, and apply the updates."""
    scope, params = split_path(request, ctx, 2)
    data = await request.body()
    namespace, name = levels_of(params[0]), name_of(params[1])
    if len(data) > REQUEST_BYTES_MAX:
        request.decode_fields(data, LargeViewReplace)
        view_replace_request = iceberg_views.ViewReplaceRequest(
            namespace=namespace, name=name, requirements=[], updates=[], raw=data
        )
    else:
        body = request.decode(data, ReplaceView)
        view_replace_request = iceberg_views.ViewReplaceRequest(
            namespace=namespace, name=name, requirements=body.requirements, updates=body.updates
        )
    return _load_response((await iceberg_views.view_replace(ctx, scope, view_replace_request)).document)


async def replay_view_create(request: Request, ctx: Context, view_id: int) -> Response:
    """Answer a repeated create or register with the current view.

    Raises NotFound if another object now has the name.
    """
    scope, params = split_path(request, ctx, 1)
    name = new_view_name(request, request.decode_fields(await request.body(), NewViewName).name)
    return _load_response(await _reload_view(ctx, scope, levels_of(params[0]), name, view_id=view_id))


async def replay_view_replace(request: Request, ctx: Context, view_id: int) -> Response:
    """Answer a repeated replace with the current view. Raises NotFound if another object now has the name."""
    scope, params = split_path(request, ctx, 2)
    return _load_response(await _reload_view(ctx, scope, levels_of(params[0]), name_of(params[1]), view_id=view_id))


async def _reload_view(
    ctx: Context, scope: RequestScope, namespace: Levels, name: str, *, view_id: int
) -> MetadataDocument:
    document = await ctx.read(scope, lambda request_view: views.view_load(request_view, namespace, name))
    if document.node_id != view_id:
        text = f"View does not exist: {iceberg.render((*namespace, name))}: another one has its name now"
        raise NotFound(text, kind="view")
    return document


async def view_drop(request: Request, ctx: Context) -> Response:
    """Drop a view without deleting its metadata files."""
    scope, params = split_path(request, ctx, 2)
    await views.view_drop(ctx, scope, namespace=levels_of(params[0]), name=name_of(params[1]))
    return no_content()


async def view_rename(request: Request, ctx: Context) -> Response:
    """Rename a view, move it to another namespace, or both."""
    scope, _ = split_path(request, ctx, 0)
    body = request.decode(await request.body(), RenameTable)
    source, target = (
        (*iceberg.decode_body(each.namespace), check_part(each.name)) for each in (body.source, body.destination)
    )
    await views.view_move(ctx, scope, source=source, target=target)
    return no_content()


def new_view_name(request: Request, name: str) -> str:
    """Return a new view's name, percent-decoded if the client encodes names in bodies (`QUOTES_NAMES`).

    Raises InvalidName for an empty name and for one that is not allowed.
    """
    if not name:
        raise InvalidName("empty-name", "A view needs a name: it is empty")
    if request.headers.get(b"user-agent", b"").startswith(QUOTES_NAMES):
        return name_of(name.encode())
    return check_part(name)


def _load_response(document: MetadataDocument) -> Response:
    location = msgspec.json.encode(document.metadata_location)
    body = b"".join((b'{"metadata-location":', location, b',"metadata":', document.body, b',"config":{}}'))
    return Response(200, body, (JSON,))
