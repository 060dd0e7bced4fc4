# SPDX-License-Identifier: Apache-2.0
"""Handles of asynchronous and deferred requests: their status, their results, and deletion of results.

Must not know statements. A handle is the URL of one of these routes. Only the user who sent the request can use it;
other users get 404. While a request runs, its result is not available (409). If the node that ran the request has
stopped, the outcome is unknown.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from limnos.http.request import Request
from limnos.http.response import JSON, Response, json_response, stream_response
from limnos.http.times import instant
from limnos.model.entities import RUNNING, StatementRequest
from limnos.model.errors import LimnosError
from limnos.rooms.sqlpp.http.response_body import QueryResponseBody
from limnos.rooms.sqlpp.language.result_text import ResultFormat
from limnos.rooms.sqlpp.services.execution.result_access import readable_lines, result_require
from limnos.rooms.sqlpp.services.requests.results import is_lost, result_discard, result_find
from limnos.rooms.sqlpp.services.statements import caller_require
from limnos.services.request.context import Context

STATUS: Final = "status"
RESULT: Final = "result"
LOST: Final = (
    "ASX3102: The node that ran the request no longer responds. Each of its statements was executed completely or not"
    " at all: check before you run it again"
)


class QueryOutcome(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The stored outcome of a request: its HTTP status, whether it has results, and the end of the response body."""

    http: int
    has_results: bool
    outcome_fields: msgspec.Raw
    is_read_once: bool = False
    """Whether the results are deleted when they have been read completely."""
    format: ResultFormat = "json"
    is_ordered: bool = False
    """Whether the last query has ORDER BY."""
    datasets: tuple[int, ...] = ()
    """The node ids of the datasets from which the results were made."""


def handle_url(request: Request, ctx: Context, *, route: str, handle: str) -> str:
    """Return the URL of a handle: below the server's public URL, or else with the host name of the request.

    `route` is `status` or `result`. Headers of proxies (`X-Forwarded-Proto`) are ignored, because anyone can send them.
    """
    path, defaults = f"/query/service/{route}/{handle}", ctx.services.defaults
    if defaults.public_url is not None:
        return defaults.public_url + path
    host = request.headers.get(b"host", b"").decode("latin-1")
    return f"{'https' if defaults.is_tls else 'http'}://{host}{path}" if host else path


async def _find(request: Request, ctx: Context) -> StatementRequest:
    requester = await caller_require(ctx)
    return await result_find(ctx, request.params[0].decode("latin-1"), requester=requester)


async def status(request: Request, ctx: Context) -> Response:
    """Return the status of a request: `running`, its failure, or the handle of its result."""
    row = await _find(request, ctx)
    if is_lost(ctx, row):
        return _without_results(row, "fatal", message=LOST)
    if row.state == RUNNING:
        return json_response({"status": RUNNING, "handle": handle_url(request, ctx, route=STATUS, handle=row.handle)})
    if row.state == "success":
        return json_response(
            {
                "status": row.state,
                "handle": handle_url(request, ctx, route=RESULT, handle=row.handle),
                "resultCount": row.rows_count,
                "resultSetOrdered": _outcome(row).is_ordered,
                "createdAt": instant(row.started_at),
            }
        )
    return Response(200, bytes(_outcome(row).outcome_fields))


async def result(request: Request, ctx: Context) -> Response:
    """Return a request's results, in the same format as a synchronous response, if the caller may still read the rows
    from which they were made.

    Results that can be read once are deleted when they have been sent completely.
    """
    row = await _find(request, ctx)
    if is_lost(ctx, row):
        return _without_results(row, "fatal", message=LOST, code=410)
    if row.state == RUNNING:
        return _without_results(row, RUNNING, message="The request is still running: request its status", code=409)
    outcome = _outcome(row)
    body = QueryResponseBody(
        request_id=row.request_id,
        client_context_id=row.client_context_id or None,
        pretty=request.query_flag("pretty"),
        has_results=outcome.has_results and row.state == "success",
        format_=outcome.format,
    )
    if row.state != "success":
        return Response(outcome.http, body.head() + body.tail_with_outcome(bytes(outcome.outcome_fields)))
    await result_require(ctx, row, datasets=outcome.datasets)
    return stream_response(_pieces(ctx, row, body=body, outcome=outcome))


async def _pieces(
    ctx: Context, row: StatementRequest, *, body: QueryResponseBody, outcome: QueryOutcome
) -> AsyncGenerator[bytes, None]:
    yield body.head()
    try:
        async for lines in readable_lines(ctx, row, datasets=outcome.datasets):
            yield body.rows(lines)
    except LimnosError as failure:
        # A part is missing, or the right to read it: this response fails, whatever the request's outcome was.
        yield body.tail((), failure)
    else:
        yield body.tail_with_outcome(bytes(outcome.outcome_fields))
        if outcome.is_read_once:
            await result_discard(ctx, row)


def _without_results(row: StatementRequest, word: str, *, message: str, code: int = 200) -> Response:
    """Return the response for a request that has no stored outcome. `word` is the field `status`, `code` the HTTP
    status.
    """
    return json_response({"requestID": row.request_id, "errors": [{"code": 1, "msg": message}], "status": word}, code)


def _outcome(row: StatementRequest) -> QueryOutcome:
    return msgspec.json.decode(row.outcome, type=QueryOutcome)


async def discard(request: Request, ctx: Context) -> Response:
    """Delete the result of a request, and cancel the request if it is still running."""
    row = await _find(request, ctx)
    await result_discard(ctx, row)
    return Response(200, msgspec.json.encode({"discarded": row.handle}), (JSON,))
