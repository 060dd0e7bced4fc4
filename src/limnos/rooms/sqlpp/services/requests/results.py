# SPDX-License-Identifier: Apache-2.0
"""Deferred results: stored under a handle, for the user who requested them, with limits on time and size.

Must not know any wire format: results are lines of JSON, and the final response is bytes. Any node can return them,
since they are in the store. A result can be read only after its request has ended.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Final

from limnos.model.entities import RUNNING, StatementRequest
from limnos.model.errors import LimnosError, NotFound, ServiceUnavailable, TooLarge, TooManyAttempts
from limnos.model.principals import Requester
from limnos.rooms.sqlpp.services.requests.running_requests import REQUESTS, RequestEnded, RunningRequest
from limnos.services.request.context import Context
from limnos.store.activity.sqlpp_requests import part_query, request_query, rows_of
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.sqlpp")
PART_BYTES: Final = 1 << 18


class ResultWriter:
    """Buffers the results of one request and writes them to the store under a handle."""

    def __init__(self, ctx: Context, request: RunningRequest, *, timeout_s: float) -> None:
        self._requests = REQUESTS.of(ctx.services)
        self._request = request
        self._defaults = ctx.services.defaults
        self._timeout_ms = int(timeout_s * 1000)
        self._held: list[bytes] = []
        self._size = 0
        self._number = 0

    async def begin(self) -> None:
        """Create the row of a result in the store. Raises TooManyAttempts if the user has too many results."""
        most, request = self._defaults.sqlpp_results_max, self._request

        def mutation(tx: Tx) -> None:
            if tx.requests.count_results(request.requester)[0] >= most:
                raise TooManyAttempts(
                    f"You have {most} running or stored results (sqlpp.results_max): discard some, by DELETE of their"
                    " handles, or wait until they expire",
                    retry_after_s=60,
                )
            until = tx.now_ms + self._timeout_ms + self._defaults.sqlpp_results_keep_ms
            tx.requests.insert(request.row(self._requests.holder, now_ms=tx.now_ms, expires_at=until))

        await self._requests.store.submit(self._requests.permit, mutation)
        request.is_known = True

    async def add(self, lines: list[bytes]) -> None:
        """Append results, and write them once enough are buffered. Raises TooLarge for too many bytes, and RequestEnded
        if the result was deleted.
        """
        self._held += lines
        self._size += sum(map(len, lines)) + len(lines)
        if self._size >= PART_BYTES:
            await self._flush()

    async def _flush(self) -> None:
        body, count = b"\n".join(self._held), len(self._held)
        handle, number, most = self._request.handle, self._number, self._defaults.sqlpp_results_bytes_max

        def mutation(tx: Tx) -> None:
            if not tx.requests.add(handle, number, body=body, count=count):
                raise RequestEnded("ASX0041: The request was cancelled", late=False)
            if tx.requests.count_results(self._request.requester)[1] > most:
                raise TooLarge(
                    f"Your stored results exceed {most} bytes (sqlpp.results_bytes_max): request less, or discard"
                    " others, by DELETE of their handles"
                )

        await self._requests.store.submit(self._requests.permit, mutation)
        self._held, self._size, self._number = [], 0, number + 1

    async def flush_last(self) -> None:
        """Write the results that are still buffered. Raises as `add`."""
        if self._held:
            await self._flush()

    async def end(self, state: str, outcome: bytes) -> None:
        """Store the final state and outcome of the request.

        If the store cannot be reached, the request counts as lost once this node's lease expires.
        """
        handle, keep_ms = self._request.handle, self._defaults.sqlpp_results_keep_ms
        await self._try_update(lambda tx: tx.requests.end(handle, state=state, outcome=outcome, keep_ms=keep_ms))

    async def give_up(self) -> None:
        """Delete the result, since no client will fetch it."""
        await self._try_update(lambda tx: tx.requests.delete(self._request.handle))

    async def _try_update(self, mutation: Callable[[Tx], None]) -> None:
        try:
            await self._requests.store.submit(self._requests.permit, mutation)
        except LimnosError as error:
            log.warning("the end of a request could not be recorded", handle=self._request.handle, error=str(error))


async def result_find(ctx: Context, handle: str, *, requester: Requester) -> StatementRequest:
    """Return the request of a handle. Raises NotFound, with the same message if the handle belongs to another user."""
    requests = rows_of(await ctx.find(request_query(handle, requester)))
    if not requests:
        raise NotFound("You have no stored result with that handle: it has expired, or was discarded", kind="result")
    return requests[0]


def is_lost(ctx: Context, row: StatementRequest) -> bool:
    """Return whether the node that ran the request has stopped renewing its lease."""
    return row.is_lost(ctx.services.store.time.now_ms())


async def result_lines(ctx: Context, row: StatementRequest) -> AsyncGenerator[list[bytes], None]:
    """Yield a result's lines in chunks. Raises ServiceUnavailable if the result is deleted before its end is read."""
    count = number = 0
    while count < row.rows_count:
        results = await ctx.find(part_query(row.handle, number))
        if not results:
            raise ServiceUnavailable("The result was discarded while it was read")
        lines = bytes(results[0][0]).split(b"\n")
        count += len(lines)
        number += 1
        yield lines


async def result_discard(ctx: Context, row: StatementRequest) -> None:
    """Delete a result; a running request is cancelled."""
    requests = REQUESTS.of(ctx.services)
    if row.state == RUNNING and not is_lost(ctx, row):
        await requests.cancel("handle", row.handle, requester=row.requester, everybody=False)
    await requests.store.submit(requests.permit, lambda tx: tx.requests.delete(row.handle))
