# SPDX-License-Identifier: Apache-2.0
"""Table routes: declare, register, describe, exists, drop, deregister, rename, and the list of all.

Must not know rows: other routes read and write a table's content.
"""

from __future__ import annotations

import msgspec

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import BadRequest
from limnos.names import lance
from limnos.names.parts import check_levels
from limnos.names.path import Levels
from limnos.rooms.lance.http.identifiers import (
    IdentifiedBody,
    LanceObjectPath,
    body_of,
    database_of,
    delimiter_of,
    is_remote,
    metalake_of,
    place_of,
)
from limnos.rooms.lance.http.namespaces import parse_choice
from limnos.rooms.lance.http.pages import page, page_request_of
from limnos.rooms.lance.http.vended_credentials import credentials_response, delegates_of, options_of
from limnos.rooms.lance.services import table_description as lance_describing
from limnos.rooms.lance.services import table_drafts as lance_drafts
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.services.table_lists import all_tables, tables_list
from limnos.services.lance import tables as lance_tables
from limnos.services.lance.table_files import TableDescription
from limnos.services.lance.tables import LanceTable
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

REGISTER_MODES = ("create", "overwrite")


class DeclareTable(IdentifiedBody):
    """The body of a request to declare a table."""

    location: str | None = None
    properties: dict[str, str] | None = None
    vend_credentials: bool | None = None


class RegisterTable(IdentifiedBody, kw_only=True):
    """The body of a request to register a table."""

    location: str
    mode: str | None = None
    properties: dict[str, str] | None = None


class DescribeTable(IdentifiedBody, kw_only=True):
    """The body of a request to describe a table."""

    version: int | None = None
    tag: str | None = None
    branch: str | None = None
    load_detailed_metadata: bool | None = None
    check_declared: bool | None = None
    vend_credentials: bool | None = None


class TableExistsRequest(IdentifiedBody):
    """The body of a request that checks whether a table exists."""

    version: int | None = None


class RenameTable(IdentifiedBody, kw_only=True):
    """The body of a request to rename a table. LanceDB's remote clients have another field for the new namespace."""

    new_table_name: str
    new_namespace_id: list[str] | None = None
    new_namespace: list[str] | None = None


class TableBody(IdentifiedBody):
    """The body of a request with only the table's identifier."""


async def table_declare(request: Request, ctx: Context) -> Response:
    """Create a table without data. This reserves its name and its location, to which clients then write themselves."""
    data = await body_of(request)
    body = request.decode(data, DeclareTable)
    object_path = place_of(request, ctx, body=body)
    table = await lance_drafts.table_declare(
        ctx,
        object_path.scope,
        levels=object_path.levels,
        location=body.location or None,
        properties=body.properties or {},
        delegates=delegates_of(request, body.vend_credentials),
        dry=(dry := _is_dry(request)),
    )
    if dry:
        return credentials_response({**encode_location(table), "managed_versioning": table.record.managed})
    table_options = await options_of(
        request, ctx, place=object_path, table=table, is_requested=body.vend_credentials, is_new=True
    )
    return credentials_response({**encode_location(table), "managed_versioning": table.record.managed, **table_options})


async def table_register(request: Request, ctx: Context) -> Response:
    """Register an existing Lance table, whose location must be below the catalog's roots; a dry run only checks."""
    data = await body_of(request)
    body = request.decode(data, RegisterTable)
    object_path = place_of(request, ctx, body=body)
    overwrite = parse_choice(body.mode, REGISTER_MODES, field="mode") == "overwrite"
    if not body.location:
        raise BadRequest("Field 'location' is empty: give the table's location")
    table = await lance_drafts.table_register(
        ctx,
        object_path.scope,
        levels=object_path.levels,
        location=body.location,
        properties=body.properties or {},
        overwrite=overwrite,
        dry=_is_dry(request),
    )
    return json_response(encode_location(table))


def _is_dry(request: Request) -> bool:
    """Return whether the request is a dry run, which only makes the checks."""
    return _flag(request, None, name="dry_run", default=False)


def encode_location(table: LanceTable) -> dict[str, object]:
    """Encode a table's location and properties."""
    return {"location": table.location, "properties": dict(table.record.properties)}


async def table_describe(request: Request, ctx: Context) -> Response:
    """Return a table's location and properties, and its version and schema unless the client excludes them."""
    data = await body_of(request)
    body = request.decode(data, DescribeTable)
    object_path = place_of(request, ctx, body=body)
    detailed = _flag(request, body.load_detailed_metadata, name="load_detailed_metadata", default=True)
    looks = _flag(request, body.check_declared, name="check_declared", default=False)
    at = VersionReference(body.version, body.tag, body.branch)
    description = await lance_describing.table_describe(
        ctx, object_path.scope, levels=object_path.levels, at=at, detailed=detailed, looks=looks
    )
    table_options = await options_of(
        request, ctx, place=object_path, table=description.table, is_requested=body.vend_credentials
    )
    output = _encode_description(object_path, description, hidden=len(database_of(request)), logical=is_remote(request))
    return credentials_response({**output, **table_options})


def _flag(request: Request, stated: bool | None, *, name: str, default: bool) -> bool:  # noqa: FBT001 - a field of the body
    """Return a flag from the body (`stated`), else from the query, else its default. Raises BadRequest if malformed."""
    if stated is not None:
        return stated
    text = request.query(name)
    if text is None or text == "":
        return default
    if text.lower() not in ("true", "false"):
        raise BadRequest(f"Query parameter {name} must be true or false, not {text[:40]}")
    return text.lower() == "true"


def _encode_description(
    place: LanceObjectPath, description: TableDescription, *, hidden: int, logical: bool
) -> dict[str, object]:
    table = description.table
    answer: dict[str, object] = {
        "table": place.path[-1],
        "namespace": place.path[hidden:-1],
        "location": table.location,
        "table_uri": table.location,
        "properties": dict(table.record.properties),
        "managed_versioning": table.record.managed,
    }
    if description.is_declared is not None:
        answer["is_only_declared"] = description.is_declared
    lance_description = description.details
    if lance_description is not None:
        schema: dict[str, object] = {
            "fields": lance_description.logical_fields if logical else lance_description.fields
        }
        if lance_description.schema_metadata:
            schema["metadata"] = lance_description.schema_metadata
        answer |= {
            "version": lance_description.version,
            "schema": schema,
            "metadata": lance_description.metadata,
            "stats": lance_description.stats,
        }
    return answer


async def table_exists(request: Request, ctx: Context) -> Response:
    """Check whether a table, or a version of it, exists: 200 without a body, or 404."""
    data = await body_of(request)
    body = request.decode(data, TableExistsRequest)
    object_path = place_of(request, ctx, body=body)
    await lance_describing.table_exists(ctx, object_path.scope, levels=object_path.levels, version=body.version)
    return Response(200, b"", ())


async def table_drop(request: Request, ctx: Context) -> Response:
    """Drop a table with its files, which are deleted when the table leaves the trash."""
    data = await body_of(request)
    body = request.decode(data, TableBody)
    object_path = place_of(request, ctx, body=body)
    table = await lance_tables.table_drop(ctx, object_path.scope, levels=object_path.levels)
    return json_response({"id": object_path.path, **encode_location(table)})


async def table_deregister(request: Request, ctx: Context) -> Response:
    """Remove a table from the catalog without deleting its files."""
    data = await body_of(request)
    body = request.decode(data, TableBody)
    object_path = place_of(request, ctx, body=body)
    table = await lance_tables.table_drop(ctx, object_path.scope, levels=object_path.levels, purges=False)
    return json_response({"id": object_path.path, **encode_location(table)})


async def table_rename(request: Request, ctx: Context) -> Response:
    """Rename a table, move it to another namespace of its catalog, or both."""
    data = await body_of(request)
    body = request.decode(data, RenameTable)
    object_path = place_of(request, ctx, body=body)
    target = _parse_new_levels(request, object_path, body=body)
    if not object_path.levels:
        raise BadRequest("A table's identifier needs at least two names: its catalog's, then its own")
    await lance_tables.table_rename(ctx, object_path.scope, source=object_path.levels, target=target)
    return json_response({})


def _parse_new_levels(request: Request, place: LanceObjectPath, *, body: RenameTable) -> Levels:
    """Return a table's new levels below its catalog. Raises BadRequest for a target in another catalog."""
    namespace_path = body.new_namespace_id if body.new_namespace_id is not None else body.new_namespace
    above = place.path[:-1] if namespace_path is None else (*database_of(request), *check_levels(namespace_path))
    if not above or above[0] != place.path[0]:
        raise BadRequest(
            "A table cannot move to another catalog: name a namespace of"
            f" {place.path[0] if place.path else 'its catalog'}"
        )
    return check_levels((*above[1:], body.new_table_name))


async def tables_all(request: Request, ctx: Context) -> Response:
    """List the full identifiers of all tables visible to the caller. For LanceDB's clients, list the names of the
    tables directly in a database.
    """
    page_request, delimiter = page_request_of(request), delimiter_of(request)
    declared = request.query_flag("include_declared", default=True)
    database = database_of(request)
    metalake = metalake_of(request, ctx)
    if database:
        names = await tables_list(
            ctx, RequestScope(metalake, database[0]), levels=(), page_request=page_request, declared=declared
        )
        return json_response(page("tables", names.names, last=names.last if page_request.size != 0 else None))
    after = _parse_page_token(page_request.after)
    paths: list[Levels] = []
    async for levels in all_tables(ctx, metalake=metalake, catalogs=None, after=after, declared=declared):
        paths.append(levels)
        if page_request.size is not None and len(paths) > page_request.size:
            break
    page_paths = paths if page_request.size is None else paths[: page_request.size]
    last = msgspec.json.encode(page_paths[-1]).decode() if page_paths and len(page_paths) < len(paths) else None
    return json_response(page("tables", [lance.join(each, delimiter=delimiter) for each in page_paths], last=last))


def _parse_page_token(text: str) -> Levels | None:
    if not text:
        return None
    try:
        return check_levels(msgspec.json.decode(text, type=tuple[str, ...])) or None
    except msgspec.DecodeError:
        raise BadRequest("The page_token was not issued by this server: start again without it") from None
