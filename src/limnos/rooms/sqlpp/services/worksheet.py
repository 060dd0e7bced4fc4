# SPDX-License-Identifier: Apache-2.0
"""Worksheets of the console: run statements and return their first results, with the query plan if requested.

Must not know any wire format. Statements run with the caller's rights, like those of the query service. A read-only
worksheet cancels a statement once it has enough results. A run with changes is executed once: a browser that reloads
its page sends the same form again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, NamedTuple

import msgspec

from limnos.model.errors import BadRequest, NotFound, ServiceUnavailable
from limnos.model.principals import Requester
from limnos.rooms.sqlpp.language import ParsedStatement, SqlppError, tree
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.rooms.sqlpp.services.requests.running_requests import REQUESTS, RequestEnded, RunningRequest
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.rooms.sqlpp.services.statements import caller_require, statement_kind_of, statement_run, statements_of
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey

ROWS_MAX: Final = 500
BYTES_MAX: Final = 128 << 10
TIMEOUT_S: Final = 20.0
"""The time limit of a worksheet's statements, in seconds. Longer statements need a client."""
OWN_ID_MAX: Final = 100
CHANGE_IDS_MAX: Final = 1_000
"""The maximum number of ids of runs with changes that a node stores in memory."""
ENGINE_STARTS: Final = (
    "The engine of SQL++ is starting for the first statement that reads data, which takes up to a minute: run the"
    " statement again. With the setting engine.warm it starts with the server"
)


class WorksheetRequest(NamedTuple):
    """Statements to run. `own_id` is the id that the caller chose for this run, by which it can be cancelled."""

    text: str
    may_change: bool
    is_plan: bool
    own_id: str
    request_id: str
    is_gone: Callable[[], bool] | None = None


class WorksheetResult(NamedTuple):
    """The first results as lines of JSON, whether there are more, warnings, and the duration in milliseconds.

    `is_repeated` is whether a run with the same id changed data before; then this one executed nothing.
    """

    lines: tuple[bytes, ...]
    has_more: bool
    warnings: tuple[str, ...]
    took_ms: int
    is_repeated: bool = False


class RepeatedRun(Exception):
    """Raised for a run with the id of an earlier run by the same user, which may have changed data. Nothing was
    executed.
    """


class ChangeIds:
    """The ids of the newest runs with changes on this node, by user. They are not shared with other nodes."""

    def __init__(self) -> None:
        self._ids: dict[tuple[int, str], None] = {}

    def add(self, requester: Requester, own_id: str) -> None:
        """Add the id of a run, and remove the oldest one beyond the limit. Raises RepeatedRun for an id that was added
        before.
        """
        key = (requester.id, own_id)
        if key in self._ids:
            raise RepeatedRun
        self._ids[key] = None
        if len(self._ids) > CHANGE_IDS_MAX:
            del self._ids[next(iter(self._ids))]


CHANGE_IDS: ComponentKey[ChangeIds] = ComponentKey("worksheet change ids", lambda _: ChangeIds())


async def worksheet_run(ctx: Context, request: WorksheetRequest) -> WorksheetResult:
    """Run statements and return their first results. A text with changes is executed once for each id, if it has one.

    Raises BadRequest for a statement that is invalid, was cancelled or timed out, ServiceUnavailable if the engine is
    still starting, PermissionDenied, and other errors of statements.
    """
    requester = await caller_require(ctx)
    began, now_ms = time.monotonic(), ctx.services.store.time.now_ms()
    timeout_s = min(TIMEOUT_S, ctx.services.defaults.sqlpp_timeout_s)
    session = StatementSession(ctx=ctx, now_ms=now_ms, parameters={}, ends_at=began + timeout_s, plans_as_text=True)
    running = RunningRequest(
        request_id=request.request_id,
        requester=requester,
        client_context_id=request.own_id[:OWN_ID_MAX] or None,
        text=request.text,
        now_ms=now_ms,
        is_gone=request.is_gone,
    )
    requests = REQUESTS.of(ctx.services)
    requests.add(running)
    try:
        lines, has_more = await _first_lines(session, running, request=request, timeout_s=timeout_s)
    except RepeatedRun:
        return WorksheetResult(lines=(), has_more=False, warnings=(), took_ms=0, is_repeated=True)
    except SqlppError as error:
        raise BadRequest(error.text) from None
    except RequestEnded as error:
        if error.late and ENGINE.of(ctx.services).is_starting:
            raise ServiceUnavailable(ENGINE_STARTS) from None
        hint = (
            f". Statements of a worksheet may take {timeout_s:g} s: run longer ones with 'limnos sql'"
            if error.late
            else ""
        )
        raise BadRequest(f"{error}{hint}") from None
    finally:
        await requests.remove(running)
    warnings = tuple(each.text for each in session.warnings)
    return WorksheetResult(
        lines=lines, has_more=has_more, warnings=warnings, took_ms=round((time.monotonic() - began) * 1000)
    )


async def _first_lines(
    session: StatementSession, running: RunningRequest, *, request: WorksheetRequest, timeout_s: float
) -> tuple[tuple[bytes, ...], bool]:
    """Return the first results, and whether there are more. Statements that may change data run to their end."""
    entries: list[bytes] = []
    size, has_more = 0, False
    async with (
        aclosing(_lines(session, request, requester=running.requester)) as lines,
        aclosing(running.batches(lines, timeout_s=timeout_s)) as batches,
    ):
        async for batch in batches:
            for line in batch:
                has_more = has_more or len(entries) == ROWS_MAX or size + len(line) > BYTES_MAX
                if not has_more:
                    entries.append(line)
                    size += len(line)
            if has_more and not request.may_change:
                break
    return tuple(entries), has_more


async def _lines(
    session: StatementSession, request: WorksheetRequest, *, requester: Requester
) -> AsyncGenerator[bytes, None]:
    parsed = await statements_of(session.ctx, request.text, read_only=not request.may_change)
    has_changes = not all(statement_kind_of(each.statement).reads for each in parsed)
    if has_changes and request.own_id and not request.is_plan:
        CHANGE_IDS.of(session.ctx.services).add(requester, request.own_id[:OWN_ID_MAX])
    for each in map(_wrap_in_explain, parsed) if request.is_plan else parsed:
        async with aclosing(statement_run(session, each)) as lines:
            async for line in lines:
                yield line


def _wrap_in_explain(parsed: ParsedStatement) -> ParsedStatement:
    """Wrap a query in EXPLAIN; USE, SET and DECLARE are returned unchanged. Raises BadRequest for others."""
    statement = parsed.statement
    if isinstance(statement, tree.QueryStatement):
        return msgspec.structs.replace(parsed, statement=tree.Explain(statement.at, statement))
    if isinstance(statement, tree.Use | tree.SetOption | tree.DeclareFunction | tree.Explain):
        return parsed
    raise BadRequest("Only queries have a plan: leave the other statements out")


async def worksheet_cancel(ctx: Context, own_id: str) -> None:
    """Cancel one of the caller's runs, on any node. Raises NotFound if no such run exists, PermissionDenied."""
    requester = await caller_require(ctx)
    if not own_id or not await REQUESTS.of(ctx.services).cancel(
        "client_context_id", own_id[:OWN_ID_MAX], requester=requester, everybody=False
    ):
        raise NotFound("You have no running statement with this id: it has ended already", kind="request")
