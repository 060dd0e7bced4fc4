# SPDX-License-Identifier: Apache-2.0
"""Schemas: namespaces under their logical names (`A:B:C`). List by parent, create with parents, load, alter, drop.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest, NotFound, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.names.errors import InvalidName
from limnos.names.logical import LogicalCodec
from limnos.names.path import Levels, check_gravitino_name
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import compact, identifiers, ok
from limnos.rooms.gravitino.http.handler_wrappers import NamedBody, names_of, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.updates import PropertyUpdates, check_properties, edits_of
from limnos.services.catalog import namespaces
from limnos.services.federation import schemas as source_schemas
from limnos.services.federation.placeholder_nodes import SourceLookup, find_source_object
from limnos.services.federation.source_objects import VisibleSourceNames
from limnos.services.lance.directories import CatalogDirectory, catalog_directory_of, namespaces_in, properties_in
from limnos.services.lance.table_files import LANCE_FILES
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.name_pages import ALL_NAMES
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import is_root_schema, is_root_visible, is_sourced, require_own, root_load
from limnos.services.upkeep.cascades import namespace_drop_all

COMMENT = "comment"
"""The property in which Iceberg's clients store a namespace's comment; here it is a separate field."""

ROOT_COMMENT = "What lies directly in the catalog"
"""The comment of the schema that represents a Lance catalog itself."""


class _DirectoryListing(NamedTuple):
    """The directory to list for a schema list, and in `beside` the schema that represents the catalog itself, if
    visible to the caller.
    """

    visible_object: CatalogDirectory
    codec: LogicalCodec
    levels: Levels
    beside: tuple[str, ...]


class _SourceListing(NamedTuple):
    """The request for the visible schemas of an external system, and the codec of their names."""

    seen: VisibleSourceNames
    codec: LogicalCodec


def _render_schema_names(codec: LogicalCodec, parent: Levels, *, names: Iterable[str]) -> list[str]:
    """Return the logical names of schemas, without those that would be parsed as other schemas."""
    return [each for name in names if (each := codec.join_or_none((*parent, name))) is not None]


class SchemaCreate(NamedBody, frozen=True):
    """The body of a request to create a schema."""

    comment: str | None = None
    properties: dict[str, str] | None = None


async def schemas_list(request: Request, ctx: Context) -> Response:
    """Return the schemas directly below the catalog, or below `parentSchema`, by their full names."""
    metalake, catalog = names_of(request)
    parent = (request.query("parentSchema") or "").strip()

    def read(request_view: RequestView) -> list[str] | _DirectoryListing | _SourceListing:
        codec = codec_of(request_view)
        if parent and not codec.nested:
            raise UnsupportedOperation(
                f"The catalog [{metalake}.{catalog}] does not support hierarchical schemas, so listing schemas under a "
                "parent schema is not supported."
            )
        levels = codec.split(parent, what="parentSchema") if parent else ()
        if is_sourced(request_view):
            return _SourceListing(source_schemas.schemas_visible(request_view, levels), codec)
        root_names = (request_view.defaults.root_schema,) if not parent and is_root_visible(request_view) else ()
        visible_object = catalog_directory_of(request_view, Action.NAMESPACE_LIST)
        if visible_object is not None:
            return _DirectoryListing(visible_object, codec, levels, root_names)
        names = namespaces.namespaces_list(request_view, levels).texts()
        return _render_schema_names(codec, levels, names=sorted([*names, *root_names]) if root_names else names)

    results = await ctx.read(RequestScope(metalake, catalog), read)
    if isinstance(results, _SourceListing):
        names = await source_schemas.schemas_list(ctx, results.seen)
        results = _render_schema_names(results.codec, results.seen.path, names=names)
    if isinstance(results, _DirectoryListing):
        contents = await LANCE_FILES.of(ctx.services).directory_open(ctx, results.visible_object)
        texts = namespaces_in(contents, results.levels, page_request=ALL_NAMES).names
        results = _render_schema_names(results.codec, results.levels, names=sorted([*texts, *results.beside]))
    return identifiers([metalake, catalog], results)


async def schema_create(request: Request, ctx: Context, body: SchemaCreate) -> Response:
    """Create a schema and its missing parents."""
    metalake, catalog = names_of(request)
    scope = RequestScope(metalake, catalog)
    codec, sourced = await ctx.read(scope, lambda request_view: (codec_of(request_view), is_sourced(request_view)))
    levels = codec.split(body.name)
    properties = check_properties(body.properties)
    comment = properties.pop(COMMENT, None) if body.comment is None else body.comment
    properties.pop(COMMENT, None)
    if sourced:
        schema = await source_schemas.schema_create(ctx, scope, path=levels, comment=comment, properties=properties)
        return ok(schema=_source_schema(schema, codec.join(levels)))
    node, _ = await namespaces.namespace_create(
        ctx, scope, levels=levels, comment=comment, properties=properties, check=partial(_check_new_name, codec)
    )
    return ok(schema=dto.schema(node, codec.join(levels)))


def _check_new_name(codec: LogicalCodec, part: str) -> str:
    """Return a part of a new schema's name. Raises InvalidName if it does not match Gravitino's pattern.

    In a catalog whose names may contain the separator, the separator is allowed, too.
    """
    if not codec.holds_separator:
        return check_gravitino_name(part)
    try:
        check_gravitino_name(part.replace(codec.separator, "_"))
    except InvalidName:
        return check_gravitino_name(part)  # again with the original name, for the message
    return part


def _source_schema(schema: source_schemas.FederatedSchema, name: str) -> dict[str, object]:
    """Encode a schema of an external system. Creator and times come from its placeholder node."""
    info = schema.info
    audit = dto.audit(schema.catalog if schema.node is None else schema.node)
    return compact(name=name, comment=info.comment, properties=info.properties, audit=audit)


async def schema_load(request: Request, ctx: Context) -> Response:
    """Return a schema with its comment and properties."""
    metalake, catalog, name = names_of(request)

    def read(request_view: RequestView) -> dict[str, object] | tuple[CatalogDirectory, Levels] | SourceLookup:
        levels = codec_of(request_view).split(name)
        if is_sourced(request_view):
            return find_source_object(request_view, Kind.NAMESPACE, path=levels, action=Action.NAMESPACE_LOAD)
        if is_root_schema(request_view, levels):
            return compact(name=name, comment=ROOT_COMMENT, properties={}, audit=dto.audit(root_load(request_view)))
        visible_object = catalog_directory_of(request_view, Action.NAMESPACE_LOAD)
        return (
            dto.schema(namespaces.namespace_load(request_view, levels), name)
            if visible_object is None
            else (visible_object, levels)
        )

    fields = await ctx.read(RequestScope(metalake, catalog), read)
    if isinstance(fields, dict):
        return ok(schema=fields)
    if isinstance(fields, SourceLookup):
        return ok(schema=_source_schema(await source_schemas.schema_load(ctx, fields), name))
    visible_object, levels = fields
    properties = properties_in(await LANCE_FILES.of(ctx.services).directory_open(ctx, visible_object), levels)
    return ok(schema=compact(name=name, properties=properties, audit=dto.audit(visible_object.catalog)))


async def schema_alter(request: Request, ctx: Context, body: PropertyUpdates) -> Response:
    """Set and remove properties of a schema; the schemas below it are not changed."""
    metalake, catalog, name = names_of(request)
    scope = RequestScope(metalake, catalog)
    levels, sourced = await _resolve_levels(ctx, scope, name=name)
    edits = edits_of(body.updates)
    if sourced:  # in a source the comment is an ordinary property
        altered = await source_schemas.schema_alter(
            ctx, scope, path=levels, sets=dict(edits.sets), removes=edits.removes
        )
        return ok(schema=_source_schema(altered, name))
    edits = _without_comment(edits)
    return ok(schema=dto.schema(await namespaces.namespace_alter(ctx, scope, levels=levels, edits=edits), name))


async def _resolve_levels(ctx: Context, scope: RequestScope, *, name: str) -> tuple[Levels, bool]:
    """Return the levels of a schema to change, and whether it belongs to an external system.

    Raises UnsupportedOperation for the schema that represents its catalog.
    """

    def read(request_view: RequestView) -> tuple[Levels, bool]:
        levels = codec_of(request_view).split(name)
        require_own(request_view, levels)
        return levels, is_sourced(request_view)

    return await ctx.read(scope, read)


def _without_comment(edits: PropertyEdits) -> PropertyEdits:
    """Convert changes of the property `comment` to changes of the schema's comment."""
    if COMMENT not in edits.sets and COMMENT not in edits.removes:
        return edits
    sets = {key: value for key, value in edits.sets.items() if key != COMMENT}
    removes = tuple(key for key in edits.removes if key != COMMENT)
    comment = edits.sets.get(COMMENT)
    return replace(edits, comment=comment, clears_comment=comment is None, sets=sets, removes=removes)


async def schema_drop(request: Request, ctx: Context) -> Response:
    """Drop an empty schema, or with `cascade` also its content, if the provider supports that; a missing schema is not
    an error.
    """
    metalake, catalog, name = names_of(request)
    cascade = request.query_flag("cascade")
    scope = RequestScope(metalake, catalog)
    levels, sourced = await _resolve_levels(ctx, scope, name=name)
    try:
        if cascade and not sourced:
            await namespace_drop_all(ctx, scope, levels=levels)
        elif cascade:
            raise BadRequest(
                "Parameter cascade is not supported for catalogs of other systems, so nothing was dropped: drop the"
                " objects of the schema first, then the schema itself"
            )
        elif sourced:
            await source_schemas.schema_drop(ctx, scope, path=levels)
        else:
            await namespaces.namespace_drop(ctx, scope, levels=levels, named=name)
    except NotFound as error:
        if error.kind != "namespace":
            raise
        return ok(dropped=False)
    return ok(dropped=True)


_LIST = "Failed to operate schema(s) operation [LIST] under catalog [{1}]"
_NEW = "Failed to operate schema(s) [{body.name}] operation [CREATE] under catalog [{1}]"
_ONE = "Failed to operate schema(s) [{2}] operation [%s] under catalog [{1}]"
_SCHEMAS = "/metalakes/{m}/catalogs/{c}/schemas"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=_SCHEMAS,
        handler=wrap_handler(_LIST, schemas_list),
        operation="list-schemas",
        query=("parentSchema",),
    ),
    Route(
        method="POST",
        path=_SCHEMAS,
        handler=wrap_body_handler(_NEW, SchemaCreate, schema_create),
        operation="create-schema",
        asks=(Action.NAMESPACE_CREATE,),
    ),
    Route(
        method="GET",
        path=f"{_SCHEMAS}/{{s}}",
        handler=wrap_handler(_ONE % "LOAD", schema_load),
        operation="load-schema",
    ),
    Route(
        method="PUT",
        path=f"{_SCHEMAS}/{{s}}",
        handler=wrap_body_handler(_ONE % "ALTER", PropertyUpdates, schema_alter),
        operation="alter-schema",
        asks=(Action.NAMESPACE_ALTER,),
    ),
    Route(
        method="DELETE",
        path=f"{_SCHEMAS}/{{s}}",
        handler=wrap_handler(_ONE % "DROP", schema_drop),
        operation="drop-schema",
        query=("cascade",),
    ),
)
