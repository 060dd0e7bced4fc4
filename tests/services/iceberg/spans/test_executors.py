# SPDX-License-Identifier: Apache-2.0
"""Waiting for executors that write the files of a plan, without a server: what is looked up, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from limnos.formats.iceberg.read_restrictions import BoundRestrictions
from limnos.formats.scans.request import ScanRequest
from limnos.model.principals import Requester
from limnos.services.iceberg.scans import ScanTarget
from limnos.services.iceberg.spans import executors
from limnos.services.iceberg.spans.executors import (
    FOUND_AT_ONCE,
    SPAN_EXECUTORS,
    DelegationState,
    NoSpanExecutors,
    SpanExecutors,
    SpanRecipe,
    write_with_executors,
)
from limnos.services.request.context import Context

WAITING, RUNNING, LOST, ENDED = DelegationState
NAMES = [f"n{number}" for number in range(3 * FOUND_AT_ONCE)]


class FakeServices:
    """The components of a node."""

    def __init__(self) -> None:
        self.parts: dict[object, object] = {}


class FakeExecutors:
    """Executors that go through some states, and write spans with each state."""

    def __init__(self, *states: tuple[DelegationState, int]) -> None:
        self.states: Iterator[tuple[DelegationState, int]] = iter(states)
        self.written = 0
        self.given_up = 0
        self.looks: list[list[str]] = []

    async def begin(self, ctx: Context, scanned: ScanTarget, *, recipe: SpanRecipe, is_large: bool) -> int | None:
        """Return the number of the operation of a large plan."""
        return 7 if is_large else None

    async def state(self, ctx: Context, operation: int) -> DelegationState:
        """Return the next state."""
        state, self.written = next(self.states)
        return state

    async def give_up(self, ctx: Context, operation: int) -> None:
        """Count the calls."""
        self.given_up += 1

    async def find(self, names: Sequence[str]) -> list[list[Any] | None]:
        """Return the files of written spans."""
        assert len(names) <= FOUND_AT_ONCE
        self.looks.append(list(names))
        return [[{"file-path": name}] if NAMES.index(name) < self.written else None for name in names]


def written(fake: FakeExecutors, *, using: SpanExecutors | None = None, is_large: bool = True) -> int:
    """Return the number of spans whose files come from the executors."""
    services = FakeServices()
    SPAN_EXECUTORS.put(cast("Any", services), fake if using is None else using)
    ctx: Any = type("ctx", (), {"services": services})
    recipe = SpanRecipe(Requester("ana", 1), ScanRequest(), BoundRestrictions(None, {}), "file:///x")
    work = write_with_executors(
        ctx, cast("ScanTarget", None), recipe=recipe, names=NAMES, find=fake.find, is_large=is_large
    )
    return len(asyncio.run(work))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pause for no time."""
    monkeypatch.setattr(executors, "POLL_S", 0.0)


def test_all_files_of_executors_are_returned() -> None:
    """The plan waits until all files are written, and looks up each part until it has files."""
    fake = FakeExecutors((WAITING, 0), (RUNNING, 10), (RUNNING, FOUND_AT_ONCE + 1), (RUNNING, len(NAMES)))

    assert (written(fake), fake.given_up) == (len(NAMES), 0)
    assert [len(each) for each in fake.looks[:3]] == [FOUND_AT_ONCE] * 3
    assert fake.looks[0] == fake.looks[1]


def test_ended_operation_leaves_the_rest() -> None:
    """If the operation ends, all written files are returned, also those after a part without any."""
    fake = FakeExecutors((RUNNING, 0), (ENDED, 2 * FOUND_AT_ONCE))

    assert (written(fake), fake.given_up) == (2 * FOUND_AT_ONCE, 0)


def test_lost_executor_is_given_up() -> None:
    """If no executor is there any more, the operation is cancelled."""
    fake = FakeExecutors((RUNNING, 5), (LOST, 6))

    assert (written(fake), fake.given_up) == (6, 1)


def test_long_wait_for_a_lease_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the operation waits too long for an executor, it is cancelled; the time while it runs does not count."""
    times = iter([0.0, 100.0, 110.0, 120.0, 159.0, 161.0])
    monkeypatch.setattr(executors, "monotonic", lambda: next(times))
    fake = FakeExecutors((RUNNING, 0), *[(WAITING, 0)] * 9)

    assert (written(fake), fake.given_up) == (0, 1)
    assert len(fake.looks) == 4


def test_plan_without_operation_looks_up_nothing() -> None:
    """A small plan without an operation, and a node without maintenance, do not wait."""
    fake = FakeExecutors()

    assert (written(fake, is_large=False), written(fake, using=NoSpanExecutors())) == (0, 0)
    assert fake.looks == []
