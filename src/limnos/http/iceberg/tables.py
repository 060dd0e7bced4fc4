# SPDX-License-Identifier: Apache-2.0
"""Table routes: list, create, register, load, exists, commit, drop, rename, metrics.

Metadata stays JSON bytes from the store to the response.

403 or 404: a missing table is 404 to a caller who could load it if it had no grants of its own, and to one who creates
tables or works with views in its namespace; otherwise 403. A missing namespace of a list or create is 404 to a caller
who could load it, otherwise 403.
"""

from __future__ import annotations

import msgspec

from limnos.access.actions import Action
from limnos.files import is_local
from limnos.http.iceberg.pages import join_page, page_request_of
from limnos.http.iceberg.paths import levels_of, name_of, referencing_views_of, split_path, table_of
from limnos.http.iceberg.table_responses import (
    PLAIN_ENDS,
    TableResponseEnd,
    commit_response,
    created_response,
    etag_matches,
    etag_of,
    load_response,
    response_end,
    restricted_ending,
)
from limnos.http.iceberg.vended_credentials import (
    credentials_configuration,
    delegates_of,
    is_signing_requested,
    is_vending_requested,
)
from limnos.http.request import Request
from limnos.http.response import JSON, NO_STORE, Response, no_content
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.model.records import CatalogRecord
from limnos.names import iceberg
from limnos.names.errors import InvalidName
from limnos.names.path import Levels, check_part
from limnos.services.catalog import tables
from limnos.services.catalog.scan_modes import table_scan_mode
from limnos.services.iceberg import commits, registrations, reports, restricted_tables
from limnos.services.iceberg import tables as iceberg_tables
from limnos.services.iceberg.dataset_fence import LockProof, lock_proof_of
from limnos.services.iceberg.restricted_tables import TableVisibility
from limnos.services.request.cache_validity import CacheValidity, cache_validity_of
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.name_pages import NamePage
from limnos.services.request.offloaded_work import REQUEST_BYTES_MAX
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.checked_files import check_table_for_engine

_MODES = ("all", "refs")
_PLAIN = frozenset({b"", b"snapshots=all", b"snapshots=refs"})
"""The query strings with which a response depends only on the caller's own right and on the document, so that it may be
cached.
"""
LOCK = b"x-limnos-lock"


_GLANCE_BYTES_MAX = 4 << 10
"""The maximum length of requirements that are decoded, in bytes: `assert-create` is always the only requirement."""


class CreateTable(msgspec.Struct, rename="kebab", kw_only=True):
    """The body of a request to create a table."""

    name: str
    schema: dict[str, object]
    location: str | None = None
    partition_spec: object = None
    write_order: object = None
    stage_create: bool = False
    properties: dict[str, str] | None = None


class CommitTable(msgspec.Struct):
    """The body of a request to commit to a table."""

    requirements: list[object] = []
    updates: list[object] = []
    identifier: object = None


class LargeTableCreate(msgspec.Struct, rename="kebab"):
    """The part of a large create request that the server decodes itself. A separate process decodes the whole body."""

    name: str
    location: str | None = None
    stage_create: bool = False


class LargeTableCommit(msgspec.Struct):
    """The body of a large commit: checked to be JSON, but not decoded into objects."""

    requirements: msgspec.Raw = msgspec.Raw(b"[]")
    updates: msgspec.Raw = msgspec.Raw(b"[]")


class RegisterTable(msgspec.Struct, rename="kebab"):
    """The body of a request to register a table."""

    name: str
    metadata_location: str
    overwrite: bool = False


class NewTableName(msgspec.Struct):
    """The name in the body of a create or register; the other fields are not decoded."""

    name: str


class MetricsReport(msgspec.Struct, rename="kebab"):
    """The decoded part of a metrics report; the report is stored as it was sent."""

    report_type: str
    snapshot_id: int | None = None
    metrics: dict[str, object] = {}


class Identifier(msgspec.Struct):
    """A table's or view's full name in a body."""

    namespace: object
    name: str


class RenameTable(msgspec.Struct):
    """The body of a request to rename a table or view."""

    source: Identifier
    destination: Identifier


async def tables_list(request: Request, ctx: Context) -> Response:
    """List the tables of a namespace."""
    scope, params = split_path(request, ctx, 1)
    namespace = levels_of(params[0])
    page_request = page_request_of(request)

    def read(request_view: RequestView) -> tuple[NamePage, CacheValidity | None]:
        page = tables.tables_list(request_view, namespace, page_request)
        return page, cache_validity_of(request_view, ctx.credential) if request.is_cacheable else None

    page, validity = await ctx.read(scope, read)
    prefix = b'{"namespace":' + msgspec.json.encode(namespace) + b',"name":'
    response = Response(200, join_page(b"identifiers", page, before=prefix, after=b"}"))
    response.validity = validity
    return response


async def table_load(request: Request, ctx: Context) -> Response:
    """Load a table. The response is 304 if the client's entity tag is current; access is decided first."""
    scope, namespace, name = table_of(request, ctx)
    through = referencing_views_of(request) if request.query_string else ()

    def read(
        request_view: RequestView,
    ) -> tuple[TableVisibility, CatalogRecord, CacheValidity | None, tuple[CatalogStorage, int] | None]:
        visible_object, validity = (
            restricted_tables.table_visibility(request_view, (*namespace, name), through=through),
            None,
        )
        if request_view.operation_token is not None:
            file_access = catalog_storage_of(request_view), request_view.operation_token.id
            return visible_object, request_view.catalog_record, None, file_access
        if visible_object.bound is None and request.is_cacheable and request.query_string in _PLAIN:
            about = (Kind.TABLE, (*namespace, name), Action.TABLE_LOAD)
            validity = cache_validity_of(request_view, ctx.credential, about=about, document=True)
        return visible_object, request_view.catalog_record, validity, None

    visible_object, catalog, validity, opened = await ctx.read(scope, read)
    document = visible_object.document
    if opened is not None:  # an executor of maintenance opens this document, whatever it was when it got the lease
        await check_table_for_engine(ctx, document, place=opened[0], token_id=opened[1])
    await iceberg_tables.table_verify(ctx, document, catalog)
    mode = request.query("snapshots") or "all" if request.query_string else "all"
    if mode not in _MODES:
        raise BadRequest(f"snapshots must be all or refs, not {mode}")
    if visible_object.bound is not None:
        bound, levels = visible_object.bound, (*namespace, name)
        end = await restricted_ending(
            request, ctx, visible_object=visible_object, bound=bound, levels=levels, catalog=catalog
        )
        return await _restricted_response(request, ctx, visible_object=visible_object, mode=mode, end=end)
    delegates = is_vending_requested(request, ctx, catalog=catalog) or is_signing_requested(
        request, ctx, catalog=catalog
    )
    plain_ending = PLAIN_ENDS[await table_scan_mode(ctx, document, properties=catalog.properties)]
    end = (
        await response_end(request, ctx, scope=scope, levels=(*namespace, name), catalog=catalog, plain=plain_ending)
        if delegates
        else plain_ending
    )
    etag = etag_of(document, mode, end=end)
    whole = document
    if etag_matches(request.headers.get(b"if-none-match"), etag):
        response = Response(304, b"", ((b"etag", etag),))
    else:
        if mode == "refs":
            whole = msgspec.structs.replace(document, body=await iceberg_tables.refs_only_body(ctx, document))
        response = load_response(whole, etag, end=end)
    response.validity = None if delegates else _depend_on_file(ctx, document, validity)
    return response


async def _restricted_response(
    request: Request, ctx: Context, *, visible_object: TableVisibility, mode: str, end: TableResponseEnd
) -> Response:
    """Build the response for a restricted user, without the table's files.

    The response must not be cached, because restrictions may change.
    """
    etag = etag_of(visible_object.document, mode, end=end)
    if etag_matches(request.headers.get(b"if-none-match"), etag):
        return Response(304, b"", ((b"etag", etag), NO_STORE))
    document = await restricted_tables.document_for_caller(ctx, visible_object)
    if mode == "refs":
        document = msgspec.structs.replace(document, body=await iceberg_tables.refs_only_body(ctx, document))
    return load_response(document, etag, end=end)


def _depend_on_file(ctx: Context, document: MetadataDocument, validity: CacheValidity | None) -> CacheValidity | None:
    """Limit the validity of a response to the lifetime of its local metadata file.

    Returns None for a file in an object store, whose existence cannot be checked without waiting.
    """
    if validity is None:
        return None
    file = iceberg_tables.file_to_verify(ctx, document)
    if file is None or is_local(file):
        return validity._replace(file=file)
    return None


async def table_exists(request: Request, ctx: Context) -> Response:
    """Check whether a table exists: 204 or 404."""
    scope, namespace, name = table_of(request, ctx)

    def read(request_view: RequestView) -> CacheValidity | None:
        tables.table_exists(request_view, namespace, name)
        if not request.is_cacheable or request.query_string:
            return None
        return cache_validity_of(
            request_view, ctx.credential, about=(Kind.TABLE, (*namespace, name), Action.TABLE_EXISTS)
        )

    response = no_content()
    response.validity = await ctx.read(scope, read)
    return response


async def table_create(request: Request, ctx: Context) -> Response:
    """Create a table, or only stage its creation. 409 if the name is taken."""
    scope, params = split_path(request, ctx, 1)
    data = await request.body()
    namespace, delegates = levels_of(params[0]), delegates_of(request)
    if len(data) > REQUEST_BYTES_MAX:
        large = request.decode_fields(data, LargeTableCreate)
        table_request = iceberg_tables.TableRequest(
            name=_new_name(large.name),
            location=large.location,
            schema=None,
            partition_spec=None,
            write_order=None,
            properties=None,
            raw=data,
            delegates=delegates,
        )
        stages = large.stage_create
    else:
        body = request.decode(data, CreateTable)
        table_request = iceberg_tables.TableRequest(
            name=_new_name(body.name),
            location=body.location,
            schema=body.schema,
            partition_spec=body.partition_spec,
            write_order=body.write_order,
            properties=body.properties,
            delegates=delegates,
        )
        stages = body.stage_create
    if stages:
        metadata, vended = await iceberg_tables.table_stage(ctx, scope, namespace=namespace, request=table_request)
        end = credentials_configuration(vended, scope, levels=(*namespace, table_request.name))
        headers = (JSON,) if vended is None else (JSON, NO_STORE)
        return Response(200, b"".join((b'{"metadata":', metadata, end)), headers)
    created_table = await iceberg_tables.table_create(ctx, scope, namespace=namespace, request=table_request)
    return await created_response(
        request, ctx, scope=scope, levels=(*namespace, table_request.name), document_and_catalog=created_table
    )


async def table_register(request: Request, ctx: Context) -> Response:
    """Create a table from an existing metadata file, or with `overwrite` replace the metadata of an existing table."""
    scope, params = split_path(request, ctx, 1)
    body = request.decode(await request.body(), RegisterTable)
    namespace, name = levels_of(params[0]), check_part(body.name)
    loaded_table = await registrations.table_register(
        ctx, scope, namespace=namespace, name=name, metadata_location=body.metadata_location, overwrite=body.overwrite
    )
    return await created_response(
        request, ctx, scope=scope, levels=(*namespace, name), document_and_catalog=loaded_table
    )


async def table_commit(request: Request, ctx: Context) -> Response:
    """Commit updates to a table, or finish a staged creation."""
    scope, params = split_path(request, ctx, 2)
    data = await request.body()
    large = len(data) > REQUEST_BYTES_MAX
    body = _decode_create_part(request, data) if large else request.decode(data, CommitTable)
    document, _ = await commits.table_commit(
        ctx,
        scope,
        namespace=levels_of(params[0]),
        name=name_of(params[1]),
        requirements=body.requirements,
        updates=body.updates,
        raw=data if large else None,
        proof=_proof_of(request),
    )
    return commit_response(document)


def _proof_of(request: Request) -> LockProof | None:
    """Return the proof, from a commit's header, that the client holds a SQL++ statement lock; None without the
    header.
    """
    text = request.headers.get(LOCK)
    return None if text is None else lock_proof_of(text.decode("latin-1"))


def _decode_create_part(request: Request, data: bytes) -> CommitTable:
    """Decode the part of a large commit that identifies a create. A separate process decodes requirements and
    updates.
    """
    first_fields = request.decode_fields(data, LargeTableCommit)
    few = bytes(first_fields.requirements)
    return CommitTable(request.decode(few, list[object]) if len(few) <= _GLANCE_BYTES_MAX else [])


async def replay_table_create(request: Request, ctx: Context, table_id: int) -> Response:
    """Answer a repeated create or register with the current table.

    Raises NotFound if another object now has the name.
    """
    scope, params = split_path(request, ctx, 1)
    name = request.decode_fields(await request.body(), NewTableName).name
    namespace = levels_of(params[0])
    reloaded_table = await _reload_table(ctx, scope, namespace, name, table_id=table_id)
    return await created_response(
        request, ctx, scope=scope, levels=(*namespace, name), document_and_catalog=reloaded_table
    )


async def replay_table_commit(request: Request, ctx: Context, table_id: int) -> Response:
    """Answer a repeated commit with the current table. Raises NotFound if another object now has the name."""
    scope, params = split_path(request, ctx, 2)
    document, _ = await _reload_table(ctx, scope, levels_of(params[0]), name_of(params[1]), table_id=table_id)
    return commit_response(document)


async def _reload_table(
    ctx: Context, scope: RequestScope, namespace: Levels, name: str, *, table_id: int
) -> tuple[MetadataDocument, CatalogRecord]:
    document, catalog = await ctx.read(
        scope, lambda request_view: (tables.table_load(request_view, namespace, name), request_view.catalog_record)
    )
    if document.node_id != table_id:
        raise NotFound(
            f"Table does not exist: {iceberg.render((*namespace, name))}: another one has its name now", kind="table"
        )
    return document, catalog


async def table_drop(request: Request, ctx: Context) -> Response:
    """Drop a table; with `purgeRequested` also its files."""
    scope, params = split_path(request, ctx, 2)
    purge = request.query_flag("purgeRequested")
    await tables.table_drop(ctx, scope, namespace=levels_of(params[0]), name=name_of(params[1]), purge=purge)
    return no_content()


async def table_unregister(request: Request, ctx: Context) -> Response:
    """Remove a table from the catalog without deleting its files, and return its last metadata."""
    scope, params = split_path(request, ctx, 2)
    documents: list[MetadataDocument] = []
    ctx.store_response(lambda _: _unregister_body(documents[-1]))  # a repeated request can no longer load the table
    document = await tables.table_unregister(
        ctx, scope, namespace=levels_of(params[0]), name=name_of(params[1]), documents=documents
    )
    return Response(200, _unregister_body(document))


def _unregister_body(document: MetadataDocument) -> bytes:
    location = msgspec.json.encode(document.metadata_location)
    return b"".join((b'{"metadata-location":', location, b',"metadata":', document.body, b"}"))


async def table_rename(request: Request, ctx: Context) -> Response:
    """Rename a table, move it to another namespace, or both."""
    scope, _ = split_path(request, ctx, 0)
    body = request.decode(await request.body(), RenameTable)
    source, target = (
        (*iceberg.decode_body(each.namespace), check_part(each.name)) for each in (body.source, body.destination)
    )
    try:
        await tables.table_move(ctx, scope, source=source, target=target, required_format="iceberg")
    except NotFound as error:
        raise _with_rename_hint(error, scope, target) from None
    return no_content()


def _with_rename_hint(error: NotFound, scope: RequestScope, target: Levels) -> NotFound:
    """Add a hint for a client that sent the new name with the catalog as first part, as in SQL."""
    if error.kind != "namespace" or target[0] != scope.catalog or len(target) < 3:
        return error
    hint = f"The new name of a table must be relative to its catalog: write {iceberg.render(target[1:])}"
    return NotFound(f"{error}. {hint}, without {scope.catalog} before it", kind=error.kind)


async def metrics_report(request: Request, ctx: Context) -> Response:
    """Accept a metrics report on a table that is visible to the caller. It is stored after the response, and only if
    the caller may load the table.
    """
    scope, params = split_path(request, ctx, 2)
    data = await request.body()
    body = request.decode(data, MetricsReport)
    request.decode(data, object)  # it is returned as it was sent, so all of it must be valid JSON
    if body.snapshot_id is not None and abs(body.snapshot_id) >= 1 << 63:
        raise BadRequest("Field 'snapshot-id' is not a 64-bit number")
    await reports.report_take(
        ctx,
        scope,
        namespace=levels_of(params[0]),
        name=name_of(params[1]),
        kind=body.report_type.removesuffix("-report"),
        snapshot_id=body.snapshot_id,
        body=data,
    )
    return no_content()


def _new_name(name: str) -> str:
    """Return a new table's name, which is not percent-decoded: PyIceberg encodes only names of views in bodies.

    Raises InvalidName for an empty name and for one that is not allowed.
    """
    if not name:
        raise InvalidName("empty-name", "A table needs a name: it is empty")
    return check_part(name)
