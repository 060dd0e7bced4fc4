"""What is done with a Lance table itself, by processes of their own: what they are asked, by whom, and who does it.

May import `access` for a caller's name, `sources` for the shapes of questions, and `model`. Never imports Lance's library, and knows no process: `app` chooses
those.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, TypeVar

import msgspec

from limnos.access.authentication import known_user
from limnos.model.errors import StateUnknown, UnsupportedOperation
from limnos.services.request.coalescing import RequestCoalescer
from limnos.services.request.node_services import ComponentKey
from limnos.sources.credentials import KEY_ID, PATH_STYLE, REGION, S3_ENDPOINT, SECRET, TOKEN, find_property

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from limnos.model.errors import LimnosError
    from limnos.services.request.context import Context
    from limnos.sources.lance.questions import LanceQuestion

    Settled = Callable[[], Awaitable[None]]

T = TypeVar("T")
_OPTIONS: Final = {
    "aws_endpoint": S3_ENDPOINT,
    "aws_region": REGION,
    "aws_access_key_id": KEY_ID,
    "aws_secret_access_key": SECRET,
    "aws_session_token": TOKEN,
}
"""What Lance calls properties of catalogs."""
_KEYS: Final = frozenset({"aws_access_key_id", "aws_secret_access_key", "aws_session_token"})


class WorkerCallbacks(Protocol):
    """Whoever answers what a process asks back; `failure` is what it was not told of, `made` the version that it has committed."""

    failure: LimnosError | None
    made: int | None

    async def answer(self, name: str, about: bytes) -> list[bytes]:
        """Answer as a process would."""
        ...


class WorkerTask:
    """One question on its way: what is asked about which table for whom, and how far it has come.

    `quick` work is not held up by slow work. What `writes` is begun only after `settled`, which looks once more
    whether the caller may; from then on nobody can say that nothing was changed.
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
        self, question: LanceQuestion, *, caller: str, quick: bool = False, settled: Settled | None = None,
        mark: Callable[[bool], None] = lambda _: None, calls: WorkerCallbacks | None = None,
    ) -> None:  # fmt: skip
        self.name = type(question).__name__.encode()
        self.question = msgspec.json.encode(question)
        self.table = question.location
        self.caller = caller
        self.is_quick = quick
        self.writes = settled is not None
        self.is_begun = False
        self.is_open = False
        """Asked, and not answered yet."""
        self._settled = settled
        self._calls = calls
        self._mark = mark
        """Told whether something may have been changed."""

    @property
    def kind(self) -> str:
        """The kind of question, for metrics and the log."""
        return self.name.decode().lower()

    def failure(self) -> LimnosError | None:
        """Return what went wrong with what was asked back, which the process can't tell; or that it failed when the change was made."""
        if self._calls is None:
            return None
        if self._calls.made is not None:
            return StateUnknown(
                f"The change was made, as version {self._calls.made}, but the table could not be read after it: look before you repeat it"
            )
        return self._calls.failure

    @property
    def commits_here(self) -> bool:
        """Whether the process asks back to commit: then nothing is committed as long as it has not asked."""
        return self._calls is not None

    async def called(self, name: str, about: bytes) -> list[bytes]:
        """Answer what the process asks back."""
        if self._calls is None:
            return [b"refused", b"other", b"Nobody answers that here"]
        return await self._calls.answer(name, about)

    async def begin(self) -> None:
        """Look once more whether this may be done, now that it would be. Raises what forbids it."""
        if self._settled is not None:
            await self._settled()
            self._mark(True)
        self.is_begun = True

    def refused(self) -> None:
        """It is certain that nothing came of it."""
        self.is_begun = False
        if self._settled is not None:
            self._mark(False)


class LanceWorkers(Protocol):
    """Whoever works on Lance tables. Whoever cancels a call ends the work."""

    async def ask(self, worker_task: WorkerTask) -> bytes:
        """Have a question answered. Raises what it is refused with, TooLarge, ServiceUnavailable, StateUnknown."""
        ...

    async def feed(self, worker_task: WorkerTask, body: AsyncGenerator[bytes, None]) -> bytes:
        """Have a question answered that is fed with a body; a body that fails is one that was cut."""
        ...

    def stream(self, worker_task: WorkerTask) -> AsyncGenerator[bytes, None]:
        """Give an answer in pieces; raises before the first one what it is refused with."""
        ...

    def close(self) -> None:
        """End whatever is under way."""
        ...


class NoLanceWorkers:
    """Do nothing: for services that nobody asks for a Lance table's contents."""

    async def ask(self, worker_task: WorkerTask) -> bytes:
        """Refuse."""
        self._refuse(worker_task)

    async def feed(self, worker_task: WorkerTask, body: AsyncGenerator[bytes, None]) -> bytes:
        """Refuse."""
        await body.aclose()
        self._refuse(worker_task)

    async def stream(self, worker_task: WorkerTask) -> AsyncGenerator[bytes, None]:
        """Refuse."""
        for _ in ():
            yield b""
        self._refuse(worker_task)

    @staticmethod
    def _refuse(worker_task: WorkerTask) -> NoReturn:
        raise UnsupportedOperation(f"Nobody works on the table at {worker_task.table} here")

    def close(self) -> None:
        """Nothing is under way."""


def worker_task_of(
    ctx: Context, question: LanceQuestion, *, quick: bool = False, settled: Settled | None = None, calls: WorkerCallbacks | None = None
) -> WorkerTask:  # fmt: skip
    """Send a question on its way for who asks."""

    def mark(is_submitted: bool) -> None:  # noqa: FBT001 - what it says is all it has
        ctx.submitted = is_submitted

    caller = known_user(ctx.services.view, ctx.credential) or ""
    return WorkerTask(question, caller=caller, quick=quick, settled=settled, mark=mark, calls=calls)


async def answer_question(ctx: Context, worker_task: WorkerTask, *, shape: type[T]) -> T:
    """Have a question answered in a shape; a quick one together with whoever asks the same."""
    ask = partial(WORKERS.of(ctx.services).ask, worker_task)
    told = (
        await COALESCER.of(ctx.services).ask((worker_task.name, worker_task.question), ask)
        if worker_task.is_quick
        else await ask()
    )
    return msgspec.json.decode(told, type=shape)


def storage_options_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what Lance is told of a catalog's object store."""
    return _stated_options(properties)


def connection_options_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what Lance is told of where a catalog's object store is, and how to speak to it; no keys."""
    return {key: value for key, value in _stated_options(properties).items() if key not in _KEYS}


def _stated_options(properties: Mapping[str, str]) -> dict[str, str]:
    stands = {option: find_property(properties, names) for option, names in _OPTIONS.items()}
    found = {option: value for option, value in stands.items() if value is not None}
    if found.get("aws_endpoint", "").startswith("http://"):
        found["allow_http"] = "true"
    if (find_property(properties, PATH_STYLE) or "").lower() == "false":
        found["aws_virtual_hosted_style_request"] = "true"
    return found


WORKERS: ComponentKey[LanceWorkers] = ComponentKey("workers", lambda _: NoLanceWorkers())


COALESCER: ComponentKey[RequestCoalescer] = ComponentKey("joint", lambda _: RequestCoalescer())
