"""The node's own work beside requests: tasks that commits left (purge), and the store's upkeep.

May import `services`, `store` and the rooms below. A task is leased for a time and kept by heartbeats; one that fails is
tried again later, ever more slowly.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from limnos.files import run_apart
from limnos.model.permits import upkeep_permit
from limnos.services.purges import Purge, Purged, PurgePayload
from limnos.services.tables import PURGE
from limnos.store.nodes import catalog_properties
from limnos.store.upkeep import feed_prune, orphans_sweep
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

if TYPE_CHECKING:
    from limnos.files import Allowed
    from limnos.store.interface import Store
    from limnos.store.tasks import Task

log = get_logger("limnos.upkeep")
LEASE_MS = 300_000
IDLE_S = 30.0
SWEEP_EVERY_S = 3600.0
RETRY_MS = 5_000
RETRY_MS_MAX = 3_600_000
TASKS = Counter("limnos_tasks_total", "Tasks that this node ran, by kind and outcome.", ("kind", "outcome"))


class Upkeep:
    """Runs tasks when woken, at least now and then."""

    def __init__(self, store: Store, *, keep_ms: int, allowed: Allowed) -> None:
        self.allowed = allowed
        self.store = store
        self.keep_ms = keep_ms
        self._woken = asyncio.Event()
        self._permit = upkeep_permit("limnos")

    def wake(self) -> None:
        """Say that a task was left."""
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled."""
        loop = asyncio.get_running_loop()
        swept_at = loop.time() - SWEEP_EVERY_S
        while True:
            try:
                while await self.run_one():
                    pass
                if loop.time() - swept_at >= SWEEP_EVERY_S:
                    await self.sweep()
                    swept_at = loop.time()
            except Exception as error:  # noqa: BLE001 - upkeep goes on when the store is back
                log.warning("upkeep failed", error=str(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), IDLE_S)
            self._woken.clear()

    async def sweep(self) -> None:
        """Prune the feed and sweep grants."""
        await self.store.submit(self._permit, lambda tx: feed_prune(tx, keep_ms=self.keep_ms))
        await self.store.submit(self._permit, orphans_sweep)

    async def run_one(self) -> bool:
        """Run the oldest due task; says whether there was one."""
        task = await self.store.submit(self._permit, lambda tx: tx.tasks.lease(lease_ms=LEASE_MS))
        if task is None:
            return False
        try:
            await self._do(task)
        except Exception as error:  # noqa: BLE001 - told by the task, tried again
            delay = min(RETRY_MS << min(task.attempts, 10), RETRY_MS_MAX)
            text = str(error)
            log.warning("task failed", task=task.id, kind=task.kind, error=text, again_in_ms=delay)
            TASKS[task.kind, "failed"] += 1
            await self.store.submit(self._permit, lambda tx: tx.tasks.retry(task.id, text, delay_ms=delay))
        else:
            TASKS[task.kind, "done"] += 1
            await self.store.submit(self._permit, lambda tx: tx.tasks.done(task.id))
        return True

    async def _do(self, task: Task) -> None:
        if task.kind != PURGE:
            raise LookupError(f"No task of kind {task.kind} is known: a newer node must do it")
        payload = msgspec.json.decode(task.payload, type=PurgePayload)
        properties = await self.store.submit(self._permit, lambda tx: catalog_properties(tx, payload.catalog))
        at = payload.location
        rivals = [] if at is None else await self.store.submit(self._permit, lambda tx: tx.documents.claims(at))
        found = await self._purge(
            task, Purge(payload, properties, rivals=[place for _, place in rivals], allowed=self.allowed)
        )
        log.info("purged", task=task.id, files=found.deleted)
        if found.kept:
            log.warning(
                "files that a dropped table's metadata names are kept: they are not below its own location, or another table "
                "lies there", task=task.id, location=at, files=found.kept, first=found.kept_first,
            )  # fmt: skip

    async def _keep(self, task: Task, progress: str) -> None:
        await self.store.submit(self._permit, lambda tx: tx.tasks.progress(task.id, progress, lease_ms=LEASE_MS))

    async def _purge(self, task: Task, purge: Purge) -> Purged:
        """Delete in a thread, and keep the lease by heartbeats from here."""
        done, stopped = 0, threading.Event()

        def beat(count: int) -> None:
            nonlocal done
            done = count
            if stopped.is_set():
                raise InterruptedError("the node is stopping; the purge goes on elsewhere")

        work = asyncio.create_task(run_apart(lambda: purge.run(beat)))
        try:
            while not (await asyncio.wait({work}, timeout=LEASE_MS / 3000))[0]:
                await self._keep(task, str(done))
            return work.result()
        except asyncio.CancelledError:
            stopped.set()
            raise
