# SPDX-License-Identifier: Apache-2.0
"""Views of a schema: the same objects that Iceberg REST serves, under the same rules. List, create, load, alter, drop.

Gravitino itself checks no rights on views, and its views have no owners. In Limnos each route requires the same right
as over Iceberg REST. In a federated catalog, the views are those of the external Iceberg catalog.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.gravitino.columns import schema_of
from limnos.formats.gravitino.views import (
    COMMENT,
    GravitinoView,
    IcebergViewCreate,
    ViewRepresentation,
    gravitino_view_of,
    text_updates,
    version_of,
)
from limnos.formats.iceberg.json_types import Json
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import ANY_BODY_BYTES, Route
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest
from limnos.names.logical import LogicalCodec
from limnos.names.path import Levels, check_gravitino_name
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import compact, identifiers, ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, names_of, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.namespace_objects import drop_response
from limnos.rooms.gravitino.http.updates import (
    EntityUpdate,
    RemoveProperty,
    RenameUpdate,
    SetProperty,
    check_key,
    check_properties,
)
from limnos.services.catalog import views
from limnos.services.federation import views as source_views
from limnos.services.federation.placeholder_nodes import SourceLookup
from limnos.services.federation.source_objects import VisibleSourceNames
from limnos.services.iceberg import views as iceberg_views
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import is_federated


class ViewText(GravitinoRequestBody, frozen=True, kw_only=True):
    """The content of a view: its columns, its query in each dialect, and the defaults for resolving names in the
    queries.
    """

    columns: tuple[dict[str, object], ...] = ()
    representations: tuple[ViewRepresentation, ...] = ()
    default_catalog: str | None = None
    default_schema: str | None = None
    comment: str | None = None


class ViewCreate(ViewText, frozen=True, kw_only=True):
    """The body of a request to create a view."""

    name: str
    properties: dict[str, str] | None = None


class ReplaceView(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="@type",
    tag="replaceView",
    kw_only=True,
):
    """The change `replaceView`: replaces a view's columns, queries, defaults for resolving names, and comment."""

    columns: tuple[dict[str, object], ...] = ()
    representations: tuple[ViewRepresentation, ...] = ()
    default_catalog: str | None = None
    default_schema: str | None = None
    comment: str | None = None


class ViewUpdates(GravitinoRequestBody, frozen=True):
    """The body of an update of a view: its changes, in order."""

    updates: list[RenameUpdate | SetProperty | RemoveProperty | ReplaceView]


class _ViewSchemaPath(NamedTuple):
    """The schema of a path, the codec of its catalog, and whether the catalog is federated."""

    scope: RequestScope
    namespace: Levels
    codec: LogicalCodec
    is_elsewhere: bool

    def encode_view(self, name: str, view: GravitinoView, *, audit: Json) -> Json:
        """Encode a view for Gravitino's clients."""
        return compact(
            name=name,
            comment=view.comment,
            columns=view.columns,
            representations=view.representations,
            defaultCatalog=view.default_catalog,
            defaultSchema=self.codec.join(view.default_namespace) if view.default_namespace else None,
            properties=view.properties,
            audit=audit,
        )

    def own(self, node: Node, document: MetadataDocument) -> Json:
        """Encode a view that this server stores, not one of an external catalog."""
        return self.encode_view(node.name, gravitino_view_of(document.body), audit=dto.audit(node))

    def of_source(self, view: source_views.FederatedView, name: str) -> Response:
        """Return a response with a view of an external catalog. The creator and the times come from its placeholder
        node.
        """
        audit = dto.audit(view.catalog if view.node is None else view.node)
        return ok(view=self.encode_view(name, view.info, audit=audit))

    def version(self, text: ViewText | ReplaceView, *, now_ms: int) -> Json:
        """Convert the queries of a Gravitino view to an Iceberg view version."""
        default = self.codec.split(text.default_schema, what="defaultSchema") if text.default_schema else ()
        return version_of(
            text.representations, default_catalog=text.default_catalog, default_namespace=default, now_ms=now_ms
        )


def _find_view_schema(request_view: RequestView, schema: str) -> _ViewSchemaPath:
    codec = codec_of(request_view)
    return _ViewSchemaPath(request_view.scope, codec.split(schema), codec, is_federated(request_view))


async def _view_schema_of(request: Request, ctx: Context) -> _ViewSchemaPath:
    """Return the schema in a request's path, with its catalog's codec and whether the catalog is federated."""
    metalake, catalog, schema, *_ = names_of(request)
    return await ctx.read(RequestScope(metalake, catalog), lambda request_view: _find_view_schema(request_view, schema))


async def views_list(request: Request, ctx: Context) -> Response:
    """Return the names of the views of a schema that are visible to the caller."""
    metalake, catalog, schema = names_of(request)

    def read(request_view: RequestView) -> list[str] | VisibleSourceNames:
        place = _find_view_schema(request_view, schema)
        if place.is_elsewhere:
            return source_views.views_visible(request_view, place.namespace)
        return views.views_list(request_view, place.namespace).texts()

    results = await ctx.read(RequestScope(metalake, catalog), read)
    names = await source_views.views_list(ctx, results) if isinstance(results, VisibleSourceNames) else results
    return identifiers([metalake, catalog, schema], names)


async def view_load(request: Request, ctx: Context) -> Response:
    """Return a view with its query in each dialect."""
    metalake, catalog, schema, name = names_of(request)

    def read(request_view: RequestView) -> Json | tuple[_ViewSchemaPath, SourceLookup]:
        place = _find_view_schema(request_view, schema)
        if place.is_elsewhere:
            return place, source_views.find_source_view(request_view, (*place.namespace, name), action=Action.VIEW_LOAD)
        node = views.view_find(request_view, place.namespace, name, Action.VIEW_LOAD).entity
        return place.own(node, request_view.document(node.id))

    loaded_view = await ctx.read(RequestScope(metalake, catalog), read)
    if isinstance(loaded_view, tuple):
        place, source_lookup = loaded_view
        return place.of_source(await source_views.view_load(ctx, source_lookup), name)
    return ok(view=loaded_view)


async def view_create(request: Request, ctx: Context, body: ViewCreate) -> Response:
    """Create a view with its query in one or more dialects. 409 if the name is taken."""
    place = await _view_schema_of(request, ctx)
    properties = check_properties(body.properties) | ({} if body.comment is None else {COMMENT: body.comment})
    version = place.version(body, now_ms=ctx.services.store.time.now_ms())
    name, schema = check_gravitino_name(body.name, kind="VIEW"), schema_of(list(body.columns))
    if place.is_elsewhere:
        create, path = IcebergViewCreate(schema, version, properties), (*place.namespace, name)
        return place.of_source(await source_views.view_create(ctx, place.scope, path=path, definition=create), name)
    view_request = iceberg_views.ViewRequest(
        name=name, location=None, schema=schema, version=version, properties=properties
    )
    state = await iceberg_views.view_create(ctx, place.scope, namespace=place.namespace, request=view_request)
    return ok(view=place.own(state.node, state.document))


async def view_alter(request: Request, ctx: Context, body: ViewUpdates) -> Response:
    """Rename a view, or change its query and properties in one commit. 400 for a rename together with other changes."""
    place, name = await _view_schema_of(request, ctx), names_of(request)[-1]
    renames = [each.new_name for each in body.updates if isinstance(each, RenameUpdate)]
    if renames and len(body.updates) > 1:
        raise BadRequest("A rename of a view must be the only change: send the other changes in a separate request")
    if renames:
        return await _rename_view(ctx, place, name=name, new=check_gravitino_name(renames[0], kind="VIEW"))
    now_ms = ctx.services.store.time.now_ms()
    updates = [update for each in body.updates for update in _iceberg_updates(each, place, now_ms=now_ms)]
    if place.is_elsewhere:
        path = (*place.namespace, name)
        return place.of_source(await source_views.view_alter(ctx, place.scope, path=path, updates=updates), name)
    replacement = iceberg_views.ViewReplaceRequest(
        namespace=place.namespace, name=name, requirements=[], updates=updates
    )
    state = await iceberg_views.view_replace(ctx, place.scope, replacement)
    return ok(view=place.own(state.node, state.document))


async def _rename_view(ctx: Context, place: _ViewSchemaPath, *, name: str, new: str) -> Response:
    source, target = (*place.namespace, name), (*place.namespace, new)
    if place.is_elsewhere:
        return place.of_source(await source_views.view_rename(ctx, place.scope, path=source, target=target), new)
    moved_view = await views.view_move(ctx, place.scope, source=source, target=target)
    return ok(view=place.own(moved_view.node, moved_view.document))


def _iceberg_updates(update: EntityUpdate | ReplaceView, place: _ViewSchemaPath, *, now_ms: int) -> list[object]:
    """Convert a Gravitino change of a view to Iceberg's view updates. Raises BadRequest for an unsupported change."""
    match update:
        case SetProperty(key, value):
            return [{"action": "set-properties", "updates": {check_key(key): value}}]
        case RemoveProperty(key):
            return [{"action": "remove-properties", "removals": [check_key(key)]}]
        case ReplaceView(columns=columns, comment=comment):
            return text_updates(columns, version=place.version(update, now_ms=now_ms), comment=comment)
    raise BadRequest("A view can be changed by rename, setProperty, removeProperty and replaceView")


async def view_drop(request: Request, ctx: Context) -> Response:
    """Drop a view; a missing one is not an error."""
    place, name = await _view_schema_of(request, ctx), names_of(request)[-1]
    if place.is_elsewhere:
        return await drop_response(source_views.view_drop(ctx, place.scope, path=(*place.namespace, name)), "view")
    return await drop_response(views.view_drop(ctx, place.scope, namespace=place.namespace, name=name), "view")


_LIST = "Failed to operate view(s) operation [LIST] under schema [{2}]"
_NEW = "Failed to operate view(s) [{body.name}] operation [CREATE] under schema [{2}]"
_ONE = "Failed to operate view(s) [{3}] operation [%s] under schema [{2}]"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/metalakes/{m}/catalogs/{c}/schemas/{s}/views",
        handler=wrap_handler(_LIST, views_list),
        operation="list-schema-views",
    ),
    Route(
        method="POST",
        path="/metalakes/{m}/catalogs/{c}/schemas/{s}/views",
        handler=wrap_body_handler(_NEW, ViewCreate, view_create),
        operation="create-schema-view",
        asks=(Action.VIEW_CREATE,),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        method="GET",
        path="/metalakes/{m}/catalogs/{c}/schemas/{s}/views/{v}",
        handler=wrap_handler(_ONE % "LOAD", view_load),
        operation="load-schema-view",
    ),
    Route(
        method="PUT",
        path="/metalakes/{m}/catalogs/{c}/schemas/{s}/views/{v}",
        handler=wrap_body_handler(_ONE % "ALTER", ViewUpdates, view_alter),
        operation="alter-schema-view",
        asks=(Action.VIEW_ALTER,),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        method="DELETE",
        path="/metalakes/{m}/catalogs/{c}/schemas/{s}/views/{v}",
        handler=wrap_handler(_ONE % "DROP", view_drop),
        operation="drop-schema-view",
    ),
)
