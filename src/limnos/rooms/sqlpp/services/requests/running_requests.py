# SPDX-License-Identifier: Apache-2.0
"""Running requests of the query service: their users and start times, and their cancellation on any node.

Must not know any wire format. Results are taken in batches, so that the checks for deadline and cancellation cost
little per row.

Costs: a request that ends within a second does not use the store for this. A longer request has a row in the store, so
that every node can list and cancel it. While there are such requests, the node polls twice a second for
cancellations (one statement), and renews its lease every five seconds (one transaction). A row whose node has not
renewed the lease for `LEASE_MS` is orphaned.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from secrets import token_hex
from typing import Any, Final, TypeVar

from limnos.model.entities import IMMEDIATE, StatementRequest
from limnos.model.permits import upkeep_permit
from limnos.model.principals import Requester
from limnos.services.request.concurrency.background_loops import BackgroundLoops
from limnos.services.request.concurrency.lease_holders import new_holder
from limnos.services.request.concurrency.loop_turns import in_turns
from limnos.services.request.node_services import ComponentKey
from limnos.store.activity.sqlpp_requests import held_query, rows_of, runs_query
from limnos.store.interface import Store
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.view.freshness_gate import FreshnessGate

T = TypeVar("T")
log = get_logger("limnos.sqlpp")
BATCH_BYTES: Final = 65_536
TEXT_SHOWN: Final = 1_000
EVERY_S: Final = 0.5
KNOWN_AFTER_S: Final = 1.0
"""The running time after which a request is stored for other nodes, in seconds."""
LEASE_MS: Final = 15_000
BEAT_S: Final = LEASE_MS / 3000
REACH_S: Final = 2.0
"""The maximum time that a cancellation waits for a request that has just begun on another node, in seconds."""


class StatementEnded(Exception):
    """Raised if a statement is cancelled, by another request, at the deadline or at the server's stop; the message
    states its effect on the data.
    """


class RequestEnded(Exception):
    """Raised if a request was aborted: at its deadline if `late`, else by a cancellation."""

    def __init__(self, message: str, *, late: bool) -> None:
        super().__init__(message)
        self.late = late


class RunningRequest:
    """A SQL++ request that this process executes, and that another request can list and cancel."""

    def __init__(
        self,
        *,
        request_id: str,
        requester: Requester,
        client_context_id: str | None,
        text: str,
        now_ms: int,
        mode: str = IMMEDIATE,
        is_gone: Callable[[], bool] | None = None,
    ) -> None:
        self.handle = token_hex(16)
        self.id = request_id
        self.requester = requester
        self.client_context_id = client_context_id
        self.text = text[:TEXT_SHOWN]
        self.started_ms = now_ms
        self.mode = mode
        self.is_known = False
        """Whether the store has a row for it."""
        self.is_gone = is_gone or (lambda: False)
        """Returns whether the client has disconnected."""
        loop = asyncio.get_running_loop()
        self.began = loop.time()
        self._stopped: asyncio.Future[str] = loop.create_future()

    @property
    def is_stopped(self) -> bool:
        """Whether the request was cancelled; its statement ends soon."""
        return self._stopped.done()

    def stop(self, why: str = "The request was cancelled") -> None:
        """Cancel the request; `why` is the error message."""
        if not self._stopped.done():
            self._stopped.set_result(why)

    def row(self, holder: str, *, now_ms: int, expires_at: int = 0) -> StatementRequest:
        """Build the row by which other nodes list and cancel the request."""
        return StatementRequest(
            handle=self.handle,
            user_name=self.requester.name,
            user_id=self.requester.id,
            request_id=self.id,
            client_context_id=self.client_context_id or "",
            statement=self.text,
            mode=self.mode,
            started_at=self.started_ms,
            holder=holder,
            alive_until=now_ms + LEASE_MS,
            expires_at=expires_at,
        )

    async def batches(self, lines: AsyncIterator[bytes], *, timeout_s: float) -> AsyncGenerator[list[bytes], None]:
        """Yield lines in batches. Raises RequestEnded at the deadline, or when the request is cancelled."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        more = True
        while more:
            taking = asyncio.ensure_future(in_turns(_take(lines)))
            try:
                await asyncio.wait(
                    (taking, self._stopped), timeout=until - loop.time(), return_when=asyncio.FIRST_COMPLETED
                )
                if not taking.done():
                    raise self._request_end(timeout_s, left=await _end_running(taking))
            finally:
                if not taking.done():
                    taking.cancel()
                    with suppress(asyncio.CancelledError, Exception):
                        await taking
            batch, more = taking.result()
            if batch:
                yield batch

    def _request_end(self, timeout_s: float, *, left: str) -> RequestEnded:
        if self._stopped.done():
            return RequestEnded(f"ASX0041: {self._stopped.result()}{left}", late=False)
        return RequestEnded(
            f"The request took longer than its limit of {timeout_s:g} s, and was ended{left}", late=True
        )


async def _end_running(taking: asyncio.Future[tuple[list[bytes], bool]]) -> str:
    """Cancel the running statement. Returns a clause for the error message on its effect on the data."""
    taking.cancel()
    with suppress(asyncio.CancelledError, Exception):
        try:
            await taking
        except StatementEnded as result:
            return f": {result}"
    return ""


async def _take(lines: AsyncIterator[bytes]) -> tuple[list[bytes], bool]:
    """Return the next lines, and whether there may be more."""
    batch: list[bytes] = []
    size = 0
    async for line in lines:
        batch.append(line)
        size += len(line)
        if size >= BATCH_BYTES:
            return batch, True
    return batch, False


class RunningRequests:
    """The running requests of this node, and access to those of other nodes."""

    def __init__(
        self,
        gate: FreshnessGate,
        store: Store,
        *,
        every_s: float = EVERY_S,
        reach_s: float = REACH_S,
        loops: BackgroundLoops | None = None,
    ) -> None:
        self._loops = BackgroundLoops() if loops is None else loops
        self.gate = gate
        self.store = store
        self.every_s = every_s
        self.reach_s = reach_s
        self.holder = new_holder()
        self.permit = upkeep_permit("limnos")
        self._held: dict[str, RunningRequest] = {}
        self._watching: asyncio.Task[None] | None = None
        self._beat_at = 0.0
        self._background: set[asyncio.Task[Any]] = set()

    def add(self, request: RunningRequest) -> None:
        """Register a request until it ends, and start the polling for cancelled requests and disconnected clients."""
        self._held[request.handle] = request
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    async def remove(self, request: RunningRequest) -> None:
        """Remove a request and its row in the store, except the row of a deferred result."""
        self._held.pop(request.handle, None)
        if request.is_known and request.mode == IMMEDIATE:
            await asyncio.shield(self.run_in_background(self._forget(request)))

    def of(self, requester: Requester | None) -> Iterator[RunningRequest]:
        """Yield the running requests of a user on this node; of all users for None."""
        return (each for each in list(self._held.values()) if requester is None or each.requester == requester)

    async def everywhere(self, requester: Requester, *, everybody: bool) -> list[StatementRequest]:
        """Return the requests of a user on all nodes; with `everybody` those of all users.

        On other nodes, only requests that have run for more than a second are listed.
        """
        here = [each.row(self.holder, now_ms=each.started_ms) for each in self.of(None if everybody else requester)]
        query = runs_query(requester, everybody=everybody, now_ms=self.store.time.now_ms())
        requests = rows_of(await self.gate.find(query))
        return here + [each for each in requests if each.holder != self.holder]

    async def cancel(self, by: str, value: str, *, requester: Requester, everybody: bool) -> list[str]:
        """Cancel the matching requests on this node immediately, or, if it has none, those on other nodes, which poll
        for cancellations. Waits up to `reach_s` seconds for a request that has just begun there.

        Args:
            by: The field to compare: `request_id`, `client_context_id` or `handle`.
            value: The value of that field.
            requester: The user who cancels; unless `everybody`, only requests of this user are cancelled.
            everybody: Whether to cancel requests of all users.

        Returns:
            The ids of the cancelled requests; empty if none matched.
        """
        here = [each for each in self.of(None if everybody else requester) if _is_request(each, by, value=value)]
        for each in here:
            each.stop()
        if here:
            return [each.id for each in here]
        until = asyncio.get_running_loop().time() + self.reach_s
        while True:
            names = await self.store.submit(
                self.permit, lambda tx: tx.requests.cancel(by, value, requester=requester, everybody=everybody)
            )
            if names or asyncio.get_running_loop().time() >= until:
                return names
            await asyncio.sleep(self.every_s)

    def run_in_background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine in a background task, for whose end `close` waits."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def close(self) -> None:
        """Cancel all running requests, and wait for background tasks."""
        for each in self._held.values():
            each.stop("The server was stopped: run it again")
        await asyncio.gather(*self._background, return_exceptions=True)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self) -> None:
        """Poll for cancellations periodically while there are running requests."""
        loop = self._loops.add("running statements", every_s=self.every_s, retry_s_max=BEAT_S)
        try:
            while True:
                await asyncio.sleep(loop.pause_s)
                if not self._held:
                    return
                await loop.attempt(self.look)
        finally:
            loop.reset()

    async def look(self) -> None:
        """Cancel requests whose client has disconnected or that were cancelled or discarded on any node, and store long
        ones.
        """
        for each in self._held.values():
            if each.is_gone():
                each.stop("Its client has disconnected")
        await self._make_known()
        visible_requests = [each for each in self._held.values() if each.is_known]
        if visible_requests:
            cancelled = {handle: bool(mark) for handle, mark in await self.gate.find(held_query(self.holder))}
            for each in visible_requests:  # a result that was discarded on another node has no row any more
                if cancelled.get(each.handle, each.mode != IMMEDIATE):
                    each.stop()

    async def _make_known(self) -> None:
        now = asyncio.get_running_loop().time()
        new = [each for each in self._held.values() if not each.is_known and now - each.began >= KNOWN_AFTER_S]
        is_due = now - self._beat_at >= BEAT_S and any(each.is_known for each in self._held.values())
        if not new and not is_due:
            return

        def mutation(tx: Tx) -> None:
            for each in new:
                if each.handle in self._held:
                    tx.requests.insert(each.row(self.holder, now_ms=tx.now_ms))
                    each.is_known = True
            tx.requests.beat(self.holder, lease_ms=LEASE_MS)

        try:
            await self.store.submit(self.permit, mutation)
        except BaseException:
            for each in new:
                each.is_known = False
            raise
        self._beat_at = now

    async def _forget(self, request: RunningRequest) -> None:
        try:
            await self.store.submit(self.permit, lambda tx: tx.requests.delete(request.handle))
        except Exception as error:  # noqa: BLE001 - the janitor sweeps the row
            log.warning("a request that has ended is still in the store, and is swept later", error=str(error))


def _is_request(request: RunningRequest, by: str, *, value: str) -> bool:
    return (
        value
        == {"request_id": request.id, "client_context_id": request.client_context_id, "handle": request.handle}[by]
    )


REQUESTS: ComponentKey[RunningRequests] = ComponentKey(
    "requests", lambda services: RunningRequests(services.gate, services.store, loops=services.loops)
)
