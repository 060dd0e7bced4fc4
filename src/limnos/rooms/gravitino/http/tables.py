# SPDX-License-Identifier: Apache-2.0
"""Tables of a schema, of any format: the same objects that Iceberg REST and Lance REST serve, under the same rules.

Iceberg tables are created, changed and dropped here too. `formats.gravitino` parses a change, which becomes a commit
like any other. Lance tables are only listed and loaded.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.gravitino import lance_columns
from limnos.formats.gravitino.partitions import distribution_of
from limnos.formats.gravitino.tables import (
    COMMENT,
    GravitinoCreate,
    TableChange,
    commit_of,
    iceberg_create_of,
    iceberg_metadata_of,
    table_json,
)
from limnos.formats.iceberg.json_types import Json
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import ANY_BODY_BYTES, Route
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege, parse_privilege
from limnos.model.records import BLANK_TABLE
from limnos.names.path import Levels, check_gravitino_name
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import compact, identifiers, ok
from limnos.rooms.gravitino.http.handler_wrappers import (
    GravitinoRequestBody,
    NamedBody,
    names_of,
    wrap_body_handler,
    wrap_handler,
)
from limnos.rooms.gravitino.http.namespace_objects import SchemaPath, drop_response, object_path_of, schema_path_of
from limnos.rooms.gravitino.http.updates import VariedUpdate
from limnos.services.catalog import tables
from limnos.services.federation import tables as source_tables
from limnos.services.federation.placeholder_nodes import SourceLookup, find_source_object
from limnos.services.federation.source_objects import VisibleSourceNames
from limnos.services.iceberg import restricted_tables
from limnos.services.iceberg import tables as iceberg_tables
from limnos.services.iceberg.table_evolution import table_evolve
from limnos.services.iceberg.tables import TableRequest
from limnos.services.lance.directories import CatalogDirectory, catalog_directory_of, tables_in
from limnos.services.lance.table_files import LANCE_FILES, TableDescription
from limnos.services.lance.tables import tables_page
from limnos.services.request.cache_validity import cache_validity_of
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.name_pages import ALL_NAMES
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, LANCE, SOURCE, format_of, is_sourced, levels_within

_NO_ICEBERG_PARTITIONS = (
    "Partitions of an Iceberg table cannot be managed directly: partition transforms derive them from the rows. See"
    " `partitioning` of the table, and query the metadata table `partitions` in an engine"
)
_NO_SOURCE_PARTITIONS = "The partitions of a table of an external system are not served: read them in that system"


class TableCreate(NamedBody, frozen=True, kw_only=True):
    """The body of a request to create a table."""

    columns: list[dict[str, object]]
    comment: str | None = None
    properties: dict[str, str] | None = None
    sort_orders: list[dict[str, object]] | None = None
    distribution: dict[str, object] | None = None
    partitioning: list[dict[str, object]] | None = None
    indexes: list[dict[str, object]] | None = None


class RenameTable(VariedUpdate, frozen=True, tag="rename"):
    """The change of a table's name, and optionally of its schema."""

    new_name: str
    new_schema_name: str | None = None


class TableUpdates(GravitinoRequestBody, frozen=True):
    """The body of an update of a table: its changes, in order."""

    updates: list[RenameTable | TableChange]


async def tables_list(request: Request, ctx: Context) -> Response:
    """Return the names of the tables of a schema that are visible to the caller."""
    metalake, catalog, schema = names_of(request)

    def read(request_view: RequestView) -> Response | list[str] | tuple[CatalogDirectory, Levels] | VisibleSourceNames:
        levels = levels_within(request_view, codec_of(request_view).split(schema))
        if format_of(request_view) == SOURCE:
            return source_tables.tables_visible(request_view, levels)
        if format_of(request_view) != LANCE:
            response = identifiers([metalake, catalog, schema], tables.tables_list(request_view, levels).texts())
            response.validity = cache_validity_of(request_view, ctx.credential) if request.is_cacheable else None
            return response
        visible_object = catalog_directory_of(request_view, Action.TABLE_LIST)
        return (
            tables_page(request_view, levels, page_request=ALL_NAMES).texts()
            if visible_object is None
            else (visible_object, levels)
        )

    loaded_names = await ctx.read(RequestScope(metalake, catalog), read)
    if isinstance(loaded_names, Response):
        return loaded_names
    if isinstance(loaded_names, VisibleSourceNames):
        loaded_names = await source_tables.tables_list(ctx, loaded_names)
    if isinstance(loaded_names, tuple):
        visible_object, levels = loaded_names
        contents = await LANCE_FILES.of(ctx.services).directory_open(ctx, visible_object)
        loaded_names = tables_in(contents, levels, page_request=ALL_NAMES, declared=True).names
    return identifiers([metalake, catalog, schema], loaded_names)


class _RestrictedTable(NamedTuple):
    """A table to encode for a restricted user: its node and its visible document."""

    node: Node
    visible_object: restricted_tables.TableVisibility


async def table_load(request: Request, ctx: Context) -> Response:
    """Return one table with its columns; those of a Lance table are read from its files.

    The query `privileges` may require more than the right to load.
    """
    metalake, catalog, schema, name = names_of(request)
    scope, action = RequestScope(metalake, catalog), _action(request)

    def read(request_view: RequestView) -> Levels | Response | SourceLookup | _RestrictedTable:
        levels = levels_within(request_view, codec_of(request_view).split(schema))
        if format_of(request_view) == SOURCE:
            return find_source_object(request_view, Kind.TABLE, path=(*levels, name), action=action)
        if format_of(request_view) == LANCE:
            if action is not Action.TABLE_LOAD:
                tables.table_find(request_view, levels, name, action, required_format=LANCE)
            return (*levels, name)
        if (
            action is Action.TABLE_LOAD
            and (visible_object := restricted_tables.table_visibility(request_view, (*levels, name))).bound is not None
        ):
            return _RestrictedTable(request_view.node(visible_object.document.node_id), visible_object)
        node = tables.table_find(request_view, levels, name, action).entity
        response = ok(table=_iceberg_table(node, request_view.document(node.id)))
        if request.is_cacheable:
            about = (Kind.TABLE, (*levels, name), action)
            response.validity = cache_validity_of(request_view, ctx.credential, about=about, document=True)
        return response

    result = await ctx.read(scope, read)
    if isinstance(result, Response):
        return result
    if isinstance(result, SourceLookup):
        return ok(table=_source_table(await source_tables.table_load(ctx, result), name=name))
    if isinstance(result, _RestrictedTable):
        return ok(
            table=_iceberg_table(result.node, await restricted_tables.document_for_caller(ctx, result.visible_object))
        )
    state = await LANCE_FILES.of(ctx.services).describe(ctx, scope, levels=result)
    return ok(table=_lance_table(state, name=name))


def _action(request: Request) -> Action:
    """Return the action of a load: if the query names MODIFY_TABLE, the caller needs the right to alter the table.

    Raises BadRequest for a privilege other than SELECT_TABLE and MODIFY_TABLE, IllegalPrivilege for an unknown one.
    """
    text = request.query("privileges") or ""
    privileges = {parse_privilege(each) for each in text.split(",") if each.strip()}
    if not privileges <= {Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE}:
        raise BadRequest("Query parameter privileges must name SELECT_TABLE, MODIFY_TABLE or both")
    return Action.TABLE_ALTER if Privilege.MODIFY_TABLE in privileges else Action.TABLE_LOAD


async def table_create(request: Request, ctx: Context, *, body: TableCreate) -> Response:
    """Create an Iceberg table; in a connector catalog, a table of the external system. 409 if the name is taken."""
    schema_path = schema_path_of(request)
    scope = schema_path.scope
    path, draft = await iceberg_tables.new_table_located(
        ctx, scope, path_of=lambda request_view: (*schema_path.levels(request_view), body.name)
    )
    create = GravitinoCreate(
        comment=body.comment,
        columns=body.columns,
        properties=body.properties or {},
        partitioning=body.partitioning or (),
        sort_orders=body.sort_orders or (),
        distribution=body.distribution,
        indexes=body.indexes or (),
    )
    if draft is None:
        table = await source_tables.table_create(ctx, scope, path=path, definition=create)
        return ok(table=_source_table(table, name=body.name))
    iceberg_create = iceberg_create_of(create)
    table_request = TableRequest(
        name=check_gravitino_name(body.name, kind="TABLE"),
        location=iceberg_create.location,
        schema=iceberg_create.schema,
        partition_spec=iceberg_create.partition_spec,
        write_order=iceberg_create.write_order,
        properties=iceberg_create.properties,
    )
    document, _ = await iceberg_tables.table_create(ctx, scope, namespace=path[:-1], request=table_request, draft=draft)
    node = Node(
        id=document.node_id,
        zone=0,
        parent_id=0,
        kind=Kind.TABLE,
        name_space="",
        name=table_request.name,
        format=ICEBERG,
        implicit=False,
        created_by=draft.permit.actor,
        created_at=ctx.services.store.time.now_ms(),
        modified_by=None,
        modified_at=None,
        revision=0,
        record=BLANK_TABLE,
    )
    return ok(table=_iceberg_table(node, document))  # nothing is read after the commit: that could fail


async def table_alter(request: Request, ctx: Context, *, body: TableUpdates) -> Response:
    """Rename or move a table, or change its comment, columns and properties in one commit.

    400 for a rename together with other changes, 405 for a Lance table.
    """
    schema_path, name = object_path_of(request)
    path, sourced = await schema_path.find(ctx, name)
    renames = [each for each in body.updates if isinstance(each, RenameTable)]
    if renames:
        if len(body.updates) > 1:
            raise BadRequest(
                "A rename of a table must be the only change: send the other changes in a separate request"
            )
        return await (_rename_source_table if sourced else _rename_table)(
            ctx, schema_path, path=path, rename=renames[0]
        )
    changes = [each for each in body.updates if not isinstance(each, RenameTable)]
    if sourced:
        altered = await source_tables.table_alter(ctx, schema_path.scope, path=path, changes=changes)
        return ok(table=_source_table(altered, name=name))

    def build(document: MetadataDocument) -> tuple[list[object], list[object]]:
        return commit_of(iceberg_metadata_of(document.body), changes)

    await ctx.read(
        schema_path.scope, lambda request_view: _require_changing(request_view, path, action=Action.TABLE_ALTER)
    )
    table = await table_evolve(ctx, schema_path.scope, path=path, build=build)
    return ok(table=_iceberg_table(table.node, table.document))


def _require_changing(request_view: RequestView, path: Levels, *, action: Action) -> None:
    """Raise UnsupportedOperation for a Lance table, which only Lance REST changes.

    Raises NotFound or PermissionDenied instead if the caller may not perform `action` on the Lance table.
    """
    if format_of(request_view) == LANCE:
        tables.table_find(request_view, path[:-1], path[-1], action, required_format=LANCE)
        raise UnsupportedOperation(
            f"Catalog {request_view.catalog.name} holds Lance tables, which Lance REST changes, and not Gravitino REST"
        )


async def _rename_table(ctx: Context, schema_path: SchemaPath, *, path: Levels, rename: RenameTable) -> Response:
    into = path[:-1]
    if rename.new_schema_name is not None:
        other = schema_path._replace(schema=rename.new_schema_name)
        into = await ctx.read(schema_path.scope, other.levels)
    target = (*into, check_gravitino_name(rename.new_name, kind="TABLE"))
    await ctx.read(
        schema_path.scope, lambda request_view: _require_changing(request_view, path, action=Action.TABLE_RENAME)
    )
    action = Action.TABLE_RENAME if into == path[:-1] else Action.TABLE_MOVE

    def look(request_view: RequestView) -> tuple[Node, MetadataDocument]:
        node = tables.table_find(request_view, path[:-1], path[-1], action).entity
        return node, request_view.document(node.id)

    node, document = await ctx.read(schema_path.scope, look)
    await tables.table_move(ctx, schema_path.scope, source=path, target=target, required_format=node.format)
    return ok(table=_iceberg_table(msgspec.structs.replace(node, name=target[-1]), document))


async def _rename_source_table(ctx: Context, schema_path: SchemaPath, *, path: Levels, rename: RenameTable) -> Response:
    into = path[:-1]
    if rename.new_schema_name is not None:
        other = schema_path._replace(schema=rename.new_schema_name)
        into = await ctx.read(schema_path.scope, other.levels)
    table = await source_tables.table_rename(ctx, schema_path.scope, path=path, target=(*into, rename.new_name))
    return ok(table=_source_table(table, name=rename.new_name))


async def table_drop(request: Request, ctx: Context) -> Response:
    """Drop a table; with `purge` also its files. A missing table is not an error."""
    schema_path, name = object_path_of(request)
    (path, sourced), purge = await schema_path.find(ctx, name), request.query_flag("purge")
    if sourced:
        return await drop_response(source_tables.table_drop(ctx, schema_path.scope, path=path, purge=purge), "table")
    await ctx.read(
        schema_path.scope, lambda request_view: _require_changing(request_view, path, action=Action.TABLE_DROP)
    )
    return await drop_response(
        tables.table_drop(ctx, schema_path.scope, namespace=path[:-1], name=path[-1], purge=purge), "table"
    )


async def partitions(request: Request, ctx: Context) -> Response:
    """Refuse requests for a table's partitions with 405. A caller without rights on the table gets 403 or 404
    instead.
    """
    schema_path, name = object_path_of(request)
    path, _ = await schema_path.find(ctx, name)
    action = Action.TABLE_LOAD if request.method == "GET" else Action.TABLE_ALTER

    def refuse(request_view: RequestView) -> None:
        if is_sourced(request_view):
            find_source_object(request_view, Kind.TABLE, path=path, action=action)
            raise UnsupportedOperation(_NO_SOURCE_PARTITIONS)
        tables.table_find(request_view, path[:-1], path[-1], action, required_format=None)
        raise UnsupportedOperation(_NO_ICEBERG_PARTITIONS)

    await ctx.read(schema_path.scope, refuse)
    raise UnsupportedOperation(_NO_ICEBERG_PARTITIONS)


def _iceberg_table(node: Node, document: MetadataDocument) -> Json:
    return {"name": node.name, **table_json(iceberg_metadata_of(document.body)), "audit": dto.audit(node)}


def _source_table(table: source_tables.FederatedTable, *, name: str) -> Json:
    """Encode a table of an external system. The creator and the times come from its placeholder node."""
    info, audit = table.info, dto.audit(table.catalog if table.node is None else table.node)
    layout = info.layout or {"distribution": distribution_of(None), "sortOrders": [], "partitioning": []}
    body = compact(
        name=name,
        comment=info.comment,
        columns=info.columns,
        properties=info.properties,
        audit=audit,
        indexes=info.indexes,
    )
    return {**body, **layout}


def _lance_table(state: TableDescription, *, name: str) -> Json:
    """Encode a Lance table under `name`, which may differ from its node's name in a directory catalog.

    A table without data has no columns yet.
    """
    table, description = state.table, state.details
    properties = {**table.record.properties, "format": LANCE, "location": table.location}
    if description is not None:
        properties["lance.version"] = str(description.version)
    return compact(
        name=name,
        comment=properties.pop(COMMENT, None),
        properties=properties,
        audit=dto.audit(table.node),
        columns=[] if description is None else lance_columns.columns_of(description.logical_fields),
        distribution=distribution_of(None),
        sortOrders=[],
        partitioning=[],
        indexes=[],
    )


_TABLES = "/metalakes/{m}/catalogs/{c}/schemas/{s}/tables"
_LIST = "Failed to operate table(s) operation [LIST] under schema [{2}]"
_NEW = "Failed to operate table(s) [{body.name}] operation [CREATE] under schema [{2}]"
_ONE = "Failed to operate table(s) [{3}] operation [%s] under schema [{2}]"
_PARTITIONS = "Failed to operate partition(s) operation [%s] of table [{3}]"
ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_TABLES, handler=wrap_handler(_LIST, tables_list), operation="list-tables"),
    Route(
        method="POST",
        path=_TABLES,
        handler=wrap_body_handler(_NEW, TableCreate, table_create),
        operation="create-schema-table",
        asks=(Action.TABLE_CREATE,),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        method="GET",
        path=f"{_TABLES}/{{t}}",
        handler=wrap_handler(_ONE % "LOAD", table_load),
        operation="load-table",
        query=("privileges",),
    ),
    Route(
        method="PUT",
        path=f"{_TABLES}/{{t}}",
        handler=wrap_body_handler(_ONE % "ALTER", TableUpdates, table_alter),
        operation="alter-schema-table",
        asks=(Action.TABLE_ALTER,),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        method="DELETE",
        path=f"{_TABLES}/{{t}}",
        handler=wrap_handler(_ONE % "DROP", table_drop),
        operation="drop-schema-table",
        query=("purge",),
    ),
    Route(
        method="GET",
        path=f"{_TABLES}/{{t}}/partitions",
        handler=wrap_handler(_PARTITIONS % "LIST", partitions),
        operation="list-partitions",
    ),
    Route(
        method="POST",
        path=f"{_TABLES}/{{t}}/partitions",
        handler=wrap_handler(_PARTITIONS % "CREATE", partitions),
        operation="add-partitions",
    ),
    Route(
        method="GET",
        path=f"{_TABLES}/{{t}}/partitions/{{p}}",
        handler=wrap_handler(_PARTITIONS % "GET", partitions),
        operation="load-partition",
    ),
    Route(
        method="DELETE",
        path=f"{_TABLES}/{{t}}/partitions/{{p}}",
        handler=wrap_handler(_PARTITIONS % "DROP", partitions),
        operation="drop-partition",
        query_ignored=("purge",),
    ),
)
