"""Routes of what is committed to several tables at once.

May import `model`, `services` and this package. Each operation names its table by its whole identifier; all of them are in one catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.http.lance.idents import Named, body_of, place_at
from limnos.http.lance.tables import AboutTable, DeclareTable, stored
from limnos.http.lance.versions import CreateVersion, DeleteVersions, shown
from limnos.http.response import Response, json_response
from limnos.model.errors import BadRequest
from limnos.services.lance.tables import LanceTable
from limnos.services.lance.versions import Shown
from limnos.services.transactions import lance_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.http.lance.idents import Place
    from limnos.http.request import Request
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scope
    from limnos.services.transactions.lance_batches import Operation, Result


class CreateVersions(msgspec.Struct):
    """The body of several versions."""

    entries: list[CreateVersion]


class Operations(msgspec.Struct):
    """One operation of a batch: just one of these is there."""

    declare_table: DeclareTable | None = None
    create_table_version: CreateVersion | None = None
    delete_table_versions: DeleteVersions | None = None
    deregister_table: AboutTable | None = None


class CommitTables(msgspec.Struct):
    """The body of a batch."""

    operations: list[Operations]


async def versions_create(request: Request, ctx: Context) -> Response:
    """Commit a version to each of several tables, or to none."""
    body = request.decode(await body_of(request), CreateVersions)
    places = [_place(request, ctx, named=each) for each in body.entries]
    asked: list[Operation] = [
        lance_batches.CreateVersion(place.levels, each.asked())
        for each, place in zip(body.entries, places, strict=True)
    ]
    done = await _committed(ctx, places, asked=asked)
    return json_response({"versions": [shown(each) for each in done if isinstance(each, Shown)]})


async def tables_commit(request: Request, ctx: Context) -> Response:
    """Declare tables, commit and delete versions, and deregister tables: all of it or nothing."""
    body = request.decode(await body_of(request), CommitTables)
    named = [_only(each) for each in body.operations]
    places = [_place(request, ctx, named=each) for _, each in named]
    asked = [_operation(each, place) for (_, each), place in zip(named, places, strict=True)]
    done = await _committed(ctx, places, asked=asked)
    results = [
        {word: _result(word, place, result=one)} for (word, _), place, one in zip(named, places, done, strict=True)
    ]  # fmt: skip
    return json_response({"results": results})


def _only(operation: Operations) -> tuple[str, Named]:
    """Return the one thing that an operation does. Raises BadRequest."""
    found = [(name, value) for name in operation.__struct_fields__ if (value := getattr(operation, name)) is not None]
    if len(found) != 1:
        raise BadRequest(f"An operation does one thing and not {len(found)}: {', '.join(operation.__struct_fields__)}")
    return found[0]


def _place(request: Request, ctx: Context, *, named: Named) -> Place:
    if not named.id:
        raise BadRequest("Each entry names its table: send its whole identifier as id")
    return place_at(request, ctx, path=named.id)


def _operation(asked: Named, place: Place) -> Operation:
    levels = place.levels
    if isinstance(asked, DeclareTable):
        return lance_batches.Declare(levels, asked.location or None, asked.properties or {})
    if isinstance(asked, CreateVersion):
        return lance_batches.CreateVersion(levels, asked.asked())
    if isinstance(asked, DeleteVersions):
        return lance_batches.DeleteVersions(levels, asked.branch or "", asked.spans())
    return lance_batches.Deregister(levels)


async def _committed(ctx: Context, places: Sequence[Place], *, asked: Sequence[Operation]) -> Sequence[Result]:
    scopes: set[Scope] = {place.scope for place in places}
    if len(scopes) > 1:
        raise BadRequest("Tables of several catalogs are not committed together: send a request for each catalog")
    return await lance_batches.tables_commit(ctx, scopes.pop(), operations=asked) if scopes else []


def _result(word: str, place: Place, *, result: Result) -> dict[str, object]:
    if isinstance(result, Shown):
        return {"version": shown(result)}
    if isinstance(result, LanceTable):
        if word == "declare_table":
            return {**stored(result), "managed_versioning": result.record.managed}
        return {"id": place.path, **stored(result)}
    return {"deleted_count": result}
