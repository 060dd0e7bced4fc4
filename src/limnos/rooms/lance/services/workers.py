# SPDX-License-Identifier: Apache-2.0
"""Lance workers: the interface to the worker processes that read and change Lance tables, and their tasks.

Never imports Lance's library, and must not know processes: `app` provides the implementation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from typing import Final, NoReturn, Protocol, TypeVar

import msgspec

from limnos.access.authentication import known_user
from limnos.model.errors import LimnosError, StateUnknown, UnsupportedOperation
from limnos.rooms.lance.sources.questions import LanceQuestion
from limnos.services.request.concurrency.coalescing import RequestCoalescer
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.sources.credentials import KEY_ID, PATH_STYLE, REGION, S3_ENDPOINT, SECRET, TOKEN, find_property

Settled = Callable[[], Awaitable[None]]

T = TypeVar("T")
_OPTIONS: Final = {
    "aws_endpoint": S3_ENDPOINT,
    "aws_region": REGION,
    "aws_access_key_id": KEY_ID,
    "aws_secret_access_key": SECRET,
    "aws_session_token": TOKEN,
}
"""Lance's storage options, and the catalog property behind each."""
_KEYS: Final = frozenset({"aws_access_key_id", "aws_secret_access_key", "aws_session_token"})


class WorkerCallbacks(Protocol):
    """Handles the callbacks of a worker process.

    `failure` is an error that the process cannot transmit, `committed_version` the version it committed.
    """

    failure: LimnosError | None
    committed_version: int | None

    async def answer(self, name: str, about: bytes) -> list[bytes]:
        """Return the result of a callback, in the form that a worker process expects."""


class WorkerTask:
    """One request to a worker process: its table and caller, and its progress.

    `quick` work is not delayed by slow work. A change begins only after the check `settled`, which repeats the access
    decision. If the task fails after that, the state of the files is unknown.
    """

    __slots__ = (
        "_calls",
        "_mark",
        "_settled",
        "caller",
        "is_begun",
        "is_open",
        "is_quick",
        "name",
        "question",
        "table",
        "writes",
    )

    def __init__(
        self,
        question: LanceQuestion,
        *,
        caller: str,
        quick: bool = False,
        settled: Settled | None = None,
        mark: Callable[[bool], None] = lambda _: None,
        calls: WorkerCallbacks | None = None,
    ) -> None:
        self.name = type(question).__name__.encode()
        self.question = msgspec.json.encode(question)
        self.table = question.location
        self.caller = caller
        self.is_quick = quick
        self.writes = settled is not None
        self.is_begun = False
        self.is_open = False
        """Whether the task was sent and has no result yet."""
        self._settled = settled
        self._calls = calls
        self._mark = mark
        """A callback that receives True when the files may have changed, and False when they certainly have not."""

    @property
    def kind(self) -> str:
        """The name of the operation in lower case, for metrics and the log."""
        return self.name.decode().lower()

    def failure(self) -> LimnosError | None:
        """Return the error of a callback, which the worker cannot transmit; StateUnknown if the change was committed;
        None without either.
        """
        if self._calls is None:
            return None
        if self._calls.committed_version is not None:
            return StateUnknown(
                f"The change was made, as version {self._calls.committed_version}, but the table could not be read"
                " after it: check before you repeat it"
            )
        return self._calls.failure

    @property
    def commits_here(self) -> bool:
        """Whether the worker commits by callback: before the callback nothing is committed."""
        return self._calls is not None

    async def handle_callback(self, name: str, about: bytes) -> list[bytes]:
        """Handle a callback of the worker; refuse it if the task has no callbacks."""
        if self._calls is None:
            return [b"refused", b"other", b"This task has no callbacks"]
        return await self._calls.answer(name, about)

    async def begin(self) -> None:
        """Run the task's last access check, if it has one, and record that the change begins. Raises the errors of the
        check.
        """
        if self._settled is not None:
            await self._settled()
            self._mark(True)
        self.is_begun = True

    def mark_unchanged(self) -> None:
        """Record that the task certainly changed no file."""
        self.is_begun = False
        if self._settled is not None:
            self._mark(False)


class LanceWorkers(Protocol):
    """The interface to the worker processes of Lance tables. Cancelling a call cancels its work in the process."""

    async def ask(self, worker_task: WorkerTask) -> bytes:
        """Run an operation in a worker, and return its encoded result.

        Raises the worker's error, TooLarge, ServiceUnavailable, and StateUnknown if a change may have been made.
        """

    async def feed(self, worker_task: WorkerTask, body: AsyncGenerator[bytes, None]) -> bytes:
        """Run an operation that reads a request body. If reading the body fails, it counts as incomplete."""

    def stream(self, worker_task: WorkerTask) -> AsyncGenerator[bytes, None]:
        """Run an operation in a worker, and yield its result in chunks. Raises the worker's error before the first
        one.
        """

    def close(self) -> None:
        """Cancel all running work."""


class NoLanceWorkers:
    """The null implementation, for services that do not read Lance tables: every operation is refused."""

    async def ask(self, worker_task: WorkerTask) -> bytes:
        """Raise UnsupportedOperation."""
        self._refuse(worker_task)

    async def feed(self, worker_task: WorkerTask, body: AsyncGenerator[bytes, None]) -> bytes:
        """Raise UnsupportedOperation."""
        await body.aclose()
        self._refuse(worker_task)

    async def stream(self, worker_task: WorkerTask) -> AsyncGenerator[bytes, None]:
        """Raise UnsupportedOperation."""
        for _ in ():
            yield b""
        self._refuse(worker_task)

    @staticmethod
    def _refuse(worker_task: WorkerTask) -> NoReturn:
        raise UnsupportedOperation(f"No worker process has the table at {worker_task.table}")

    def close(self) -> None:
        """No-op: nothing runs."""


def worker_task_of(
    ctx: Context,
    question: LanceQuestion,
    *,
    quick: bool = False,
    settled: Settled | None = None,
    calls: WorkerCallbacks | None = None,
) -> WorkerTask:
    """Build the worker task for an operation, on behalf of the request's caller."""

    def mark(is_submitted: bool) -> None:  # noqa: FBT001 - what it says is all it has
        ctx.submitted = is_submitted

    caller = known_user(ctx.services.view, ctx.credential) or ""
    return WorkerTask(question, caller=caller, quick=quick, settled=settled, mark=mark, calls=calls)


async def answer_question(ctx: Context, worker_task: WorkerTask, *, shape: type[T]) -> T:
    """Run an operation in a worker, and return its result, decoded as type `shape`.

    Concurrent equal quick operations share one result.
    """
    ask = partial(WORKERS.of(ctx.services).ask, worker_task)
    data = (
        await COALESCER.of(ctx.services).call((worker_task.name, worker_task.question), ask)
        if worker_task.is_quick
        else await ask()
    )
    return msgspec.json.decode(data, type=shape)


def storage_options_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return Lance's storage options for a catalog's object store."""
    return _stated_options(properties)


def connection_options_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return Lance's storage options without credentials: the endpoint and region of the object store, and how to
    connect to it.
    """
    return {key: value for key, value in _stated_options(properties).items() if key not in _KEYS}


def _stated_options(properties: Mapping[str, str]) -> dict[str, str]:
    stands = {option: find_property(properties, names) for option, names in _OPTIONS.items()}
    results = {option: value for option, value in stands.items() if value is not None}
    if results.get("aws_endpoint", "").startswith("http://"):
        results["allow_http"] = "true"
    if (find_property(properties, PATH_STYLE) or "").lower() == "false":
        results["aws_virtual_hosted_style_request"] = "true"
    return results


WORKERS: ComponentKey[LanceWorkers] = ComponentKey("workers", lambda _: NoLanceWorkers())


COALESCER: ComponentKey[RequestCoalescer] = ComponentKey("joint", lambda _: RequestCoalescer())
