# SPDX-License-Identifier: Apache-2.0
"""The executor's loop: leases operations, executes them in a few threads, renews leases, reports outcomes.

Must not know Spark: an `OperationRunner` executes operations. One thread sends all requests. Spark starts with the
first operation, so an executor without work does not start it. An executor continues during a restart of the server,
and reports the operations that end within their lease.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import uuid4

from limnos.client.errors import ClientError, UnavailableError
from limnos.model.struct_types import build_struct_types

if TYPE_CHECKING:
    from limnos.client.operation.maintenance_values import LeasedOperation, LeasedOperations

logger = logging.getLogger(__name__)
DONE, FAILED, YIELDED = "done", "failed", "yielded"
LOST: Final = "lost"
"""The outcome of an operation whose lease was lost: it was cancelled, or another executor took it."""
AWAY_S: Final = 300.0
"""The maximum seconds that an executor waits for a server that has answered before."""
OPERATIONS_MAX: Final = 500
"""The number of operations after which an executor ends, because its Java heap grows with each operation."""


class OperationEnd(NamedTuple):
    """The outcome of an operation: `done`, `failed` or `yielded` (retried later), and a message for the server."""

    outcome: str
    text: str


class OperationSource(Protocol):
    """A client of the server, with the calls by which an executor leases, renews and reports operations."""

    def lease(self, holder: str, *, limit: int) -> LeasedOperations:
        """Lease at most `limit` operations that are due, for the executor `holder`."""
        ...

    def renew(self, holder: str, operations: tuple[int, ...]) -> tuple[int, ...]:
        """Renew the leases of these operations. Returns the ids of operations whose leases are lost."""
        ...

    def report(self, holder: str, operation: int, *, outcome: str, text: str) -> bool:
        """Report the outcome of an operation. Returns whether its lease was valid."""
        ...


class OperationRunner(Protocol):
    """Executes maintenance operations, for example on Spark. Several threads may call it."""

    def run(self, operation: LeasedOperation) -> OperationEnd:
        """Execute an operation; called in a thread of the executor."""
        ...

    def cancel(self, operation: int) -> None:
        """Stop an operation whose lease is lost."""
        ...

    def close(self) -> None:
        """Release all resources, for example stop Spark, when the executor ends."""
        ...


@dataclass
class ExecutorSummary:
    """The result of an executor: counts of ended operations by outcome, and the last message of each outcome."""

    ended: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The count of operations that ended with any outcome."""
        return sum(self.ended.values())


class MaintenanceExecutor:
    """Leases and executes operations until it has been idle for some time."""

    def __init__(
        self,
        source: OperationSource,
        runner: OperationRunner,
        *,
        threads: int = 4,
        idle_s: float | None = 60.0,
        poll_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        show_end: Callable[[int, OperationEnd], None] = lambda _, __: None,
    ) -> None:
        """Prepare an executor of the operations of one server.

        Args:
            source: A client of the server that leases the operations.
            runner: The runner that executes each operation.
            threads: The number of operations that run concurrently.
            idle_s: The time in seconds without an operation after which the executor ends; None for never.
            poll_s: The time in seconds between two requests for operations.
            clock: A monotonic clock in seconds, for idle time and leases.
            sleep: A function that waits for a number of seconds.
            show_end: A function that shows the outcome of each operation that ended.
        """
        self.holder = uuid4().hex
        self.summary = ExecutorSummary()
        self._source, self._runner = source, runner
        self._threads, self._idle_s, self._poll_s = threads, idle_s, poll_s
        self._clock, self._sleep, self._show_end = clock, sleep, show_end
        self._running: dict[Future[OperationEnd], int] = {}
        self._lost: set[int] = set()
        self._renewed_at = 0.0
        self._renew_s = 15.0
        self._has_answered = False
        self._away_since: float | None = None

    def run(self) -> ExecutorSummary:
        """Execute operations until the executor has been idle for `idle_s` seconds, or until `OPERATIONS_MAX`
        operations have ended.

        Raises the client's errors if the server refuses, if it does not answer the first request, or if it does not
        answer for `AWAY_S` seconds.
        """
        busy_at = self._clock()
        build_struct_types()
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="maintenance")
        try:
            while self.summary.count < OPERATIONS_MAX:
                if self._take(pool) or self._running:
                    busy_at = self._clock()
                    self._wait()
                elif self._away_since is not None:
                    busy_at = self._clock()
                    self._sleep(self._poll_s)
                elif self._idle_s is not None and self._clock() - busy_at >= self._idle_s:
                    break
                else:
                    self._sleep(self._poll_s)
            while self._running:
                self._wait()
        finally:
            for operation in self._running.values():
                self._runner.cancel(operation)
            pool.shutdown(wait=False, cancel_futures=True)
            self._runner.close()
        return self.summary

    def _take(self, pool: ThreadPoolExecutor) -> bool:
        """Lease as many operations as there are idle threads. Returns whether the server leased any."""
        room = self._threads - len(self._running)
        if room <= 0:
            return False
        try:
            leased = self._source.lease(self.holder, limit=room)
        except UnavailableError as error:
            self._record_unavailable(error)
            return False
        self._has_answered, self._away_since = True, None
        self._renew_s = leased.lease_s / 4
        for each in leased.operations:
            logger.info("starts operation %d: %s of %s", each.operation, each.kind, ".".join(each.path))
            self._running[pool.submit(self._runner.run, each)] = each.operation
        return bool(leased.operations)

    def _record_unavailable(self, error: UnavailableError) -> None:
        """Record that the server does not answer or is too busy. Raises the error if the server has never answered, or
        has not for `AWAY_S` seconds.
        """
        now = self._clock()
        if self._away_since is None:
            logger.warning(
                "the server provides no operations; requests are repeated for %g s: %s", AWAY_S, error.message
            )
            self._away_since = now
        self._has_answered = self._has_answered or error.status != 0
        if not self._has_answered or now - self._away_since >= AWAY_S:
            raise error

    def _wait(self) -> None:
        """Wait until an operation ends or leases must be renewed; then report outcomes and renew leases."""
        finished, _ = wait(self._running, timeout=min(self._renew_s, self._poll_s), return_when=FIRST_COMPLETED)
        for future in finished:
            self._report(self._running.pop(future), future)
        if self._running and self._clock() - self._renewed_at >= self._renew_s:
            self._renew()

    def _report(self, operation: int, future: Future[OperationEnd]) -> None:
        error = future.exception()
        end = future.result() if error is None else OperationEnd(FAILED, f"{type(error).__name__}: {error}"[:2000])
        if operation in self._lost:
            end = OperationEnd(LOST, "its lease was lost: it was cancelled, or another executor took it")
        self.summary.ended[end.outcome] = self.summary.ended.get(end.outcome, 0) + 1
        self.summary.texts[end.outcome] = end.text
        logger.info("operation %d ended: %s, %s", operation, end.outcome, end.text)
        self._show_end(operation, end)
        if end.outcome == LOST:
            self._lost.discard(operation)
        else:
            self._send(operation, end)

    def _send(self, operation: int, end: OperationEnd) -> None:
        """Report an outcome; while the server is unreachable, retry for the duration of a lease. Errors are only
        logged.
        """
        until = self._clock() + 4 * self._renew_s
        while True:
            try:
                if not self._source.report(self.holder, operation, outcome=end.outcome, text=end.text):
                    logger.warning("operation %d: its lease was lost before its end", operation)
                return
            except ClientError as error:
                if not isinstance(error, UnavailableError) or self._clock() >= until:
                    logger.warning("the end of operation %d could not be reported: %s", operation, error.message)
                    return
            self._sleep(self._poll_s)

    def _renew(self) -> None:
        """Renew all leases, and stop the operations whose leases are lost."""
        try:
            lost_operations = self._source.renew(self.holder, tuple(self._running.values()))
        except ClientError as error:
            logger.warning("leases could not be renewed: %s", error.message)
            return
        self._renewed_at = self._clock()
        for operation in lost_operations:
            logger.warning("operation %d lost its lease and is stopped", operation)
            self._lost.add(operation)
            self._runner.cancel(operation)
