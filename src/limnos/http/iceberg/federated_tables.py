# SPDX-License-Identifier: Apache-2.0
"""Tables of federated catalogs, whose source is another Iceberg REST catalog.

Must not know access rules.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.http.iceberg import federated_bodies, federated_objects
from limnos.http.iceberg.paths import levels_of, split_path
from limnos.http.iceberg.tables import NewTableName, RegisterTable
from limnos.http.iceberg.transactions import LargeTransaction, TableChangeIdentifier
from limnos.http.iceberg.vended_credentials import DELEGATION, delegates_of
from limnos.http.request import Request
from limnos.http.response import NO_STORE, Response, json_response, no_content
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.names import iceberg
from limnos.services.federation import forwarded_requests as federation
from limnos.services.federation.forwarded_requests import SourceObjectRequest, SourceTableCommit
from limnos.services.request.context import Context
from limnos.sources.connectors.capabilities import RestCall
from limnos.sources.connectors.rest_terms import NAMESPACE, TABLE, TABLES

DELEGATING: Final = ((DELEGATION.decode(), "vended-credentials"),)


_NEW_TABLE: Final = ("schema", "partition-spec", "write-order", "location", "properties")


class _StageCreateFlag(msgspec.Struct, rename="kebab"):
    stage_create: bool = False


async def tables_list(request: Request, ctx: Context) -> Response:
    """List the tables of a namespace."""
    return await federated_objects.federated_objects_list(request, ctx, kind=Kind.TABLE, endpoint=f"GET {TABLES}")


async def table_load(request: Request, ctx: Context) -> Response:
    """Load a table. The response is 304 if the source reports that the client's entity tag is current."""
    leaf = federated_objects.federated_object_of(request, ctx, kind=Kind.TABLE, action=Action.TABLE_LOAD)
    scope = leaf.scope
    mode = request.query("snapshots") or "all"
    if mode not in ("all", "refs"):
        raise BadRequest(f"snapshots must be all or refs, not {mode}")
    sent_etag = request.headers.get(b"if-none-match", b"")
    plain_etag, with_keys = (
        federated_bodies.source_etag_headers(sent_etag, federated_bodies.etag_prefix_of(scope, mode)),
        federated_bodies.source_etag_headers(sent_etag, federated_bodies.etag_prefix_of(scope, mode, vends=True)),
    )
    call = leaf.call(f"GET {TABLE}", query=(("snapshots", mode),))._replace(headers=plain_etag)
    vending = call._replace(headers=(*with_keys, *DELEGATING)) if delegates_of(request) else None
    reply, vending_decision = await federation.forward_load(ctx, scope, thing=leaf.thing, call=call, vending=vending)
    etag_prefix = federated_bodies.etag_prefix_of(scope, mode, vends=vending_decision.vends)
    if reply.status == 304:
        return Response(
            304, b"", ((b"etag", federated_bodies.prefix_etag(reply.etag or "", etag_prefix)),) if reply.etag else ()
        )
    return federated_bodies.source_load_response(
        call, reply, scope=scope, vending_decision=vending_decision, etag_prefix=etag_prefix
    )


async def table_exists(request: Request, ctx: Context) -> Response:
    """Check whether a table exists: 204 or 404."""
    leaf = federated_objects.federated_object_of(request, ctx, kind=Kind.TABLE, action=Action.TABLE_EXISTS)
    return await federated_objects.federated_object_exists(ctx, leaf, endpoint=f"HEAD {TABLE}")


async def table_create(request: Request, ctx: Context) -> Response:
    """Create a table in the source, or only stage its creation."""
    data = await request.body()
    name, stages = (
        request.decode_fields(data, NewTableName).name,
        request.decode_fields(data, _StageCreateFlag).stage_create,
    )
    source_body = {
        **federated_bodies.passed_fields_of(request, data, names=_NEW_TABLE),
        "name": name,
        "stage-create": stages,
    }
    return await _make_table(
        request, ctx, action=Action.TABLE_CREATE, sent=source_body, endpoint=f"POST {TABLES}", stages=stages
    )


async def table_register(request: Request, ctx: Context) -> Response:
    """Register a table in the source from an existing metadata file."""
    body = request.decode(await request.body(), RegisterTable)
    source_body = {"name": body.name, "metadata-location": body.metadata_location, "overwrite": body.overwrite}
    return await _make_table(
        request,
        ctx,
        action=Action.TABLE_REGISTER,
        sent=source_body,
        endpoint=f"POST {NAMESPACE}/register",
        overwrites=body.overwrite,
    )


async def _make_table(
    request: Request,
    ctx: Context,
    *,
    action: Action,
    sent: dict[str, object],
    endpoint: str,
    stages: bool = False,
    overwrites: bool = False,
) -> Response:
    scope, params = split_path(request, ctx, 1)
    namespace, name = levels_of(params[0]), str(sent["name"])
    call = RestCall(
        endpoint=endpoint, namespace=namespace, name=name, body=msgspec.json.encode(sent), conflict_meaning="table"
    )
    vending = call._replace(headers=DELEGATING) if delegates_of(request) else None
    reply, vending_decision = await federation.forward_create(
        ctx,
        scope,
        thing=SourceObjectRequest(Kind.TABLE, call.path, action),
        call=call,
        vending=vending,
        stages=stages,
        overwrites=overwrites,
    )
    return federated_bodies.source_load_response(
        call,
        reply,
        scope=scope,
        vending_decision=vending_decision,
        etag_prefix=federated_bodies.etag_prefix_of(scope, "all", vends=vending_decision.vends),
    )


async def table_commit(request: Request, ctx: Context) -> Response:
    """Commit updates to a table of the source, or finish a staged creation."""
    scope, path = federated_objects.path_of(request, ctx)
    passed_fields = federated_bodies.passed_fields_of(request, await request.body(), names=federated_bodies.COMMIT)
    source_body, makes = federated_bodies.commit_of(
        request, requirements=passed_fields.get("requirements"), updates=passed_fields.get("updates"), path=path
    )
    missing = "namespace" if makes else "table"
    call = RestCall(
        endpoint=f"POST {TABLE}",
        namespace=path[:-1],
        name=path[-1],
        body=msgspec.json.encode(source_body),
        missing=missing,
    )
    reply = await federation.forward_commit(ctx, scope, changes=(SourceTableCommit(path, makes),), call=call)
    return federated_bodies.source_commit_response(
        call, reply, etag_prefix=federated_bodies.etag_prefix_of(scope, "all")
    )


async def table_drop(request: Request, ctx: Context) -> Response:
    """Drop a table in the source. The flag `purgeRequested`, to delete its files, is forwarded."""
    leaf = federated_objects.federated_object_of(request, ctx, kind=Kind.TABLE, action=Action.TABLE_DROP)
    query = (("purgeRequested", "true"),) if request.query_flag("purgeRequested") else ()
    await federation.forward_drop(ctx, leaf.scope, thing=leaf.thing, call=leaf.call(f"DELETE {TABLE}", query=query))
    return no_content()


async def table_unregister(request: Request, ctx: Context) -> Response:
    """Remove a table from the source's catalog without deleting its files."""
    leaf = federated_objects.federated_object_of(request, ctx, kind=Kind.TABLE, action=Action.TABLE_DROP)
    call = leaf.call(f"POST {TABLE}/unregister")
    return federated_bodies.source_commit_response(
        call, await federation.forward_drop(ctx, leaf.scope, thing=leaf.thing, call=call), etag_prefix=""
    )


async def table_rename(request: Request, ctx: Context) -> Response:
    """Rename a table in the source; its grants and tags stay attached."""
    return await federated_objects.federated_object_rename(
        request, ctx, kind=Kind.TABLE, endpoint="POST /tables/rename"
    )


async def metrics_report(request: Request, ctx: Context) -> Response:
    """Forward a metrics report to the source of the table."""
    leaf = federated_objects.federated_object_of(request, ctx, kind=Kind.TABLE, action=Action.TABLE_LOAD)
    report = request.decode(await request.body(), dict[str, object])
    call = leaf.call(f"POST {TABLE}/metrics", body=msgspec.json.encode(report))
    await federation.forward_request(ctx, leaf.scope, thing=leaf.thing, call=call)
    return no_content()


async def credentials_load(request: Request, ctx: Context) -> Response:
    """Return a table's renewed credentials; empty if the source vends none, or none for this caller."""
    leaf = federated_objects.federated_object_of(request, ctx, kind=Kind.TABLE, action=Action.TABLE_LOAD)
    scope, thing, exists = leaf.scope, leaf.thing, leaf.call(f"HEAD {TABLE}")
    offered = federated_bodies.CREDENTIALS in await federation.endpoints_of_source(ctx, scope)
    vending = exists._replace(endpoint=federated_bodies.CREDENTIALS) if offered else None
    reply, vending_decision = await federation.forward_load(ctx, scope, thing=thing, call=exists, vending=vending)
    entries = (
        federated_bodies.read_reply(exists, reply, shape=federated_bodies.SourceCredentialsResponse).storage_credentials
        if vending_decision.vends
        else []
    )
    results = {"storage-credentials": federated_bodies.entries_of(entries, scope=scope, path=thing.path)}
    return json_response(results, 200, (NO_STORE,))


async def transaction_commit(request: Request, ctx: Context) -> Response:
    """Commit changes to several tables. This server authorizes each; the source executes them as one transaction."""
    scope, _ = split_path(request, ctx, 0)
    changes, source_bodies = [], []
    for each in request.decode_fields(await request.body(), LargeTransaction).table_changes:
        identifier = request.decode(bytes(each.identifier), TableChangeIdentifier)
        path = (*iceberg.decode_body(identifier.namespace), identifier.name)
        commit, makes = federated_bodies.commit_of(
            request, requirements=each.requirements, updates=each.updates, path=path
        )
        changes.append(SourceTableCommit(path, makes))
        source_bodies.append(commit)
    call = RestCall(
        endpoint="POST /transactions/commit",
        body=msgspec.json.encode({"table-changes": source_bodies}),
        missing="table",
    )
    await federation.forward_commit(ctx, scope, changes=changes, call=call)
    return no_content()
