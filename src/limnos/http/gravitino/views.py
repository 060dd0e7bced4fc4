"""Views of a schema: the same objects that Iceberg REST serves, under the same rules. List, create, load, alter, drop.

May import `access`, `formats`, `model`, `names`, `services` and this package. Upstream asks nobody for a right here and gives
views no owner; here each route asks for what its twin over Iceberg REST asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.access.actions import Action
from limnos.formats.gravitino.columns import columns_of, schema_of
from limnos.http.gravitino import dto
from limnos.http.gravitino.dto import compact, identifiers, ok
from limnos.http.gravitino.told import Body, names_of, told, told_body
from limnos.http.gravitino.updates import RemoveProperty, Rename, SetProperty, Update, check_key, checked
from limnos.http.routing import ANY_BODY_BYTES, Route
from limnos.model.errors import BadRequest, NotFound
from limnos.names.path import check_gravitino_name
from limnos.services import iceberg_views, views
from limnos.services.objects import codec_of
from limnos.services.scene import Scope

if TYPE_CHECKING:
    from limnos.formats.iceberg.json_types import Json
    from limnos.http.application import Handler
    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.model.entities import Document, Node
    from limnos.names.logical import LogicalCodec
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.scene import Scene

COMMENT = "comment"
"""The property by which Iceberg's clients know a view's comment; here it is a field of its own."""


class Representation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text of a view."""

    dialect: str
    sql: str
    type: str = "sql"


class ViewText(Body, frozen=True):
    """What a view shows: its columns, its texts, and where their names are looked for."""

    columns: tuple[dict[str, object], ...] = ()
    representations: tuple[Representation, ...] = ()
    default_catalog: str | None = None
    default_schema: str | None = None
    comment: str | None = None


class ViewCreate(ViewText, frozen=True, kw_only=True):
    """The body of a create."""

    name: str
    properties: dict[str, str] | None = None


class ReplaceView(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag_field="@type", tag="replaceView"):  # fmt: skip
    """Another text, with its columns and comment."""

    columns: tuple[dict[str, object], ...] = ()
    representations: tuple[Representation, ...] = ()
    default_catalog: str | None = None
    default_schema: str | None = None
    comment: str | None = None


class ViewUpdates(Body, frozen=True):
    """Changes of a view."""

    updates: list[Rename | SetProperty | RemoveProperty | ReplaceView]


class _Version(msgspec.Struct, rename="kebab"):
    version_id: int
    schema_id: int
    representations: list[Representation]
    default_namespace: list[str] = []
    default_catalog: str | None = None


class _Stored(msgspec.Struct, rename="kebab"):
    """What is told of a view's metadata."""

    current_version_id: int
    versions: list[_Version]
    schemas: list[dict[str, object]]
    properties: dict[str, str] = {}


def _encode(node: Node, document: Document, codec: LogicalCodec) -> Json:
    """Tell a view in Gravitino's words."""
    stored = msgspec.json.decode(document.body, type=_Stored)
    current = next(one for one in stored.versions if one.version_id == stored.current_version_id)
    schema = next(one for one in stored.schemas if one.get("schema-id") == current.schema_id)
    properties = dict(stored.properties)
    comment = properties.pop(COMMENT, None)
    return compact(
        name=node.name,
        comment=comment,
        columns=columns_of(schema),
        representations=[{"type": one.type, "dialect": one.dialect, "sql": one.sql} for one in current.representations],
        defaultCatalog=current.default_catalog,
        defaultSchema=codec.join(tuple(current.default_namespace)) if current.default_namespace else None,
        properties=properties,
        audit=dto.audit(node),
    )


def _version(text: ViewText | ReplaceView, codec: LogicalCodec, *, now_ms: int, schema_id: int = -1) -> Json:
    namespace = codec.split(text.default_schema, what="defaultSchema") if text.default_schema else ()
    version: Json = {
        "version-id": 1, "timestamp-ms": now_ms, "schema-id": schema_id, "summary": {},
        "default-namespace": list(namespace),
        "representations": [{"type": one.type, "dialect": one.dialect, "sql": one.sql} for one in text.representations],
    }  # fmt: skip
    return version if text.default_catalog is None else {**version, "default-catalog": text.default_catalog}


async def _at(ctx: Context, scope: Scope, schema: str) -> tuple[Levels, LogicalCodec]:
    codec = await ctx.read(scope, codec_of)
    return codec.split(schema), codec


async def views_list(request: Request, ctx: Context) -> Response:
    """Answer the views of a schema that the caller may see."""
    metalake, catalog, schema = names_of(request)

    def read(scene: Scene) -> list[str]:
        return views.views_list(scene, codec_of(scene).split(schema)).texts()

    return identifiers([metalake, catalog, schema], await ctx.read(Scope(metalake, catalog), read))


async def view_load(request: Request, ctx: Context) -> Response:
    """Answer one view."""
    metalake, catalog, schema, name = names_of(request)

    def read(scene: Scene) -> Json:
        codec = codec_of(scene)
        node = views.view_find(scene, codec.split(schema), name, Action.VIEW_LOAD).entity
        return _encode(node, scene.document(node.id), codec)

    return ok(view=await ctx.read(Scope(metalake, catalog), read))


async def view_create(request: Request, ctx: Context, body: ViewCreate) -> Response:
    """Make a view."""
    metalake, catalog, schema = names_of(request)
    scope = Scope(metalake, catalog)
    namespace, codec = await _at(ctx, scope, schema)
    properties = checked(body.properties) | ({} if body.comment is None else {COMMENT: body.comment})
    version = _version(body, codec, now_ms=ctx.services.store.time.now_ms())
    name = check_gravitino_name(body.name, kind="VIEW")
    wanted = iceberg_views.ViewRequest(name, None, schema_of(list(body.columns)), version, properties)
    made = await iceberg_views.view_create(ctx, scope, namespace=namespace, request=wanted)
    return ok(view=_encode(made.node, made.document, codec))


async def view_alter(request: Request, ctx: Context, body: ViewUpdates) -> Response:
    """Change a view: rename it, which stands alone, or change its text and properties, all at once."""
    metalake, catalog, schema, name = names_of(request)
    scope = Scope(metalake, catalog)
    namespace, codec = await _at(ctx, scope, schema)
    renames = [each.new_name for each in body.updates if isinstance(each, Rename)]
    if renames and len(body.updates) > 1:
        raise BadRequest("A rename of a view stands alone: send the other changes in a request of their own")
    if renames:
        new = check_gravitino_name(renames[0], kind="VIEW")
        moved = await views.view_move(ctx, scope, source=(*namespace, name), target=(*namespace, new))
        return ok(view=_encode(moved.node, moved.document, codec))
    now_ms = ctx.services.store.time.now_ms()
    updates: list[object] = []
    for each in body.updates:
        updates += _iceberg_updates(each, codec, now_ms=now_ms)
    held = await iceberg_views.view_replace(ctx, scope, iceberg_views.Asked(namespace, name, [], updates))
    return ok(view=_encode(held.node, held.document, codec))


def _iceberg_updates(update: Update | ReplaceView, codec: LogicalCodec, *, now_ms: int) -> list[object]:
    """Say a change as Iceberg does."""
    match update:
        case SetProperty(key, value):
            return [{"action": "set-properties", "updates": {check_key(key): value}}]
        case RemoveProperty(key):
            return [{"action": "remove-properties", "removals": [check_key(key)]}]
        case ReplaceView(columns=columns, comment=comment):
            told: Json = (
                {"action": "remove-properties", "removals": [COMMENT]}
                if comment is None
                else {"action": "set-properties", "updates": {COMMENT: comment}}
            )
            return [
                {"action": "add-schema", "schema": schema_of(list(columns))},
                {"action": "add-view-version", "view-version": _version(update, codec, now_ms=now_ms)},
                {"action": "set-current-view-version", "view-version-id": -1},
                told,
            ]
    raise BadRequest("Views are changed by rename, setProperty, removeProperty and replaceView")


async def view_drop(request: Request, ctx: Context) -> Response:
    """Drop a view; a missing one is no failure."""
    metalake, catalog, schema, name = names_of(request)
    scope = Scope(metalake, catalog)
    namespace, _ = await _at(ctx, scope, schema)
    try:
        await views.view_drop(ctx, scope, namespace=namespace, name=name)
    except NotFound as error:
        if error.kind != "view":
            raise
        return ok(dropped=False)
    return ok(dropped=True)


_LIST = "Failed to operate view(s) operation [LIST] under schema [{2}]"
_NEW = "Failed to operate view(s) [{body.name}] operation [CREATE] under schema [{2}]"
_ONE = "Failed to operate view(s) [{3}] operation [%s] under schema [{2}]"
ROUTES: tuple[Route[Handler], ...] = (
    Route("GET", "/metalakes/{m}/catalogs/{c}/schemas/{s}/views", told(_LIST, views_list), "list-schema-views"),
    Route(
        "POST", "/metalakes/{m}/catalogs/{c}/schemas/{s}/views", told_body(_NEW, ViewCreate, view_create), "create-schema-view",
        asks=(Action.VIEW_CREATE,), body_bytes_max=ANY_BODY_BYTES,
    ),
    Route("GET", "/metalakes/{m}/catalogs/{c}/schemas/{s}/views/{v}", told(_ONE % "LOAD", view_load), "load-schema-view"),
    Route(
        "PUT", "/metalakes/{m}/catalogs/{c}/schemas/{s}/views/{v}", told_body(_ONE % "ALTER", ViewUpdates, view_alter), "alter-schema-view",
        asks=(Action.VIEW_ALTER,), body_bytes_max=ANY_BODY_BYTES,
    ),
    Route("DELETE", "/metalakes/{m}/catalogs/{c}/schemas/{s}/views/{v}", told(_ONE % "DROP", view_drop), "drop-schema-view"),
)  # fmt: skip
