"""Tasks: left by a commit, leased for a time, kept by heartbeats, tried again, done."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.permits import upkeep_permit
from limnos.store.tasks import Task
from limnos.store.tx import Tx
from tests.backends import Lab


def lease(tx: Tx) -> Task | None:
    """Lease the oldest due task for a minute."""
    return tx.tasks.lease(lease_ms=60_000)


def test_task_is_leased_once(lab: Lab) -> None:
    """A leased task is nobody else's until its lease ends."""
    lab.write(lambda tx: tx.tasks.create("purge", '{"a":1}'))

    first = lab.write(lease)

    assert (first.kind, first.payload, first.attempts, first.progress) == ("purge", '{"a":1}', 0, None)
    assert lab.write(lease) is None


def test_of_many_workers_each_gets_another_task(lab: Lab) -> None:
    """Workers of two nodes that ask at once get different tasks, oldest first, and none twice."""
    lab.write(lambda tx: [tx.tasks.create("purge", str(i)) for i in range(3)])
    nodes = [lab.store, lab.open()]
    permit = upkeep_permit("tester")

    async def race() -> list[Task | None]:
        return await asyncio.gather(*(nodes[i % 2].submit(permit, lease) for i in range(6)))

    found = lab.run(race())

    assert sorted(task.payload for task in found if task is not None) == ["0", "1", "2"]


def test_dead_workers_task_is_leased_again_with_its_progress(lab: Lab) -> None:
    """When a lease has run out, the next worker gets the task with the progress that was left."""
    lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    task = lab.write(lease)
    lab.write(lambda tx: tx.tasks.progress(task.id, "17", lease_ms=-1))

    again = lab.write(lease)

    assert (again.id, again.attempts, again.progress) == (task.id, 1, "17")


def test_heartbeat_keeps_the_lease(lab: Lab) -> None:
    """A heartbeat that comes before the end prolongs the lease."""
    lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    task = lab.write(lambda tx: tx.tasks.lease(lease_ms=-1))
    lab.write(lambda tx: tx.tasks.progress(task.id, "1", lease_ms=60_000))

    assert lab.write(lease) is None


def test_failed_task_comes_back_later(lab: Lab) -> None:
    """A task given back is not due before its delay, is due after it, and keeps what went wrong."""
    lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    task = lab.write(lease)

    lab.write(lambda tx: tx.tasks.retry(task.id, "no network", delay_ms=60_000))
    assert lab.write(lease) is None
    lab.write(lambda tx: tx.tasks.retry(task.id, "no network", delay_ms=-1))

    assert lab.write(lease).attempts == 1
    assert lab.database.sql("SELECT error FROM task") == [("no network",)]


def test_done_task_is_gone(lab: Lab) -> None:
    """A finished task leaves no row."""
    lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    task = lab.write(lease)

    lab.write(lambda tx: tx.tasks.done(task.id))

    assert lab.database.sql("SELECT count(*) FROM task") == [(0,)]


def test_task_of_a_failed_mutation_never_was(lab: Lab) -> None:
    """A task and its mutation commit together or not at all."""

    def fail(tx: Tx) -> None:
        tx.tasks.create("purge", "{}")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        lab.write(fail)

    assert lab.write(lease) is None
