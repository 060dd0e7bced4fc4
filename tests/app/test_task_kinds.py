"""Kinds of tasks: how often each is tried, and what it is told."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from limnos.app.task_kinds import KINDS, TRIES_PASSING, TaskKind, TaskOutcome, typed_runner
from limnos.model.errors import BadRequest, ServiceUnavailable, StorageFailed
from limnos.services.request.task_context import TaskContext

ONCE = TaskKind("once", lambda work, text: asyncio.sleep(0, TaskOutcome()), tries=3)
AGAIN = ONCE._replace(name="again", every_s=60.0)


class Payload(msgspec.Struct):
    """What a task is told."""

    size: int


@pytest.mark.parametrize("error", [ValueError("poison"), BadRequest("no such place"), msgspec.ValidationError("old")])
def test_what_does_not_pass_is_given_up_soon(error: Exception) -> None:
    """A task that fails by itself is given up when its tries are used up, and no earlier."""
    assert [ONCE.is_lost(error, attempts) for attempts in (1, 2, 3, 4)] == [False, False, True, True]


@pytest.mark.parametrize("error", [ServiceUnavailable("away"), StorageFailed("silent"), InterruptedError("stopping")])
def test_what_passes_is_tried_for_long(error: Exception) -> None:
    """A task whose storage or database does not answer, or whose node stops, is tried on and on, but not for ever."""
    assert not ONCE.is_lost(error, TRIES_PASSING - 1)
    assert ONCE.is_lost(error, TRIES_PASSING)


def test_what_comes_round_is_never_given_up() -> None:
    """A round that failed is one that the next one makes up for."""
    assert not AGAIN.is_lost(ValueError("poison"), 1_000_000)


def test_payloads_have_a_type() -> None:
    """A runner gets what it was told as its own type; what is not that does not reach it."""
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


def test_every_kind_can_be_told_what_it_begins_with() -> None:
    """Kinds go by their own names, and what comes round begins with a payload that it takes."""
    assert all(name == kind.name for name, kind in KINDS.items())
    assert all(kind.tries > 0 and kind.lease_ms > 0 for kind in KINDS.values())
    assert all(msgspec.json.decode(kind.first) == {} for kind in KINDS.values() if kind.every_s is not None)
