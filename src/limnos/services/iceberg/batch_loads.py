# SPDX-License-Identifier: Apache-2.0
"""Loads of many Iceberg tables or views of one catalog in one request, each decided as its single load.

Must not know any wire format. What a single load answers in a way of its own is refused here: restricted reads, and
loads with the token of a maintenance operation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple

from limnos.model.entities import MetadataDocument
from limnos.model.errors import LimnosError, ServiceUnavailable, UnsupportedOperation
from limnos.model.records import CatalogRecord
from limnos.names import display
from limnos.names.parts import check_some_levels
from limnos.names.path import Levels
from limnos.services.catalog.views import view_load
from limnos.services.iceberg.restricted_tables import table_visibility
from limnos.services.iceberg.tables import refs_only_body, table_verify
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.view.cache_miss import for_each

PATHS_MAX: Final = 100
"""The maximum number of objects of a request: the audit records as many of one request."""
BODY_BYTES_MAX: Final = 8 << 20
"""The size of documents, in bytes, after which a request returns no further one."""
DECIDED_AT_ONCE: Final = 25
"""The number of objects that are decided on in one step of the event loop, in less than a millisecond."""
STEP_S: Final = 0.002
"""The time, in seconds, after which the encoding of documents lets other requests run."""
LoadedKind = Literal["table", "view"]
SnapshotMode = Literal["all", "refs"]


class LoadRequest(NamedTuple):
    """The objects to load, by their paths below the catalog, and which snapshots of tables to return."""

    paths: Sequence[Levels]
    kind: LoadedKind
    snapshots: SnapshotMode


class LoadedObject(NamedTuple):
    """An object of a request: its position, and its metadata file and metadata, or the error of its load."""

    position: int
    metadata_location: str = ""
    body: bytes = b""
    error: LimnosError | None = None


class _Decisions(NamedTuple):
    """The documents of some objects or their errors, and the catalog's record if there is a document."""

    results: list[MetadataDocument | LimnosError]
    catalog: CatalogRecord | None


async def objects_load(
    ctx: Context, scope: RequestScope, *, request: LoadRequest
) -> AsyncGenerator[list[LoadedObject], None]:
    """Yield the loaded objects in order, some at a time, until the documents have `BODY_BYTES_MAX`.

    An error of one object does not end the others. Raises AuthenticationFailed, PermissionDenied, ServiceUnavailable.
    """
    size = 0
    for start in range(0, len(request.paths), DECIDED_AT_ONCE):
        some = request.paths[start : start + DECIDED_AT_ONCE]
        decided = await ctx.read(scope, partial(_decide, paths=some, kind=request.kind))
        loaded_objects: list[LoadedObject] = []
        began = time.perf_counter()
        for position, result in enumerate(decided.results, start):
            each = await _load_result(ctx, result, position=position, request=request, catalog=decided.catalog)
            loaded_objects.append(each)
            size += len(each.body)
            if size >= BODY_BYTES_MAX:
                break
            if time.perf_counter() - began > STEP_S:
                await asyncio.sleep(0)  # other requests run in between
                began = time.perf_counter()
        yield loaded_objects
        if size >= BODY_BYTES_MAX:
            return


def _decide(request_view: RequestView, *, paths: Sequence[Levels], kind: LoadedKind) -> _Decisions:
    results = for_each(paths, partial(_table if kind == "table" else _view, request_view))
    # a caller who may load nothing must not learn from the record whether there is such a catalog
    has_document = any(isinstance(each, MetadataDocument) for each in results)
    return _Decisions(results, request_view.catalog_record if has_document else None)


def _table(request_view: RequestView, path: Levels) -> MetadataDocument | LimnosError:
    try:
        if request_view.operation_token is not None:
            raise UnsupportedOperation("An operation of maintenance loads its table by itself")
        visible_object = table_visibility(request_view, check_some_levels(path))
    except LimnosError as error:
        return error
    if visible_object.bound is not None:
        return UnsupportedOperation(f"Your reads of table {display.render(path)} are restricted: load it by itself")
    return visible_object.document


def _view(request_view: RequestView, path: Levels) -> MetadataDocument | LimnosError:
    try:
        levels = check_some_levels(path)
        return view_load(request_view, levels[:-1], levels[-1])
    except LimnosError as error:
        return error


async def _load_result(
    ctx: Context,
    result: MetadataDocument | LimnosError,
    *,
    position: int,
    request: LoadRequest,
    catalog: CatalogRecord | None,
) -> LoadedObject:
    if isinstance(result, LimnosError):
        return LoadedObject(position, error=result)
    body = result.body
    try:
        if request.kind == "table" and catalog is not None:
            await table_verify(ctx, result, catalog)
            if request.snapshots == "refs":
                body = await refs_only_body(ctx, result)
    except ServiceUnavailable:
        raise
    except LimnosError as error:
        return LoadedObject(position, error=error)
    return LoadedObject(position, result.metadata_location, body)
