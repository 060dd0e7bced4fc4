# SPDX-License-Identifier: Apache-2.0
"""Operations that write files for restricted users: the executor fetches spans, has them written, and reports them.

Must not know Spark, nor how a span is written: a `SpanPool` does that. All requests have the operation's token. Each
span is reported when it is written, so a killed executor loses only those under way.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from limnos.client import Client
from limnos.client.errors import RefusedError
from limnos.rooms.maintenance.engine.executor import DONE, FAILED, OperationEnd, OperationRunner
from limnos.rooms.maintenance.engine.outcomes import end_of_error
from limnos.rooms.maintenance.engine.span_files import write_span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.client.operation.maintenance_values import LeasedOperation, RestrictedSpans

logger = logging.getLogger(__name__)
RESTRICTED_FILES: Final = "restricted-files"
"""The kind of operations that this module executes."""


class SpanPool(NamedTuple):
    """Writes spans: `write` takes a request as JSON and returns the locations of the files, `at_once` is the number of
    spans to write at the same time.
    """

    write: Callable[[bytes], list[str]]
    at_once: int


class SpanSource(Protocol):
    """A client of the server with an operation's token."""

    def spans(self, catalog: str, operation: int, *, after: int = -1, limit: int = 16) -> RestrictedSpans:
        """Return the next spans whose files are not written."""
        ...

    def report_span(self, catalog: str, operation: int, *, name: str, files: Sequence[str]) -> bool:
        """Report the files of a span. Raises RefusedError if the server does not use them."""
        ...


class RestrictedFileRunner:
    """Executes operations that write files for restricted users, and gives all others to another runner."""

    def __init__(
        self,
        others: OperationRunner,
        *,
        connect: Callable[[LeasedOperation], AbstractContextManager[SpanSource]],
        pool: Callable[[int], SpanPool],
    ) -> None:
        """Prepare a runner.

        Args:
            others: The runner of operations of all other kinds.
            connect: Returns a client with the token of an operation.
            pool: Returns what writes the spans of an operation, by its id.
        """
        self._others, self._connect, self._pool = others, connect, pool
        self._stops: dict[int, threading.Event] = {}

    def run(self, operation: LeasedOperation) -> OperationEnd:
        """Execute an operation. Returns its outcome, also for an error."""
        if operation.kind != RESTRICTED_FILES:
            return self._others.run(operation)
        stop = self._stops[operation.operation] = threading.Event()
        try:
            with self._connect(operation) as source:
                return _SpanWork(source, operation, pool=self._pool(operation.operation), stop=stop).run()
        except Exception as error:  # noqa: BLE001 - whatever Spark or a file raises ends this operation alone
            return OperationEnd(FAILED, end_of_error(error).text)
        finally:
            del self._stops[operation.operation]

    def cancel(self, operation: int) -> None:
        """Stop an operation whose lease is lost."""
        stop = self._stops.get(operation)
        if stop is not None:
            stop.set()
        self._others.cancel(operation)

    def close(self) -> None:
        """Release the resources of the other runner."""
        self._others.close()


class _SpanWork:
    """The spans of one operation that are written at the same time."""

    def __init__(
        self, source: SpanSource, operation: LeasedOperation, *, pool: SpanPool, stop: threading.Event
    ) -> None:
        self._source, self._operation, self._pool, self._stop = source, operation, pool, stop
        self._running: dict[Future[list[str]], str] = {}
        self._after = -1
        self._written = 0
        self._refusals: list[str] = []

    def run(self) -> OperationEnd:
        """Write and report spans until none is left, or until the operation is cancelled. Raises the first error of a
        span or of a request; a refused report does not end the others.
        """
        threads = ThreadPoolExecutor(self._pool.at_once, thread_name_prefix="restricted-files")
        try:
            is_last = False
            while not self._stop.is_set() and not (is_last and not self._running):
                if not is_last and len(self._running) < self._pool.at_once:
                    is_last = not self._begin(threads)
                finished, _ = wait(self._running, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in finished:
                    self._report(self._running.pop(future), future.result())
        finally:
            threads.shutdown(wait=True, cancel_futures=True)
        if self._refusals:
            return OperationEnd(FAILED, f"{len(self._refusals)} spans were refused: {self._refusals[-1]}")
        return OperationEnd(DONE, f"files of {self._written} spans were written")

    def _begin(self, threads: ThreadPoolExecutor) -> bool:
        """Fetch spans for the idle threads, and begin to write them. Returns whether the server had any."""
        idle = self._pool.at_once - len(self._running)
        batch = self._source.spans(self._operation.catalog, self._operation.operation, after=self._after, limit=idle)
        for each in batch.spans:
            request = batch.common | msgspec.to_builtins(each)
            del request["number"]
            self._running[threads.submit(self._pool.write, msgspec.json.encode(request))] = each.name
            self._after = each.number
        return bool(batch.spans)

    def _report(self, name: str, files: list[str]) -> None:
        try:
            self._source.report_span(self._operation.catalog, self._operation.operation, name=name, files=files)
        except RefusedError as error:
            logger.error("operation %d: span %s was refused: %s", self._operation.operation, name, error.message)  # noqa: TRY400 - one line
            self._refusals.append(error.message)
        else:
            self._written += 1


class _TokenClient:
    """A client with an operation's token, closed at the end of a `with`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __enter__(self) -> SpanSource:
        return self._client.maintenance

    def __exit__(self, *_: object) -> None:
        self._client.close()


def connect_to(
    uri: str, *, metalake: str, ca_file: str | None
) -> Callable[[LeasedOperation], AbstractContextManager[SpanSource]]:
    """Return a function that connects to a server with the token of an operation."""
    return lambda operation: _TokenClient(Client(uri, token=operation.token, metalake=metalake, ca_file=ca_file))


def thread_pool(at_once: int) -> Callable[[int], SpanPool]:
    """Return a function whose pools write spans in this process."""
    return lambda _: SpanPool(write_span, at_once)
