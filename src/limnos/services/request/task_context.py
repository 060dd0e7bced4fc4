# SPDX-License-Identifier: Apache-2.0
"""Task context: the resources of a background task: the store with the server's own permit, the allowed storage, and
threads that renew the task's lease.

Must not know the kinds of tasks.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, Protocol, TypeVar

from limnos.files import AllowedStorage, run_in_own_thread
from limnos.model.entities import Token
from limnos.model.errors import ServiceUnavailable
from limnos.model.permits import Permit
from limnos.model.principals import TokenPurpose, TokenTrust
from limnos.model.records import CatalogRecord
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_within
from limnos.services.request.named_storages import NamedStorages
from limnos.services.request.node_services import NodeServices
from limnos.store.interface import Store
from limnos.store.tx import Tx

T = TypeVar("T")
TOKEN_MS: Final = 600_000
"""The lifetime of a task's token without a renewal of the task's lease, in milliseconds."""
Heartbeat = Callable[[int], None]
"""Work in a thread calls this regularly, with its progress. Raises InterruptedError if it must stop."""


class FileCleanup(Protocol):
    """Deletes files that nothing refers to."""

    def __call__(self, work: TaskContext, *, now_ms: int, dry: bool) -> Coroutine[object, object, list[str]]:
        """Delete the files; with `dry` only list them. Returns their names."""


class TaskContext:
    """A background task that runs on this node, with its lease and the services that it may use."""

    def __init__(
        self,
        task_id: int,
        *,
        store: Store,
        permit: Permit[None],
        allowed: AllowedStorage,
        warehouse: str,
        lease_ms: int,
        keep_runs_ms: int = 0,
        debris_ms: int = 0,
        cleanups: Sequence[FileCleanup] = (),
        services: NodeServices | None = None,
        on_renewal: Callable[[], None] = lambda: None,
    ) -> None:
        self.task_id = task_id
        self.allowed = allowed
        self.warehouse = warehouse
        self.keep_runs_ms = keep_runs_ms
        """The retention time of ended runs, in milliseconds; 0 keeps them forever."""
        self.debris_ms = debris_ms
        """The age in milliseconds at which unreferenced files of Lance tables are deleted; 0 keeps them."""
        self.cleanups = tuple(cleanups)
        """The functions of rooms that delete files in each round of the janitor."""
        self.services = services
        """The node's services, for tasks that act like requests; None if no node is built."""
        self._store = store
        self._permit = permit
        self._lease_ms = lease_ms
        self._on_renewal = on_renewal
        self._tokens: dict[int, int] = {}
        """The ids of the task's tokens, with their expiry times."""

    @property
    def storages(self) -> NamedStorages:
        """The named storages of the settings."""
        return NamedStorages() if self.services is None else self.services.defaults.storages

    def place(self, record: CatalogRecord, catalog: int) -> CatalogStorage:
        """Return a catalog's storage: its own warehouse, or its directory in the server's warehouse."""
        return catalog_storage_within(record, f"{self.warehouse}/{catalog}", self.allowed, storages=self.storages)

    async def submit(self, mutation: Callable[[Tx], T]) -> T:
        """Run a mutation, or a read inside one, in a separate transaction."""
        return await self._store.submit(self._permit, mutation)

    async def create_token(
        self,
        *,
        user: str,
        name: str,
        secret_hash: bytes,
        trust: TokenTrust,
        root_id: int | None,
        second_user_id: int = 0,
        require: Callable[[Tx], None] = lambda _: None,
    ) -> Token:
        """Create a token with which the task acts for a user. It lives as long as the task renews its lease, and no
        longer than the token with which the user requested the work (`root_id`). Raises the errors of `require`.
        """

        def create(tx: Tx) -> Token:
            require(tx)
            tx.tokens.forget_ended(user)
            return tx.tokens.create(
                user=user,
                name=name,
                secret_hash=secret_hash,
                trust=trust,
                root_id=root_id,
                opened_by=root_id,
                expires_at=tx.tokens.limit_expiry(tx.now_ms + TOKEN_MS, opened_by=root_id),
                purpose=TokenPurpose.WORK,
                second_user_id=second_user_id,
            )

        token = await self.submit(create)
        self._tokens[token.id] = token.expires_at or 0
        return token

    async def end_token(self, token: Token) -> None:
        """Revoke a token of the task."""
        self._tokens.pop(token.id, None)
        await self.submit(lambda tx: tx.tokens.revoke(token))

    async def run_in_thread(self, call: Callable[[Heartbeat], T]) -> T:
        """Run a call in a separate thread, and renew the task's lease while the call makes progress.

        Raises ServiceUnavailable if it makes no progress for the time of a lease; the thread is then abandoned. A
        cancellation stops the call at its next heartbeat.
        """
        far, stopped = 0, threading.Event()

        def beat(count: int) -> None:
            nonlocal far
            far = count
            if stopped.is_set():
                raise InterruptedError("the node is stopping, or lost this task: another node continues it")

        work = asyncio.create_task(run_in_own_thread(lambda: call(beat)))
        silent, last = 0, -1
        try:
            while not (await asyncio.wait({work}, timeout=self._lease_ms / 3000))[0]:
                silent, last = (silent + 1, last) if far == last else (0, far)
                if silent >= 3:
                    raise ServiceUnavailable("Its storage does not answer: the task will be retried")
                await self._keep(str(far))
            return work.result()
        finally:
            stopped.set()
            work.cancel()

    @property
    def lease_ms(self) -> int:
        """The duration of the task's lease, in milliseconds. It is renewed three times in that time."""
        return self._lease_ms

    async def await_with_lease(
        self, call: Coroutine[None, None, T], *, renew: Callable[[Tx], None] = lambda _: None
    ) -> T:
        """Await work that may take longer than the task's lease, and renew the lease until the work ends.

        Leases are short, so that other nodes soon take over from a dead node. `renew` renews other leases in the same
        transaction; an error that it raises cancels the work.
        """
        work = asyncio.create_task(call)
        try:
            while True:
                await self._keep("", renew=renew)
                if (await asyncio.wait({work}, timeout=self._lease_ms / 3000))[0]:
                    return work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _keep(self, progress: str, *, renew: Callable[[Tx], None] = lambda _: None) -> None:
        tokens = dict(self._tokens)  # the mutation may run in another thread

        def keep(tx: Tx) -> dict[int, int]:
            renew(tx)
            tx.tasks.progress(self.task_id, progress, lease_ms=self._lease_ms)
            ends_at = tx.now_ms + TOKEN_MS
            ending = [each for each, at in tokens.items() if at < ends_at - TOKEN_MS // 2]
            return {token_id: ends_at for token_id in ending if tx.tokens.extend(token_id, expires_at=ends_at)}

        extended = await self.submit(keep)
        self._on_renewal()
        self._tokens.update({token_id: at for token_id, at in extended.items() if token_id in self._tokens})
