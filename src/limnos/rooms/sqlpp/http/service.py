# SPDX-License-Identifier: Apache-2.0
"""The query service: executes statements and returns their results.

Must not know engines. Small responses are sent completely, with the status of their outcome; larger ones in chunks, as
they are produced. With `mode` deferred or async results are stored, and the response contains a handle.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec

from limnos.http.request import Request
from limnos.http.response import JSON, Response, stream_response
from limnos.model.errors import LimnosError
from limnos.rooms.sqlpp.http.errors import Failure, error_entry, error_response, headers_of, status_of
from limnos.rooms.sqlpp.http.parameters import QueryRequest, query_request_of, request_parameters_of
from limnos.rooms.sqlpp.http.response_body import QueryResponseBody, status_word
from limnos.rooms.sqlpp.http.result_handles import RESULT, STATUS, QueryOutcome, handle_url
from limnos.rooms.sqlpp.language import ParsedStatement, SqlppError, tree
from limnos.rooms.sqlpp.language.result_text import ResultText
from limnos.rooms.sqlpp.services.requests.open_results import OPEN_RESULTS, OpenResult
from limnos.rooms.sqlpp.services.requests.options import ORDERED_FIELDS
from limnos.rooms.sqlpp.services.requests.results import ResultWriter
from limnos.rooms.sqlpp.services.requests.running_requests import REQUESTS, RequestEnded
from limnos.rooms.sqlpp.services.requests.running_requests import RunningRequest as Running
from limnos.rooms.sqlpp.services.requests.session import StatementDescription, StatementSession, UnsetParameters
from limnos.rooms.sqlpp.services.statements import (
    caller_require,
    dataverse_begin,
    has_results,
    statement_run,
    statements_of,
)
from limnos.services.request.context import Context
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.http")
SEVERAL_STATEMENTS: Final = 35
WHOLE_BYTES: Final = 1 << 18
"""The size in bytes up to which results are collected and sent in one response."""
_FAILURES: Final = (SqlppError, RequestEnded, LimnosError)


async def query_service(request: Request, ctx: Context) -> Response:
    """Execute statements, and return their results. A GET request may only read."""
    try:
        requester = await caller_require(ctx)
        accept = request.headers.get(b"accept", b"").decode("latin-1")
        parameters = await request_parameters_of(request, ctx)
        query_request = query_request_of(parameters, reads=request.method != "POST", accept=accept)
    except (SqlppError, RequestEnded) as failure:
        return error_response(failure, request_id=request.id, operation="query-service")
    body = QueryResponseBody(
        request_id=request.id,
        client_context_id=query_request.client_context_id,
        pretty=query_request.pretty,
        has_results=False,
        format_=query_request.format,
        signature=query_request.signature,
        warnings_max=query_request.max_warnings,
    )
    now_ms = ctx.services.store.time.now_ms()
    running = Running(
        request_id=request.id,
        requester=requester,
        client_context_id=query_request.client_context_id,
        text=query_request.statement,
        now_ms=now_ms,
        mode=query_request.mode,
        is_gone=None if query_request.mode == "async" else request.is_gone,
    )
    run = _QueryRun(ctx, query_request, body=body, running=running, now_ms=now_ms)
    if query_request.mode == "immediate":
        return await _respond(run)
    return await _respond_with_handle(run, request)


class _QueryRun:
    """The execution of one request's statements."""

    def __init__(
        self, ctx: Context, request: QueryRequest, *, body: QueryResponseBody, running: Running, now_ms: int
    ) -> None:
        seconds = ctx.services.defaults.sqlpp_timeout_s
        self.timeout_s = seconds if request.timeout_ms is None else min(seconds, request.timeout_ms / 1000)
        self.ctx, self.asked, self.body, self.running = ctx, request, body, running
        self.session = StatementSession(
            ctx=ctx,
            now_ms=now_ms,
            parameters=request.parameters,
            ends_at=time.monotonic() + self.timeout_s,
            compiles_only=request.compile_only,
            plans_as_text=request.plan_format == "string",
            results_tagged=request.format != "json",
            sql_compat=request.sql_compat,
        )
        if not request.ordered_fields:
            self.session.options[ORDERED_FIELDS] = "false"
        if request.is_tabular:
            self.session.description = StatementDescription()
        if request.compile_only:
            self.session.parameters = UnsetParameters(request.parameters)
        self.text = ResultText(request.format)
        self.is_ordered = False
        self._open_result: OpenResult | None = None

    def open_result(self) -> None:
        """Count the result as streamed until the statements have ended. Raises TooManyAttempts."""
        self._open_result = OPEN_RESULTS.of(self.ctx.services).open(self.running.requester.name)

    async def batches(self) -> AsyncGenerator[list[bytes], None]:
        """Yield the results of all statements in batches. Raises the errors of the statements."""
        requests = REQUESTS.of(self.ctx.services)
        requests.add(self.running)
        try:
            async with (
                aclosing(self._lines()) as lines,
                aclosing(self.running.batches(lines, timeout_s=self.timeout_s)) as batches,
            ):
                async for batch in batches:
                    yield batch
        finally:
            if self._open_result is not None:
                self._open_result.close()
            await requests.remove(self.running)

    async def parse(self) -> tuple[ParsedStatement, ...]:
        """Parse the request's text into statements. Raises SqlppError for a syntax error, for several statements if the
        request allows one, and for a statement that is not allowed.
        """
        parsed = await statements_of(self.ctx, self.asked.statement, read_only=self.asked.read_only)
        if not self.asked.multi_statement and len(parsed) > 1:
            raise SqlppError(SEVERAL_STATEMENTS, "Unsupported multiple statements")
        self.body.has_results = any(has_results(each.statement) for each in parsed)
        self.is_ordered = bool(parsed) and _is_ordered(parsed[-1].statement)
        self.body.record_start()
        return parsed

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        parsed = await self.parse()
        if self.asked.dataverse is not None:
            await dataverse_begin(self.session, self.asked.dataverse, statements=parsed)
        for each in parsed:
            async for line in self._result_lines(each):
                yield line

    async def _result_lines(self, parsed: ParsedStatement) -> AsyncGenerator[bytes, None]:
        async with aclosing(statement_run(self.session, parsed)) as lines:
            async for line in lines:
                if not self.session.results_tagged or isinstance(parsed.statement, tree.Explain):
                    yield line
                    continue
                for one in self.text.lines(line):
                    yield one
        self.body.uses_cached_plan = self.session.uses_cached_plan


async def _respond(run: _QueryRun) -> Response:
    """Execute the statements, and return their results: small ones in one response, larger ones as a stream."""
    body, batches = run.body, run.batches()
    gathered: list[bytes] = []
    size = 0
    try:
        async for batch in batches:
            gathered.append(body.rows(batch))
            size += len(gathered[-1])
            if size > WHOLE_BYTES:
                run.open_result()
                return stream_response(_pieces(run, gathered, batches=batches))
    except _FAILURES as failure:
        await batches.aclose()
        return _refusal_response(run, failure)
    body.describe(run.session.description)
    return Response(200, b"".join((body.head(), *gathered, body.tail(run.session.warnings))))


async def _pieces(
    run: _QueryRun, gathered: list[bytes], *, batches: AsyncGenerator[list[bytes], None]
) -> AsyncGenerator[bytes, None]:
    """Yield the chunks of a streamed response. An error after the first chunk is reported at the end of the body."""
    body = run.body
    failure: Failure | None = None
    async with aclosing(batches):
        body.describe(run.session.description)
        yield body.head() + b"".join(gathered)
        gathered.clear()
        try:
            async for batch in batches:
                yield body.rows(batch)
        except _FAILURES as error:
            failure = error
        except Exception:  # part of the body is sent, so the error must be reported at its end
            log.exception("unexpected failure", operation="query-service", request_id=run.running.id)
            failure = _unexpected_error(run)
    yield body.tail(run.session.warnings, failure)


def _unexpected_error(run: _QueryRun) -> LimnosError:
    """Return the error that is sent to the caller in place of an unexpected exception."""
    return LimnosError(f"An unexpected error occurred; tell your administrator the request id {run.running.id}")


def _refusal_response(run: _QueryRun, failure: Failure) -> Response:
    status = status_of(failure)
    response = Response(
        status, run.body.error_body(run.session.warnings, failure), (JSON, *headers_of(failure, status))
    )
    response.reason = str(error_entry(failure)["msg"])
    return response


async def _respond_with_handle(run: _QueryRun, request: Request) -> Response:
    """Store results under a handle, and return the handle: for `async` immediately, for `deferred` when they are
    complete.
    """
    writer = ResultWriter(run.ctx, run.running, timeout_s=run.timeout_s)
    handle = run.running.handle
    try:
        statements = await run.parse()  # a syntax error is returned directly, without a handle
        if run.asked.is_tabular and _needs_no_handle(run, statements):
            return await _respond(run)
        await writer.begin()
    except _FAILURES as failure:
        return _refusal_response(run, failure)
    requests = REQUESTS.of(run.ctx.services)
    working = requests.run_in_background(_store_results(run, writer))
    if run.asked.mode == "async":
        return Response(
            200, run.body.body_with_handle("running", handle_url(request, run.ctx, route=STATUS, handle=handle))
        )
    failed = await working
    if failed is not None:
        return _refusal_response(run, failed)
    run.body.describe(run.session.description)
    url = handle_url(request, run.ctx, route=RESULT, handle=handle)
    return Response(200, run.body.body_with_handle("success", url, warnings=run.session.warnings))


def _is_ordered(statement: tree.Statement) -> bool:
    body = statement.body if isinstance(statement, tree.QueryStatement) else None
    return isinstance(body, tree.QueryExpression) and bool(body.order)


def _needs_no_handle(run: _QueryRun, statements: tuple[ParsedStatement, ...]) -> bool:
    """Return whether the JDBC driver expects a response without a handle: one with a plan, or for statements without
    results.
    """
    explains = bool(statements) and isinstance(statements[-1].statement, tree.Explain)
    return explains or run.asked.compile_only or not run.body.has_results


async def _store_results(run: _QueryRun, writer: ResultWriter) -> Failure | None:
    """Execute statements, and store their results and outcome. Returns the error that ended the execution, or None."""
    failed: Failure | None = None
    try:
        async with aclosing(run.batches()) as batches:
            async for batch in batches:
                run.body.count_results(batch)
                await writer.add(batch)
        await writer.flush_last()
    except _FAILURES as failure:
        failed = failure
    except Exception:
        log.exception("unexpected failure", operation="query-service", request_id=run.running.id)
        failed = _unexpected_error(run)
    if failed is not None and run.asked.mode == "deferred":  # the client never learns the handle
        await writer.give_up()
        return failed
    body = run.body.outcome(run.session.warnings, failed)
    status = 200 if failed is None else status_of(failed)
    await writer.end(
        status_word(failed),
        msgspec.json.encode(
            QueryOutcome(
                http=status,
                has_results=run.body.has_results,
                outcome_fields=msgspec.Raw(body),
                is_read_once=run.asked.is_read_once,
                format=run.asked.format,
                is_ordered=run.is_ordered,
                datasets=tuple(sorted(run.session.datasets_read)),
            )
        ),
    )
    return failed
