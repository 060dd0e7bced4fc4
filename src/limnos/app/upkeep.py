# SPDX-License-Identifier: Apache-2.0
"""Background work of a node: tasks in the store, and periodic maintenance of the store.

`app.task_kinds` lists the kinds of tasks. A task is leased, and heartbeats renew the lease. A failed task is retried
with exponential backoff, up to a maximum number of attempts. Each kind of work has a background loop of its own, so
that none delays or ends another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from limnos.app.task_kind import TaskKind, TaskOutcome
from limnos.app.task_kinds import KINDS
from limnos.files import AllowedStorage
from limnos.model.permits import upkeep_permit
from limnos.services.request.audit_lines import AuditLines
from limnos.services.request.concurrency.background_loops import BackgroundLoops
from limnos.services.request.concurrency.lease_holders import has_ended, new_holder
from limnos.services.request.node_services import NodeServices
from limnos.services.request.task_context import FileCleanup, TaskContext
from limnos.services.storage.location_reconciliation import locations_refresh
from limnos.services.upkeep.trash import trash_sweep
from limnos.store.activity.audit import EXPIRED_AT_ONCE, lines_expire
from limnos.store.activity.future_times import is_any_time_ahead, later_tasks_read, stored_times_repair
from limnos.store.activity.lease_holders import holders_read, leases_end
from limnos.store.activity.reports import reports_expire
from limnos.store.activity.tasks import LeasedTask, task_counts, task_due
from limnos.store.activity.upkeep import feed_prune, orphans_sweep
from limnos.store.backends.table_statistics import outgrown_tables_query, statistics_query
from limnos.store.interface import Store
from limnos.store.objects.name_search import UNFOLDED_AT_ONCE, names_fold
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter, Gauge
from limnos.view.freshness_gate import FreshnessGate

log = get_logger("limnos.upkeep")
LEASE_MS = 300_000
IDLE_S = 30.0
SWEEP_EVERY_S = 3600.0
REPAIR_EVERY_S = 20.0
RETRY_MS = 5_000
RETRY_MS_MAX = 3_600_000
UNKNOWN_MS = 60_000
DONE_MS = 30 * 86_400_000
"""Milliseconds for which a completed task with a result is retained."""
WAITING = Gauge(
    "limnos_tasks_open",
    "Waiting, running and failed tasks of the store, by kind and state.",
    ("kind", "state"),
)
TASKS = Counter("limnos_tasks_total", "Tasks that this node ran, by kind and outcome.", ("kind", "outcome"))


class Upkeep:
    """Runs due tasks of the store, when woken and at least every `IDLE_S` seconds.

    `kinds` are the kinds of tasks by name, and `others` the names of those that are left to other nodes.
    """

    def __init__(
        self,
        store: Store,
        gate: FreshnessGate,
        *,
        keep_ms: int,
        allowed: AllowedStorage,
        warehouse: str,
        keep_runs_ms: int,
        debris_ms: int = 0,
        cleanups: tuple[FileCleanup, ...] = (),
        kinds: Mapping[str, TaskKind] = KINDS,
        others: tuple[str, ...] = (),
    ) -> None:
        self.kinds = kinds
        long = tuple(kind.name for kind in kinds.values() if kind.takes_long)
        self._leased = {True: long, False: (*long, *others)}
        """The kinds of tasks that the loop of long tasks leases (True), and those that the other loop leaves out."""
        self.allowed = allowed
        self.warehouse = warehouse
        self.store = store
        self.gate = gate
        self.keep_ms = keep_ms
        self.keep_runs_ms = keep_runs_ms
        self.debris_ms = debris_ms
        self.cleanups = cleanups
        self.services: NodeServices | None = None
        """The node's services, set after they are built."""
        self._woken = {name: asyncio.Event() for name in ("tasks", "long tasks", "audit records")}
        self.holder = new_holder()
        self._unrecorded: set[int] = set()
        """Leased tasks that this node no longer runs, and whose outcome the store did not record."""
        self._permit = upkeep_permit("limnos")
        self._progress: dict[bool, Callable[[], None]] = {}
        """Functions that record the progress of the loop of tasks, and of that of long tasks (True)."""

    def wake(self) -> None:
        """Wake the loops of tasks and of audit records, because a commit has added a task."""
        for woken in self._woken.values():
            woken.set()

    async def run(self) -> None:
        """Run tasks and maintain the store until cancelled. Long tasks have their own loop, so that they do not delay
        others.
        """
        services = self.services
        loops = BackgroundLoops() if services is None else services.loops
        steps: list[tuple[str, Callable[[], Awaitable[object]], float]] = [
            ("tasks", partial(self._run_due, among_long=False), IDLE_S),
            ("long tasks", partial(self._run_due, among_long=True), IDLE_S),
            ("audit records", self.write_audit, IDLE_S),
            ("store upkeep", self.sweep, SWEEP_EVERY_S),
            ("leases of ended processes", self.end_dead_leases, REPAIR_EVERY_S),
            ("times in the store", self.repair_times, REPAIR_EVERY_S),
        ]
        if not self.store.inline:
            steps.append(("statistics of tables", self.refresh_statistics, REPAIR_EVERY_S))
        added_loops = {name: loops.add(name, every_s=every_s) for name, _, every_s in steps}
        self._progress = {
            False: added_loops["tasks"].record_progress,
            True: added_loops["long tasks"].record_progress,
        }
        async with asyncio.TaskGroup() as group:
            for name, step, _ in steps:
                group.create_task(added_loops[name].run(step, woken=self._woken.get(name)))

    def _record_progress(self, *, among_long: bool) -> None:
        """Record that a task has ended or renewed its lease."""
        if among_long in self._progress:
            self._progress[among_long]()

    async def _run_due(self, *, among_long: bool) -> None:
        """Run the due tasks: the long ones if `among_long`, else all others."""
        while await self.run_one(among_long=among_long):
            self._record_progress(among_long=among_long)
        await self.count()

    async def sweep(self) -> None:
        """Maintain the store: delete old rows, write missing audit records, insert missing periodic tasks.

        Old rows are those of the change feed, audit log, trash, reports, tasks and dropped objects. Also fills in
        search names, storage locations and digests of documents that nodes of an earlier release did not store.
        """
        await self.write_audit()
        audited = self.audit is not None and self.audit.rules.changes
        await self.store.submit(self._permit, lambda tx: feed_prune(tx, keep_ms=self.keep_ms, audited=audited))
        while await self.store.submit(self._permit, self._expire_audit) == EXPIRED_AT_ONCE:
            pass
        while await self.store.submit(self._permit, trash_sweep):
            pass
        await self.store.submit(self._permit, reports_expire)
        await self.store.submit(self._permit, orphans_sweep)
        while await self.store.submit(self._permit, names_fold) == UNFOLDED_AT_ONCE:
            pass
        while await self.store.submit(self._permit, lambda tx: tx.documents.fill_digests()):
            pass
        await self.store.submit(self._permit, lambda tx: tx.tasks.forget(keep_ms=DONE_MS))
        await self.store.submit(self._permit, self._insert_periodic_tasks)
        if self.services is not None:
            await locations_refresh(self.services)
        await self.count()

    async def end_dead_leases(self) -> None:
        """End the leases of processes on this machine that have ended, so that their work goes on at once."""
        dead = [each for each in await self.gate.look_up(holders_read) if has_ended(each)]
        if not dead:
            return
        count = await self.store.submit(self._permit, lambda tx: leases_end(tx, dead))
        log.info("leases of ended processes have been ended", count=count)
        self.wake()
        if self.services is not None:
            self.services.wake_deliveries()
            self.services.wake_executor()

    async def repair_times(self) -> None:
        """Repair times of leases and due work that a clock which was ahead has written, and wake the tasks."""
        now_ms = self.store.time.now_ms()
        moves = {}
        for task in await self.gate.look_up(lambda: later_tasks_read(now_ms)):
            every_s = self.kinds[task.kind].every_s if task.kind in self.kinds else None
            every_ms = None if every_s is None else round(every_s * 1000)
            corrected_task = task.correct_times(now_ms, every_ms=every_ms, retry_ms=RETRY_MS_MAX)
            if corrected_task != task:
                moves[task] = corrected_task
        if not moves and not await self.gate.look_up(lambda: is_any_time_ahead(now_ms)):
            return
        count = await self.store.submit(self._permit, lambda tx: stored_times_repair(tx, moves))
        log.warning("times in the store were in the future and have been repaired: was a clock ahead?", count=count)
        self.wake()

    async def refresh_statistics(self) -> None:
        """Collect the statistics of tables that have grown to several times their size, for PostgreSQL's planner."""
        for (name,) in await self.gate.find(outgrown_tables_query()):
            await self.gate.find(statistics_query(name))
            log.info("statistics of a table have been collected", table=name)

    @property
    def audit(self) -> AuditLines | None:
        """The writer of audit records; None until the node is built."""
        return None if self.services is None else self.services.audit

    async def write_audit(self) -> None:
        """Write audit records for changes that have none yet."""
        while self.audit is not None and await self.audit.collect():
            pass

    def _insert_periodic_tasks(self, tx: Tx) -> None:
        """Insert the periodic tasks that are missing in the store."""
        for kind in self.kinds.values():
            if kind.every_s is not None:
                tx.tasks.ensure(kind.name, kind.first, delay_ms=0)

    def _expire_audit(self, tx: Tx) -> int:
        return 0 if self.audit is None else lines_expire(tx, keep_ms=self.audit.rules.keep_ms)

    async def run_one(self, *, among_long: bool = False) -> bool:
        """Run the oldest due task among the long ones, or among the others. Returns whether there was one.

        A read finds the task, so an idle node takes no write lock on the store.
        """
        await self._release_unrecorded()
        now_ms = self.store.time.now_ms()
        if not await self.gate.look_up(lambda: task_due(now_ms, kinds=self._leased[among_long], among=among_long)):
            return False
        task = await self.store.submit(
            self._permit,
            lambda tx: tx.tasks.lease(
                lease_ms=LEASE_MS, kinds=self._leased[among_long], among=among_long, holder=self.holder
            ),
        )
        if task is None:
            return False
        try:
            await self._run_leased(task)
        except Exception:
            self._unrecorded.add(task.id)
            raise
        return True

    async def _release_unrecorded(self) -> None:
        """End the leases of tasks whose outcome the store did not record: they run again now, not after the lease."""
        unrecorded = tuple(self._unrecorded)
        for task_id in unrecorded:
            await self.store.submit(self._permit, partial(_release, task_id=task_id, holder=self.holder))
            self._unrecorded.discard(task_id)

    async def _run_leased(self, task: LeasedTask) -> None:
        """Run a leased task and record its outcome. Raises the errors of the store."""
        kind = self.kinds.get(task.kind)
        if kind is None:
            log.warning("task of a kind that this release does not have", task=task.id, kind=task.kind)
            await self.store.submit(
                self._permit, lambda tx: tx.tasks.retry(task.id, "unknown kind", delay_ms=UNKNOWN_MS)
            )
            return
        try:
            outcome = await kind.runner(self._work(task, kind), task.payload)
        except Exception as error:  # noqa: BLE001 - stored in the task, and retried
            await self._record_failure(task, kind, error)
        else:
            TASKS[task.kind, "done"] += 1
            await self.store.submit(self._permit, lambda tx: _complete(tx, task, kind, outcome=outcome))

    def _work(self, task: LeasedTask, kind: TaskKind) -> TaskContext:
        return TaskContext(
            task.id,
            store=self.store,
            permit=self._permit,
            allowed=self.allowed,
            warehouse=self.warehouse,
            lease_ms=kind.lease_ms,
            keep_runs_ms=self.keep_runs_ms,
            debris_ms=self.debris_ms,
            cleanups=self.cleanups,
            services=self.services,
            on_renewal=partial(self._record_progress, among_long=kind.takes_long),
        )

    async def _record_failure(self, task: LeasedTask, kind: TaskKind, error: Exception) -> None:
        """Schedule a failed task's retry, or mark it as permanently failed."""
        text = f"{type(error).__name__}: {error}"[:2000]
        if kind.is_lost(error, task.attempts + 1):
            log.error(
                "task has failed for good: see 'limnos show task', 'limnos task retry'",
                task=task.id,
                kind=task.kind,
                error=text,
            )
            TASKS[task.kind, "given-up"] += 1
            await self.store.submit(self._permit, lambda tx: tx.tasks.end(task.id, error=text, result=None))
            return
        delay = min(RETRY_MS << min(task.attempts, 10), RETRY_MS_MAX)
        log.warning("task failed", task=task.id, kind=task.kind, error=text, again_in_ms=delay)
        TASKS[task.kind, "failed"] += 1
        await self.store.submit(self._permit, lambda tx: tx.tasks.retry(task.id, text, delay_ms=delay))

    async def count(self) -> None:
        """Update the metric of the counts of open and failed tasks."""
        counts = await self.gate.look_up(task_counts)
        WAITING.clear()
        WAITING.update({(kind, state): number for (kind, state), number in counts.items() if state != "done"})


def _release(tx: Tx, *, task_id: int, holder: str) -> None:
    tx.tasks.release(task_id, holder)


def _complete(tx: Tx, task: LeasedTask, kind: TaskKind, *, outcome: TaskOutcome) -> None:
    """Complete a successful task: reschedule a periodic one, store a result, or delete it."""
    if kind.every_s is not None:
        payload = task.payload if outcome.payload is None else outcome.payload
        tx.tasks.reschedule(task.id, payload=payload, result=outcome.result, delay_ms=round(kind.every_s * 1000))
    elif outcome.result is not None:
        tx.tasks.end(task.id, error=None, result=outcome.result)
    else:
        tx.tasks.delete_finished(task.id)
