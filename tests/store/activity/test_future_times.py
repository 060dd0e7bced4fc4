# SPDX-License-Identifier: Apache-2.0
"""Leases and due times that a clock a day ahead or behind wrote: each kind is over or due soon after the clock is set
right, and a living holder keeps its lease.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import limnos.store
from limnos.model.principals import Requester, TokenTrust
from limnos.model.runs import LOST
from limnos.services.upkeep.nodes import SILENT_MS
from limnos.store.activity.future_times import (
    STORED_TIMES,
    LaterTask,
    is_any_time_ahead,
    later_tasks_read,
    stored_times_repair,
)
from limnos.store.activity.node_beats import NodeHeartbeat, nodes_read
from limnos.store.activity.rewrites import metalake_due, recent_use_read
from limnos.store.activity.runs import runs_read
from limnos.store.activity.schedules import schedules_due
from limnos.store.activity.search_index import zones_behind_read
from limnos.store.activity.sqlpp_requests import runs_query
from limnos.store.activity.tasks import task_due
from limnos.store.activity.template_jobs import jobs_due
from limnos.store.activity.webhooks import webhooks_due
from limnos.store.idempotency import IdempotencyKey, outcome_of, outcome_query
from limnos.store.schema import base
from limnos.store.sql import read_rows
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.activity.test_runs import EVERYBODY, Runs, add_pipeline
from tests.store.activity.test_schedules import add_schedule
from tests.store.activity.test_sqlpp_requests import row as add_request
from tests.store.activity.test_template_jobs import ask as ask_job
from tests.store.activity.test_webhooks import make as make_webhook
from tests.store.test_idempotency import DONE, keep
from tests.store.world import StoreWorld, add_namespace, add_table

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
STORE = Path(limnos.store.__file__).parent
ANA = Requester("ana", 7)


@dataclass
class SkewedStore:
    """A store whose clock a test sets."""

    lab: StoreLab
    world: StoreWorld
    _at_ms: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._at_ms.append(self.lab.store.time.now_ms())
        self.lab.store.time.now_ms = lambda: self._at_ms[0]  # type: ignore[method-assign]

    def move(self, ms: int) -> None:
        """Set the clock forward, or back."""
        self._at_ms[0] += ms

    @property
    def now_ms(self) -> int:
        """The time of this clock."""
        return self._at_ms[0]

    def repair(self) -> int:
        """Repair the stored times, as each node does, with an hourly task `often`."""
        moves = {}
        for task in self.lab.load(later_tasks_read(self.now_ms)):
            every_ms = HOUR_MS if task.kind == "often" else None
            moves[task] = task.correct_times(self.now_ms, every_ms=every_ms, retry_ms=HOUR_MS)
        is_ahead = self.lab.load(is_any_time_ahead(self.now_ms))
        count = self.lab.write(lambda tx: stored_times_repair(tx, {a: b for a, b in moves.items() if a != b}))
        assert is_ahead or count <= len(moves)
        return count


class TimeCase(NamedTuple):
    """A kind of stored time: how work takes a lease or becomes due later, and whether the lease is over, or it is due.

    `delay_ms` is the length of the lease, or the delay.
    """

    begin: Callable[[SkewedStore], object]
    is_over: Callable[[SkewedStore], bool]
    delay_ms: int


def _task_lease(skewed: SkewedStore) -> None:
    skewed.lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    assert skewed.lab.write(lambda tx: tx.tasks.lease(lease_ms=300_000, holder="dead")) is not None


def _task_again(skewed: SkewedStore) -> None:
    """Complete a run of an hourly task."""
    task_id = skewed.lab.write(lambda tx: tx.tasks.create("often", "{}"))
    skewed.lab.write(lambda tx: tx.tasks.lease(lease_ms=300_000))
    skewed.lab.write(lambda tx: tx.tasks.reschedule(task_id, payload="{}", result=None, delay_ms=HOUR_MS))


def _task_retry(skewed: SkewedStore) -> None:
    task_id = skewed.lab.write(lambda tx: tx.tasks.create("purge", "{}"))
    skewed.lab.write(lambda tx: tx.tasks.lease(lease_ms=300_000))
    skewed.lab.write(lambda tx: tx.tasks.retry(task_id, "refused", delay_ms=10_000))


def _task_later(skewed: SkewedStore) -> None:
    """Create a task that protects readers for ten hours."""
    skewed.lab.write(lambda tx: tx.tasks.create("purge", "{}", delay_ms=10 * HOUR_MS))


def _is_task_due(skewed: SkewedStore) -> bool:
    return skewed.lab.load(task_due(skewed.now_ms, kinds=(), among=False))


def _webhook_lease(skewed: SkewedStore) -> None:
    make_webhook(skewed.lab, skewed.world)
    assert skewed.lab.write(lambda tx: tx.webhooks.lease("dead", limit=9, lease_ms=30_000))


def _webhook_failure(skewed: SkewedStore) -> None:
    hook = make_webhook(skewed.lab, skewed.world)
    skewed.lab.write(lambda tx: tx.webhooks.lease("dead", limit=9, lease_ms=30_000))
    skewed.lab.write(lambda tx: tx.webhooks.record_failure(hook.id, "dead", "refused", delay_ms=900_000))


def _is_webhook_due(skewed: SkewedStore) -> bool:
    return skewed.lab.load(webhooks_due(skewed.now_ms))


def _search_lease(skewed: SkewedStore) -> None:
    assert skewed.lab.write(lambda tx: tx.search.lease("dead", lease_ms=30_000))


def _is_search_free(skewed: SkewedStore) -> bool:
    return skewed.lab.write(lambda tx: tx.search.lease("other", lease_ms=30_000))


def _lock_lease(skewed: SkewedStore) -> None:
    skewed.lab.write(lambda tx: tx.locks.renew_lease("dead", lease_ms=15_000))


def _is_locker_dead(skewed: SkewedStore) -> bool:
    return bool(skewed.lab.write(lambda tx: tx.locks.expired_holders(but="other")))


def _request(skewed: SkewedStore) -> None:
    add_request(skewed.lab, skewed.world, "a")


def _is_request_orphaned(skewed: SkewedStore) -> bool:
    statement, params = runs_query(ANA, everybody=True, now_ms=skewed.now_ms)
    return not skewed.lab.load(read_rows(statement, **params))


def _operation(skewed: SkewedStore) -> tuple[int, int]:
    """Queue an operation on a new table. Returns the ids of the table and the operation."""
    lab, world = skewed.lab, skewed.world
    space = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    table = lab.write(lambda tx: add_table(tx, space, "t"), zone=world.main.id)

    def queue(tx: Tx) -> int:
        operation = tx.maintenance.begin(
            catalog_id=world.main.id, node_id=table.id, kind="rewrite-files", user="ana", policy=None
        )
        tx.rewrites.add(operation, metalake_id=world.lake.id, priority=1, options="{}")
        return operation

    return table.id, lab.write(queue)


def _table_lease(skewed: SkewedStore) -> None:
    table_id, operation = _operation(skewed)
    skewed.lab.write(
        lambda tx: tx.rewrites.take(operation, node_id=table_id, token_id=7, holder="dead", lease_ms=60_000)
    )


def _is_table_lease_over(skewed: SkewedStore) -> bool:
    return bool(skewed.lab.write(lambda tx: tx.rewrites.read_expired()))


def _yielded(skewed: SkewedStore) -> None:
    """Lease an operation, which then waits for a writer."""
    table_id, operation = _operation(skewed)
    skewed.lab.write(
        lambda tx: tx.rewrites.take(operation, node_id=table_id, token_id=7, holder="dead", lease_ms=60_000)
    )
    skewed.lab.write(
        lambda tx: tx.rewrites.return_to_queue(operation, delay_ms=HOUR_MS, failed=False, reason="conflicts")
    )


def _is_operation_due(skewed: SkewedStore) -> bool:
    return skewed.lab.load(metalake_due(skewed.now_ms)) == "lake"


def _is_budget_used(skewed: SkewedStore) -> bool:
    """Return whether the lease counts as older than a day for the budgets, a day after the clock was set right."""
    return not skewed.lab.load(recent_use_read(skewed.now_ms + DAY_MS))


def _job(skewed: SkewedStore) -> None:
    ask_job(skewed.lab, skewed.world, add_pipeline(skewed.lab, skewed.world), "j-1")
    assert skewed.lab.write(lambda tx: tx.template_jobs.claim("dead", limit=1, lease_ms=15_000))


def _is_job_lost(skewed: SkewedStore) -> bool:
    return skewed.lab.load(jobs_due(skewed.now_ms))


def _run(skewed: SkewedStore) -> None:
    runs = Runs(skewed.lab, skewed.world, add_pipeline(skewed.lab, skewed.world))
    runs.start("one", lease_ms=30_000)


def _is_run_lost(skewed: SkewedStore) -> bool:
    (run,) = skewed.lab.load(
        runs_read(
            skewed.world.lake.id, EVERYBODY, of_pipeline=False, state="", before=2**53, limit=9, now_ms=skewed.now_ms
        )
    )
    return run.display_state(skewed.now_ms) == LOST


def _node(skewed: SkewedStore) -> None:
    heartbeat = NodeHeartbeat(id="n", name="host", version="1", started_at=skewed.now_ms, seen_at=0, clock_offset_ms=0)
    skewed.lab.write(lambda tx: tx.node_beats.beat(heartbeat))


def _is_node_silent(skewed: SkewedStore) -> bool:
    (node,) = skewed.lab.load(nodes_read(9))
    return skewed.now_ms - node.seen_at > SILENT_MS


def _schedule(skewed: SkewedStore) -> None:
    """Plan a schedule, whose node looks at it again after an hour."""
    pipeline = add_pipeline(skewed.lab, skewed.world)
    add_schedule(skewed.lab, pipeline, due_at=skewed.now_ms + HOUR_MS)


def _is_schedule_due(skewed: SkewedStore) -> bool:
    return bool(skewed.lab.load(schedules_due(skewed.now_ms, limit=9)))


CASES: Final = {
    "schedule": TimeCase(_schedule, _is_schedule_due, HOUR_MS),
    "task lease": TimeCase(_task_lease, _is_task_due, 300_000),
    "periodic task": TimeCase(_task_again, _is_task_due, HOUR_MS),
    "failed task": TimeCase(_task_retry, _is_task_due, 10_000),
    "delayed task": TimeCase(_task_later, _is_task_due, 10 * HOUR_MS),
    "webhook lease": TimeCase(_webhook_lease, _is_webhook_due, 30_000),
    "failed webhook": TimeCase(_webhook_failure, _is_webhook_due, 900_000),
    "index lease": TimeCase(_search_lease, _is_search_free, 30_000),
    "lock lease": TimeCase(_lock_lease, _is_locker_dead, 15_000),
    "statement": TimeCase(_request, _is_request_orphaned, 15_000),
    "table lease": TimeCase(_table_lease, _is_table_lease_over, 60_000),
    "delayed operation": TimeCase(_yielded, _is_operation_due, HOUR_MS),
    "budget": TimeCase(_table_lease, _is_budget_used, 0),
    "job": TimeCase(_job, _is_job_lost, 15_000),
    "run": TimeCase(_run, _is_run_lost, 30_000),
    "node": TimeCase(_node, _is_node_silent, SILENT_MS),
}
"""Each kind of lease, lock, due time and heartbeat in the store."""
EARLY: Final = {"schedule", "periodic task", "failed task", "failed webhook", "delayed operation", "budget"}
"""Work without a holder, which may begin early when the clock goes back."""
ALL = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@ALL
def test_times_of_a_clock_that_was_a_day_ahead_end(lab: StoreLab, world: StoreWorld, case: TimeCase) -> None:
    """A dead holder's lease that was written a day ahead is over after its length at the latest, and delayed work is
    due after its delay.
    """
    skewed = SkewedStore(lab, world)
    skewed.move(DAY_MS)
    case.begin(skewed)
    skewed.move(-DAY_MS)

    repaired = skewed.repair()
    skewed.move(case.delay_ms + 1)

    assert repaired > 0
    assert case.is_over(skewed)
    assert skewed.repair() == 0


@ALL
def test_times_of_a_clock_that_was_a_day_behind_end(lab: StoreLab, world: StoreWorld, case: TimeCase) -> None:
    """What was written a day behind is over, or due, when the clock is set right; no repair changes it."""
    skewed = SkewedStore(lab, world)
    skewed.move(-DAY_MS)
    case.begin(skewed)
    skewed.move(DAY_MS)

    assert skewed.repair() == 0
    assert case.is_over(skewed)


@pytest.mark.parametrize("name", [name for name in CASES if name not in EARLY])
def test_living_holder_keeps_its_lease_when_the_clock_goes_back(lab: StoreLab, world: StoreWorld, name: str) -> None:
    """When a right clock goes back by a day, leases and protective delays last for their length from then on."""
    skewed, case = SkewedStore(lab, world), CASES[name]
    case.begin(skewed)
    skewed.move(-DAY_MS)

    skewed.repair()
    skewed.move(case.delay_ms // 2)

    assert not case.is_over(skewed)


@ALL
def test_times_of_a_right_clock_are_not_changed(lab: StoreLab, world: StoreWorld, case: TimeCase) -> None:
    """Without a wrong clock nothing is ahead, and nothing is repaired."""
    skewed = SkewedStore(lab, world)
    case.begin(skewed)

    assert not lab.load(is_any_time_ahead(skewed.now_ms))
    assert skewed.repair() == 0


@pytest.mark.parametrize("jump_ms", [-DAY_MS, DAY_MS], ids=["behind", "ahead"])
def test_credentials_and_keys_last_while_the_clock_is_wrong(lab: StoreLab, world: StoreWorld, jump_ms: int) -> None:
    """A token and an idempotency key that were written by a right clock are valid while it is behind, and again when it
    is right. One that is ahead ends them only as long as it is ahead.
    """
    skewed = SkewedStore(lab, world)
    token = lab.write(
        lambda tx: tx.tokens.create(
            user="ana", name="t", secret_hash=b"h" * 32, expires_at=tx.now_ms + HOUR_MS, trust=TokenTrust.PROVEN
        )
    )
    outcome_key = IdempotencyKey(world.main.id, "id 7", "k")
    keep(lab, outcome_key, DONE, lifetime_ms=HOUR_MS)

    def validity() -> tuple[bool, bool]:
        outcome = outcome_of(lab.find(outcome_query(outcome_key, now_ms=skewed.now_ms)))
        return not token.is_over(skewed.now_ms), outcome == DONE

    skewed.move(jump_ms)
    skewed.repair()
    wrong = validity()
    skewed.move(-jump_ms)
    skewed.repair()

    assert wrong == ((True, True) if jump_ms < 0 else (False, False))
    assert validity() == (True, True)


@pytest.mark.parametrize("jump_ms", [-DAY_MS, DAY_MS], ids=["behind", "ahead"])
def test_index_positions_do_not_depend_on_the_clock(lab: StoreLab, world: StoreWorld, jump_ms: int) -> None:
    """A zone with changes is behind, and up to date when its position is stored, whatever the clock says."""
    skewed = SkewedStore(lab, world)
    lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    skewed.move(jump_ms)
    (before,) = [each for each in lab.load(zones_behind_read(limit=9)) if each.zone == world.main.id]
    lab.write(
        lambda tx: tx.search.store_progress(world.main.id, epoch=before.epoch, revision=before.newest, scan_after=None)
    )
    skewed.move(-jump_ms)

    assert world.main.id not in [each.zone for each in lab.load(zones_behind_read(limit=9))]


RETENTION: Final = {
    "access_answer.answered_at",
    "access_request.asked_at",
    "idempotency.expires_at",
    "metrics_report.expires_at",
    "restricted_read.expires_at",
    "scan_plan.expires_at",
    "snapshot_pin.expires_at",
    "sqlpp_request.expires_at",
    "trash.expires_at",
    "former_object.expires_at",
    "former_restriction.expires_at",
    "place.keys_until",
    "token.expires_at",
}
"""Ends of retention times and of credentials: a wrong clock moves each by its error, once, and blocks no work."""
COMPARED = re.compile(r"(?<!:)\b(?:\w+\.)?(\w+)(?: \+ (?:\w+\.)?lease_ms)? (?:<=|<|>=|>) :now\b")


def test_every_column_that_is_compared_with_the_present_is_known() -> None:
    """Statements of the store compare only columns with the present time that are repaired, or are ends of retention
    times.
    """
    sources = [path.read_text(encoding="utf-8") for path in STORE.rglob("*.py") if path.name != "future_times.py"]
    compared = {name for source in sources for name in COMPARED.findall(source)}
    repaired = {each.column for each in STORED_TIMES} | {"due_at"}

    assert {"leased_until", "due_at", "beat_at", "alive_until", "expires_at"} <= compared
    assert compared - repaired - {each.partition(".")[2] for each in RETENTION} == set()


def test_every_column_with_such_a_name_is_known() -> None:
    """Each column of the schema with the end of a lease, a due time or a heartbeat is repaired, or is the end of a
    retention time.
    """
    named = {
        f"{table.name}.{column.name}"
        for table in base.metadata.sorted_tables
        for column in table.columns
        if column.name.endswith("_until") or column.name in ("due_at", "beat_at", "seen_at", "expires_at", "fed_at")
    }
    repaired = {f"{each.table}.{each.column}" for each in STORED_TIMES} | {"task.due_at"}

    assert named - repaired - RETENTION == {"maintenance_orphan_file.seen_at"}  # it only shows when a file was seen


def test_new_task_keeps_its_delay() -> None:
    """A task that was created a day ahead to protect readers keeps its delay, and no error of a clock shortens it."""
    task = LaterTask(id=1, kind="purge", created_at=DAY_MS, due_at=DAY_MS + HOUR_MS, attempts=0)

    assert task.correct_times(0, every_ms=None, retry_ms=HOUR_MS) == LaterTask(
        id=1, kind="purge", created_at=0, due_at=HOUR_MS, attempts=0
    )
    assert task.correct_times(DAY_MS, every_ms=None, retry_ms=HOUR_MS) == task
