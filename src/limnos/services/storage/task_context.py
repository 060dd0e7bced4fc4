"""What a task gets to work with: the store under the server's own permit, what is allowed, and threads with a heartbeat.

May import `files`, `store` and the rooms below. Knows no kind of task.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeVar

from limnos.files import run_in_own_thread
from limnos.model.errors import ServiceUnavailable
from limnos.services.request.catalog_storage import catalog_storage_within
from limnos.services.request.named_storages import NamedStorages

if TYPE_CHECKING:
    from limnos.files import AllowedStorage
    from limnos.model.permits import Permit
    from limnos.model.records import CatalogRecord
    from limnos.services.request.catalog_storage import CatalogStorage
    from limnos.services.request.node_services import NodeServices
    from limnos.store.interface import Store
    from limnos.store.tx import Tx

T = TypeVar("T")
Heartbeat = Callable[[int], None]
"""Called now and then by work in a thread, with how far it is. Raises InterruptedError when it is to stop."""


class TaskContext:
    """One task under way on this node."""

    def __init__(
        self, task_id: int, *, store: Store, permit: Permit[None], allowed: AllowedStorage, warehouse: str, lease_ms: int,
        keep_runs_ms: int = 0, debris_ms: int = 0, services: NodeServices | None = None,
    ) -> None:  # fmt: skip
        self.task_id = task_id
        self.allowed = allowed
        self.warehouse = warehouse
        self.keep_runs_ms = keep_runs_ms
        """How long runs are kept that ended; 0: for ever."""
        self.debris_ms = debris_ms
        """How old files of Lance tables are that go when no version knows them; 0: none goes."""
        self.services = services
        """What requests share, for tasks that do what a request could; None where no node is built."""
        self._store = store
        self._permit = permit
        self._lease_ms = lease_ms

    @property
    def storages(self) -> NamedStorages:
        """How catalogs' files are reached."""
        return NamedStorages() if self.services is None else self.services.defaults.storages

    def place(self, record: CatalogRecord, catalog: int) -> CatalogStorage:
        """Return the place of a catalog."""
        return catalog_storage_within(record, f"{self.warehouse}/{catalog}", self.allowed, storages=self.storages)

    async def submit(self, mutation: Callable[[Tx], T]) -> T:
        """Run a mutation, or a read inside one, in a transaction of its own."""
        return await self._store.submit(self._permit, mutation)

    async def apart(self, call: Callable[[Heartbeat], T]) -> T:
        """Run a call in a thread of its own, and keep the task's lease as long as it gets on.

        One that gets on no more for the time of a lease is left to itself: ServiceUnavailable. Whoever cancels this stops it at its
        next beat.
        """
        far, stopped = 0, threading.Event()

        def beat(count: int) -> None:
            nonlocal far
            far = count
            if stopped.is_set():
                raise InterruptedError("the node is stopping, or gave this up: it goes on elsewhere")

        work = asyncio.create_task(run_in_own_thread(lambda: call(beat)))
        silent, last = 0, -1
        try:
            while not (await asyncio.wait({work}, timeout=self._lease_ms / 3000))[0]:
                silent, last = (silent + 1, last) if far == last else (0, far)
                if silent >= 3:
                    raise ServiceUnavailable("Its storage does not answer: the task is tried again")
                await self._keep(str(far))
            return work.result()
        finally:
            stopped.set()
            work.cancel()

    async def kept(self, call: Coroutine[None, None, T]) -> T:
        """Await what may take longer than the task's lease, and keep that meanwhile: it is short, so that after a dead node others soon go on."""
        work = asyncio.create_task(call)
        try:
            while True:
                await self._keep("")
                if (await asyncio.wait({work}, timeout=self._lease_ms / 3000))[0]:
                    return work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _keep(self, progress: str) -> None:
        await self.submit(lambda tx: tx.tasks.progress(self.task_id, progress, lease_ms=self._lease_ms))
