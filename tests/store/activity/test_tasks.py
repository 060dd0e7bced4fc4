# SPDX-License-Identifier: Apache-2.0
"""Tasks: created by a commit, leased for a limited time, renewed by heartbeats, retried, and deleted when done."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.permits import upkeep_permit
from limnos.store.activity.tasks import STATES, LeasedTask, task_counts, task_read, tasks_read
from limnos.store.tx import Tx
from tests.backends import StoreLab


def lease(tx: Tx) -> LeasedTask | None:
    """Lease the oldest due task for a minute."""
    return tx.tasks.lease(lease_ms=60_000)


def test_task_is_leased_once(lab: StoreLab) -> None:
    """A leased task cannot be leased again before its lease ends."""
    lab.write(lambda tx: tx.tasks.create("purge", '{"a":1}'))

    first = lab.write(lease)

    assert (first.kind, first.payload, first.attempts, first.progress) == ("purge", '{"a":1}', 0, None)
    assert lab.write(lease) is None


def test_concurrent_workers_lease_different_tasks(lab: StoreLab) -> None:
    """Workers of two nodes that lease concurrently get different tasks, oldest first, and none twice."""
    lab.write(lambda tx: [tx.tasks.create("purge", str(i)) for i in range(3)])
    nodes = [lab.store, lab.open()]
    permit = upkeep_permit("tester")

    async def race() -> list[LeasedTask | None]:
        return await asyncio.gather(*(nodes[i % 2].submit(permit, lease) for i in range(6)))

    leased_tasks = lab.run(race())

    assert sorted(task.payload for task in leased_tasks if task is not None) == ["0", "1", "2"]


def test_worker_leases_only_tasks_of_its_kinds(lab: StoreLab) -> None:
    """A worker that leases only some kinds gets only tasks of these kinds. A worker that excludes them gets only tasks
    of other kinds, also of unknown ones.
    """
    for kind in ("purge", "compact", "newer", "compact"):
        lab.write(lambda tx, kind=kind: tx.tasks.create(kind, "{}"))

    def among(tx: Tx) -> LeasedTask | None:
        return tx.tasks.lease(lease_ms=60_000, kinds=("compact", "rest"), among=True)

    def beside(tx: Tx) -> LeasedTask | None:
        return tx.tasks.lease(lease_ms=60_000, kinds=("compact", "rest"))

    leased_tasks = [[lab.write(call) for _ in range(3)] for call in (among, beside)]

    assert [[each and each.kind for each in some] for some in leased_tasks] == [
        ["compact", "compact", None],
        ["purge", "newer", None],
    ]


def test_dead_workers_task_is_leased_again_with_its_progress(lab: StoreLab) -> None:
    """When a lease has expired, the next worker gets the task with the progress that the last worker stored."""
    lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    task = lab.write(lease)
    lab.write(lambda tx: tx.tasks.progress(task.id, "17", lease_ms=-1))

    again = lab.write(lease)

    assert (again.id, again.attempts, again.progress) == (task.id, 1, "17")


def test_heartbeat_extends_the_lease(lab: StoreLab) -> None:
    """A heartbeat before the end of the lease extends the lease."""
    lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    task = lab.write(lambda tx: tx.tasks.lease(lease_ms=-1))
    lab.write(lambda tx: tx.tasks.progress(task.id, "1", lease_ms=60_000))

    assert lab.write(lease) is None


def test_failed_task_is_due_after_its_delay(lab: StoreLab) -> None:
    """A task that is given back is due only after its delay, and has the error."""
    lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    task = lab.write(lease)

    lab.write(lambda tx: tx.tasks.retry(task.id, "no network", delay_ms=60_000))
    assert lab.write(lease) is None
    lab.write(lambda tx: tx.tasks.retry(task.id, "no network", delay_ms=-1))

    assert lab.write(lease).attempts == 1
    assert lab.database.sql("SELECT error FROM task") == [("no network",)]


def test_finished_task_is_deleted(lab: StoreLab) -> None:
    """A finished task leaves no row."""
    lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    task = lab.write(lease)

    lab.write(lambda tx: tx.tasks.delete_finished(task.id))

    assert lab.database.sql("SELECT count(*) FROM task") == [(0,)]


def test_task_and_its_mutation_commit_together(lab: StoreLab) -> None:
    """A task and the mutation that creates it commit together or not at all."""

    def fail(tx: Tx) -> None:
        tx.tasks.create("purge", "{}")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        lab.write(fail)

    assert lab.write(lease) is None


def states(lab: StoreLab) -> dict[str, list[int]]:
    """Return the ids of the existing tasks by state."""
    ids_by_state = {state: [row.id for row in lab.load(tasks_read(state, after=0, limit=9))] for state in STATES}
    return {state: ids for state, ids in ids_by_state.items() if ids}


def test_ended_tasks_are_counted_and_not_leased(lab: StoreLab) -> None:
    """A failed task, and a done one with a result, stay in the store, are counted, and are never leased."""
    lab.write(lambda tx: [tx.tasks.create("purge", "{}") for _ in range(3)])
    dead, done = (lab.write(lease).id for _ in range(2))
    lab.write(lambda tx: tx.tasks.end(dead, error="no", result=None))
    lab.write(lambda tx: tx.tasks.end(done, error=None, result="kept 1"))

    waiting = lab.write(lambda tx: tx.tasks.lease(lease_ms=-1)).id

    assert lab.write(lambda tx: tx.tasks.lease(lease_ms=-1)).id == waiting
    assert states(lab) == {"dead": [dead], "done": [done], "waiting": [waiting]}
    assert lab.load(task_counts()) == {("purge", state): 1 for state in STATES}
    assert lab.load(task_read(dead)).error == "no"
    assert lab.load(task_read(done)).result == "kept 1"
    assert lab.load(tasks_read("dead", after=dead, limit=9)) == []


def test_failed_or_waiting_task_can_be_made_due(lab: StoreLab) -> None:
    """A failed or waiting task can be made due. A running, done or missing task cannot."""
    lab.write(lambda tx: [tx.tasks.create("purge", "{}") for _ in range(4)])
    dead, done, running = (lab.write(lease).id for _ in range(3))
    lab.write(lambda tx: tx.tasks.end(dead, error="no", result=None))
    lab.write(lambda tx: tx.tasks.end(done, error=None, result="kept 1"))
    later = lab.write(lease).id
    lab.write(lambda tx: tx.tasks.retry(later, "no", delay_ms=60_000))

    revivals = [lab.write(lambda tx, i=i: tx.tasks.revive(i)) for i in (dead, later, done, running, 1)]

    assert revivals == [True, True, False, False, False]
    assert {lab.write(lease).id for _ in range(2)} == {dead, later}
    assert lab.write(lease) is None
    assert lab.load(task_read(dead)).attempts == 1


def test_done_task_is_deleted_after_some_time(lab: StoreLab) -> None:
    """A done task is deleted after some time. A failed task stays until an administrator handles it."""
    lab.write(lambda tx: [tx.tasks.create("purge", "{}") for _ in range(2)])
    dead, done = (lab.write(lease).id for _ in range(2))
    lab.write(lambda tx: tx.tasks.end(dead, error="no", result=None))
    lab.write(lambda tx: tx.tasks.end(done, error=None, result="kept 1"))

    early_count = lab.write(lambda tx: tx.tasks.forget(keep_ms=60_000))
    late_count = lab.write(lambda tx: tx.tasks.forget(keep_ms=-60_000))

    assert (early_count, late_count) == (0, 1)
    assert states(lab) == {"dead": [dead]}


def test_recurring_task_exists_once(lab: StoreLab) -> None:
    """Of a recurring kind exactly one task exists. When it is given back, it is due later and otherwise as new."""
    for _ in range(2):
        lab.write(lambda tx: tx.tasks.ensure("sweep", "{}", delay_ms=0))
    task = lab.write(lease)

    lab.write(lambda tx: tx.tasks.reschedule(task.id, payload='{"n":2}', result="3", delay_ms=60_000))
    lab.write(lambda tx: tx.tasks.ensure("sweep", "{}", delay_ms=0))

    assert lab.write(lease) is None
    row = lab.load(task_read(task.id))
    assert (row.payload, row.result, row.attempts, row.ended_at) == ('{"n":2}', "3", 0, None)
    assert states(lab) == {"waiting": [task.id]}
