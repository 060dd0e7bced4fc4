# SPDX-License-Identifier: Apache-2.0
"""Kinds of tasks: the number of attempts of each, their arguments, and deletions in several parts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from limnos.app.task_kind import TRIES_PASSING, TaskKind, TaskOutcome, typed_runner
from limnos.app.task_kinds import KINDS, PRUNE_OUTCOMES, PRUNE_RESULTS
from limnos.model.errors import BadRequest, ServiceUnavailable, StorageFailed
from limnos.rooms.pipelines.tasks import PRUNE_RUNS, RUNS_AT_ONCE
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.scan_plans import EXPIRED_AT_ONCE as PLANS_AT_ONCE
from limnos.store.activity.sqlpp_requests import EXPIRED_AT_ONCE
from limnos.store.idempotency import PRUNED_AT_ONCE
from limnos.store.objects.snapshot_pins import EXPIRED_AT_ONCE as PINS_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.store.tx import Tx

ONCE = TaskKind(name="once", runner=lambda work, text: asyncio.sleep(0, TaskOutcome()), tries=3)
AGAIN = ONCE._replace(name="again", every_s=60.0)


class Payload(msgspec.Struct):
    """The arguments of a task."""

    size: int


@pytest.mark.parametrize("error", [ValueError("poison"), BadRequest("no such place"), msgspec.ValidationError("old")])
def test_task_failing_by_itself_is_given_up_after_last_attempt(error: Exception) -> None:
    """A task that fails for a reason of its own is given up after its last attempt, and not earlier."""
    assert [ONCE.is_lost(error, attempts) for attempts in (1, 2, 3, 4)] == [False, False, True, True]


@pytest.mark.parametrize("error", [ServiceUnavailable("away"), StorageFailed("silent"), InterruptedError("stopping")])
def test_task_with_unreachable_dependency_is_retried_longer(error: Exception) -> None:
    """A task whose storage or database is unreachable, or whose node stops, is retried much longer, but not forever."""
    assert not ONCE.is_lost(error, TRIES_PASSING - 1)
    assert ONCE.is_lost(error, TRIES_PASSING)


def test_recurring_task_is_never_given_up() -> None:
    """A recurring task is never given up, because the next round can make up for a failed one."""
    assert not AGAIN.is_lost(ValueError("poison"), 1_000_000)


def test_invalid_task_arguments_are_refused() -> None:
    """A task gets its arguments as its own type. Invalid arguments are refused."""
    seen: list[int] = []

    async def run(_work: TaskContext, payload: Payload) -> TaskOutcome:
        seen.append(payload.size)
        return TaskOutcome()

    runner = typed_runner(Payload, run)
    asyncio.run(_await(runner))

    assert seen == [7]
    with pytest.raises(msgspec.ValidationError):
        runner(None, '{"size": "seven"}')  # type: ignore[arg-type]


async def _await(runner: object) -> None:
    await runner(None, '{"size": 7}')  # type: ignore[operator]


def test_every_task_kind_has_a_valid_initial_payload() -> None:
    """Kinds are registered under their own names, and the initial payload of a recurring kind is valid."""
    assert all(name == kind.name for name, kind in KINDS.items())
    assert all(kind.tries > 0 and kind.lease_ms > 0 for kind in KINDS.values())
    assert all(msgspec.json.decode(kind.first) == {} for kind in KINDS.values() if kind.every_s is not None)


PRUNE_IMPORT = "prune-import"
"""A task of the room `exchange`."""
FULL_PARTS = {
    PRUNE_OUTCOMES: {"outcomes.prune": PRUNED_AT_ONCE},
    PRUNE_RUNS: {"runs.prune": RUNS_AT_ONCE, "template_jobs.prune": RUNS_AT_ONCE},
    PRUNE_RESULTS: {
        "requests.expire": EXPIRED_AT_ONCE,
        "scan_plans.expire": PLANS_AT_ONCE,
        "snapshot_pins.expire": PINS_AT_ONCE,
    },
    PRUNE_IMPORT: {"imports.prune": True},
}
"""What a deletion returns if it found as many rows as it deletes at once, by task and deletion."""


class PartTx:
    """A transaction whose deletions find two full parts, and then no row. `calls` counts them by name."""

    def __init__(self, full: dict[str, int]) -> None:
        self._full = full
        self.calls = dict.fromkeys(full, 0)

    def __getattr__(self, group: str) -> PartDeletions:
        return PartDeletions(self, group)

    def count(self, *_: object) -> int:
        """Execute a single statement, which finds no row."""
        return 0

    def delete(self, name: str) -> int:
        """Delete one part of the rows."""
        self.calls[name] += 1
        return self._full[name] if self.calls[name] <= 2 else 0


class PartDeletions:
    """The deletions of one of the transaction's groups of statements."""

    def __init__(self, tx: PartTx, group: str) -> None:
        self._tx = tx
        self._group = group

    def __getattr__(self, verb: str) -> Callable[..., int]:
        return lambda *_, **__: self._tx.delete(f"{self._group}.{verb}")


class PartContext:
    """The context of a task, with that transaction."""

    keep_runs_ms = 1

    def __init__(self, tx: PartTx) -> None:
        self._tx = tx

    async def submit(self, mutation: Callable[[Tx], object]) -> object:
        """Run a mutation."""
        return mutation(cast("Tx", self._tx))


@pytest.mark.parametrize("kind", [each for each in FULL_PARTS if each in KINDS])
def test_batched_deletion_repeats_until_a_part_is_not_full(kind: str) -> None:
    """A task that deletes a limited number of rows at once repeats each of its deletions in the same run until no full
    part is found.
    """
    tx = PartTx(FULL_PARTS[kind])
    payload = '{"import_id": 1}' if kind == PRUNE_IMPORT else KINDS[kind].first

    async def run() -> None:
        await KINDS[kind].runner(cast("TaskContext", PartContext(tx)), payload)

    asyncio.run(run())

    assert tx.calls == dict.fromkeys(FULL_PARTS[kind], 3)
