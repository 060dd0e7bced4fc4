# SPDX-License-Identifier: Apache-2.0
"""Routes that commit to several tables at once.

Has no business rules. Each operation names its table by its full identifier; all tables are in one catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import BadRequest
from limnos.rooms.lance.http.identifiers import IdentifiedBody, LanceObjectPath, body_of, place_at
from limnos.rooms.lance.http.tables import DeclareTable, TableBody, encode_location
from limnos.rooms.lance.http.versions import CreateVersion, DeleteVersions, encode_version
from limnos.rooms.lance.services import batches as lance_batches
from limnos.rooms.lance.services.batches import LanceBatchOperation, LanceBatchResult
from limnos.rooms.lance.services.versions import VersionView
from limnos.services.lance.tables import LanceTable
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


class CreateVersions(msgspec.Struct):
    """The body of a request to commit one version to each of several tables."""

    entries: list[CreateVersion]


class BatchOperation(msgspec.Struct):
    """One operation of a batch. Exactly one of the fields is set."""

    declare_table: DeclareTable | None = None
    create_table_version: CreateVersion | None = None
    delete_table_versions: DeleteVersions | None = None
    deregister_table: TableBody | None = None


class CommitTables(msgspec.Struct):
    """The body of a batch: operations on several tables, applied all or none."""

    operations: list[BatchOperation]


async def versions_create(request: Request, ctx: Context) -> Response:
    """Commit a version to each of several tables, or to none."""
    body = request.decode(await body_of(request), CreateVersions)
    object_paths = [_place(request, ctx, named=each) for each in body.entries]
    operations: list[LanceBatchOperation] = [
        lance_batches.CreateVersionOperation(place.levels, each.new_version())
        for each, place in zip(body.entries, object_paths, strict=True)
    ]
    results = await _commit_batch(ctx, object_paths, operations=operations)
    return json_response({"versions": [encode_version(each) for each in results if isinstance(each, VersionView)]})


async def tables_commit(request: Request, ctx: Context) -> Response:
    """Declare tables, commit and delete versions, and deregister tables: all or nothing."""
    body = request.decode(await body_of(request), CommitTables)
    single_operations = [_single_operation(each) for each in body.operations]
    object_paths = [_place(request, ctx, named=each) for _, each in single_operations]
    operations = [_operation(each, place) for (_, each), place in zip(single_operations, object_paths, strict=True)]
    done = await _commit_batch(ctx, object_paths, operations=operations)
    results = [
        {word: _result(word, place, result=one)}
        for (word, _), place, one in zip(single_operations, object_paths, done, strict=True)
    ]
    return json_response({"results": results})


def _single_operation(operation: BatchOperation) -> tuple[str, IdentifiedBody]:
    """Return the name and value of the single field that is set. Raises BadRequest if none or several are set."""
    actions = [(name, value) for name in operation.__struct_fields__ if (value := getattr(operation, name)) is not None]
    if len(actions) != 1:
        raise BadRequest(
            f"An operation must have exactly one action, not {len(actions)}: {', '.join(operation.__struct_fields__)}"
        )
    return actions[0]


def _place(request: Request, ctx: Context, *, named: IdentifiedBody) -> LanceObjectPath:
    if not named.id:
        raise BadRequest("Each entry must name its table: send its full identifier as id")
    return place_at(request, ctx, path=named.id)


def _operation(body: IdentifiedBody, place: LanceObjectPath) -> LanceBatchOperation:
    levels = place.levels
    if isinstance(body, DeclareTable):
        return lance_batches.DeclareOperation(levels, body.location or None, body.properties or {})
    if isinstance(body, CreateVersion):
        return lance_batches.CreateVersionOperation(levels, body.new_version())
    if isinstance(body, DeleteVersions):
        return lance_batches.DeleteVersionsOperation(levels, body.branch or "", body.spans())
    return lance_batches.DeregisterOperation(levels)


async def _commit_batch(
    ctx: Context, places: Sequence[LanceObjectPath], *, operations: Sequence[LanceBatchOperation]
) -> Sequence[LanceBatchResult]:
    scopes: set[RequestScope] = {place.scope for place in places}
    if len(scopes) > 1:
        raise BadRequest("Tables of several catalogs cannot be committed together: send one request per catalog")
    return await lance_batches.tables_commit(ctx, scopes.pop(), operations=operations) if scopes else []


def _result(word: str, place: LanceObjectPath, *, result: LanceBatchResult) -> dict[str, object]:
    if isinstance(result, VersionView):
        return {"version": encode_version(result)}
    if isinstance(result, LanceTable):
        if word == "declare_table":
            return {**encode_location(result), "managed_versioning": result.record.managed}
        return {"id": place.path, **encode_location(result)}
    return {"deleted_count": result}
