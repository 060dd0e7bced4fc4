# SPDX-License-Identifier: Apache-2.0
"""A kind of background task: its payload, its function, its maximum number of attempts, and its lease.

Must not know particular kinds: `app.task_kinds` has those of the kernel, and the manifests of rooms name theirs. A task
runs at least once, on any node, concurrently with requests. Its function must tolerate being killed at any point and
run again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

import msgspec

from limnos.model.errors import ServiceUnavailable, StorageFailed
from limnos.services.request.task_context import TaskContext

P = TypeVar("P")
TRIES_PASSING: Final = 100
"""The number of attempts while storage or database do not answer: with exponential backoff, for about four days."""


class NoPayload(msgspec.Struct):
    """The payload of tasks without parameters."""


class TaskOutcome(NamedTuple):
    """The outcome of a successful task: a result to store, and the next payload of a periodic task."""

    result: str | None = None
    payload: str | None = None


TaskFunction = Callable[["TaskContext", str], Awaitable[TaskOutcome]]


class TaskKind(NamedTuple):
    """A kind of background task, with its function and its schedule.

    A periodic task has `every_s`, runs once for the whole store, and begins with the payload `first`. A task that
    `takes_long` runs in a separate loop, one at a time on a node.
    """

    name: str
    runner: TaskFunction
    tries: int
    lease_ms: int = 300_000
    every_s: float | None = None
    first: str = "{}"
    takes_long: bool = False

    def is_lost(self, error: Exception, attempts: int) -> bool:
        """Return whether a task has failed permanently, after `attempts` attempts of which the last raised `error`."""
        passes = isinstance(error, (ServiceUnavailable, StorageFailed, InterruptedError))
        return self.every_s is None and attempts >= (TRIES_PASSING if passes else self.tries)


def typed_runner(payload: type[P], run: Callable[[TaskContext, P], Awaitable[TaskOutcome]]) -> TaskFunction:
    """Return a task function that decodes the payload and passes it to `run`."""

    def runner(work: TaskContext, text: str) -> Awaitable[TaskOutcome]:
        return run(work, msgspec.json.decode(text, type=payload))

    return runner


def result_runner(payload: type[P], run: Callable[[TaskContext, P], Awaitable[str | None]]) -> TaskFunction:
    """Return a task function that stores the return value of `run` as the task's result."""

    async def runner(work: TaskContext, payload: P) -> TaskOutcome:
        return TaskOutcome(await run(work, payload))

    return typed_runner(payload, runner)


def periodic_runner(payload: type[P], run: Callable[[TaskContext, P], Awaitable[tuple[P, str | None]]]) -> TaskFunction:
    """Return a task function that stores the next payload and the result that `run` returns."""

    async def runner(work: TaskContext, payload: P) -> TaskOutcome:
        next_payload, result = await run(work, payload)
        return TaskOutcome(result, msgspec.json.encode(next_payload).decode())

    return typed_runner(payload, runner)
