# SPDX-License-Identifier: Apache-2.0
"""Exports and imports of metalakes: an export is one stream, an import is sent in parts.

Must not know the content of records. A client begins an import, sends the records in the order of the file, and
finishes it. After an interruption it reads the number of received records, and continues with the next one.
"""

from __future__ import annotations

from typing import Final

from limnos.access.actions import Action
from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, begun_stream_response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.rooms.exchange.formats.encoding import Form
from limnos.rooms.exchange.services import metalake_import
from limnos.rooms.exchange.services.metalake_export import metalake_export
from limnos.services.request.context import Context
from limnos.store.exchange.imports import MetalakeImport

_IMPORTS = "/api/limnos/v1/imports"
_ONE = f"{_IMPORTS}/{{id}}"
_MEDIA: Final = {"proto": b"application/x-protobuf", "json": b"application/x-ndjson"}
_PART_BYTES_MAX: Final = 8 << 20
_PART_S: Final = 120.0
"""The time limit of a part, in seconds: each of its records may refer to a metadata file, which is read."""


class ImportBeginRequest(AdminRequestBody, frozen=True):
    """The body of a request to begin an import: the name of the imported metalake, the format of the file, and whether
    objects keep their ids (`keep`) or get new ones (`map`).
    """

    name: str
    format: str = "proto"
    ids: str = "map"


async def export_stream(request: Request, ctx: Context) -> Response:
    """Export a metalake as a stream of records (`?format=proto` or `json`), read from one snapshot.

    `secrets=true` includes catalogs' secrets.
    """
    (metalake,) = names_of(request)
    form = _form(request.query("format") or "proto")
    stream = metalake_export(ctx, metalake=metalake, form=form, secrets=request.query_flag("secrets"))
    return await begun_stream_response(stream, ((b"content-type", _MEDIA[form]),))


def _form(text: str) -> Form:
    if text == "proto":
        return "proto"
    if text == "json":
        return "json"
    raise BadRequest(f"format must be proto or json, not '{text[:20]}'")


async def imports_list(request: Request, ctx: Context) -> Response:
    """Return the unfinished imports, at most a thousand."""
    del request
    return json_response({"imports": [_encode(each) for each in await metalake_import.imports_list(ctx)]})


async def import_begin(request: Request, ctx: Context) -> Response:
    """Begin an import. The metalake is invisible until the import is finished."""
    body = Request.decode(await request.body(), ImportBeginRequest)
    return json_response(
        _encode(await metalake_import.import_begin(ctx, name=body.name, form=body.format, ids=body.ids)), 201
    )


async def import_load(request: Request, ctx: Context) -> Response:
    """Return the state of an import, with the number of records received so far."""
    return json_response(_encode(await metalake_import.import_load(ctx, _id(request))))


async def import_feed(request: Request, ctx: Context) -> Response:
    """Import the records that follow the first `after` records of the file: all of them, or none if one is refused."""
    after = number_of(request.query("after") or "-")
    record_count = await metalake_import.import_feed(ctx, _id(request), after=after, body=request.body)
    return json_response(_encode(record_count))


async def import_finish(request: Request, ctx: Context) -> Response:
    """Complete an import: make the metalake and its objects visible. Returns the secret properties whose values the
    file lacks.
    """
    finished_import = await metalake_import.import_finish(ctx, _id(request))
    return json_response(
        {"metalake": finished_import.name, "records": finished_import.records, "masked": list(finished_import.masked)}
    )


async def import_abandon(request: Request, ctx: Context) -> Response:
    """Abandon an import. A background task deletes its records."""
    import_id = _id(request)
    await metalake_import.import_give_up(ctx, import_id)
    return json_response({"given_up": import_id})


def _id(request: Request) -> int:
    (text,) = names_of(request)
    number = number_of(text)
    if number is None:
        raise metalake_import.no_import(text[:50])
    return number


def _encode(result: MetalakeImport) -> dict[str, object]:
    return {
        "id": result.id,
        "name": result.name,
        "format": result.form,
        "ids": "keep" if result.keeps else "map",
        "state": result.state,
        "records": result.records,
        "source": result.source,
        "begun_by": result.begun_by,
        "begun_at": instant(result.begun_at),
        "fed_at": instant(result.fed_at),
    }


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/export",
        handler=export_stream,
        operation="export-metalake",
        query=("format", "secrets"),
    ),
    Route(method="GET", path=_IMPORTS, handler=imports_list, operation="list-imports"),
    Route(method="POST", path=_IMPORTS, handler=import_begin, operation="begin-import"),
    Route(method="GET", path=_ONE, handler=import_load, operation="load-import"),
    Route(
        method="POST",
        path=f"{_ONE}/records",
        handler=import_feed,
        operation="feed-import",
        query=("after",),
        deadline_s=_PART_S,
        body_bytes_max=_PART_BYTES_MAX,
        takes="any",
        asks=(Action.METALAKE_IMPORT,),
    ),
    Route(method="POST", path=f"{_ONE}/finish", handler=import_finish, operation="finish-import"),
    Route(method="DELETE", path=_ONE, handler=import_abandon, operation="give-up-import"),
)
