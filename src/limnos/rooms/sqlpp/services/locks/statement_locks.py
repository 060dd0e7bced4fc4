# SPDX-License-Identifier: Apache-2.0
"""Statement locks on this node: request, wait, hold and release.

The mutations of `services.sqlpp.locks.lock_mutations` decide which locks are granted.

Costs: a free lock takes one transaction, and its release another. Waiting writes nothing. While statements wait on this
node, one poll serves all of them: a statement ten times a second on PostgreSQL, and on an SQLite file only after a
commit. While locks are held or waited for, one transaction every five seconds renews this node's lease. When a node has
not renewed it for `LEASE_MS`, a waiting node releases its locks, and `tx.locks.require` refuses writes under their
tokens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

from limnos.model.errors import LockLost, LockTimeout, ServiceUnavailable
from limnos.model.permits import upkeep_permit
from limnos.model.statement_locks import LockKey, LockMode, LockRequest, LockRow, contains, secret_of
from limnos.rooms.sqlpp.language.locks import conflicting_modes_error, lock_requests_of, released_locks_error
from limnos.rooms.sqlpp.services.locks.lock_mutations import (
    lock_downgrade,
    lock_release,
    lock_request,
    lock_reset,
    lock_upgrade,
    lock_withdraw,
    locks_beat,
    locks_drop_dead,
)
from limnos.services.request.concurrency.background_loops import BackgroundLoops
from limnos.services.request.concurrency.lease_holders import new_holder
from limnos.services.request.node_services import ComponentKey
from limnos.store.activity.sqlpp_locks import competing_locks_query, lock_status_query
from limnos.store.interface import Store
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter, Gauge
from limnos.view.freshness_gate import FreshnessGate

T = TypeVar("T")
log = get_logger("limnos.locks")
LEASE_MS: Final = 15_000
EVERY_S: Final = 0.1
EVERY_INLINE_S: Final = 0.01
"""The interval of checks that only read some bytes of memory, in seconds."""
DEAD_EVERY_S: Final = 1.0
"""The interval in seconds at which leases are checked for expiry while nothing is committed."""
REQUESTS_MAX: Final = 2_000
"""The maximum number of statements on this node that hold or wait for locks."""
WISHES_MAX: Final = 1_000
REQUESTS = Counter(
    "limnos_lock_requests_total", "Requests of statements for locks on this node, by outcome.", ("outcome",)
)
WAITING = Gauge("limnos_lock_waiting", "Requests for locks that wait on this node.", ())


class _LockRequest:
    """A lock request on this node.

    The mutation that writes the request sets its token, so that it is known before the commit.
    """

    __slots__ = ("changed", "lost", "token", "waits")

    def __init__(self) -> None:
        self.token = 0
        self.waits = False
        self.lost = False
        self.changed = asyncio.Event()


class HeldLocks:
    """Locks that a statement holds. The statement's mutations pass `token` to `tx.locks.require`."""

    def __init__(self, locks: StatementLocks, claim: _LockRequest, *, lock_requests: tuple[LockRequest, ...]) -> None:
        self._locks = locks
        self._claim = claim
        self._modes = dict(lock_requests)
        self._released = False

    @property
    def token(self) -> int:
        """The fencing token: greater than the tokens of earlier requests that held one of the locks in a conflicting
        mode.
        """
        return self._claim.token

    @property
    def token_text(self) -> str:
        """The text of the lock token with a secret, by which a commit over HTTP proves that it holds this lock."""
        return f"{self.token}.{secret_of(self._locks.holder, self.token)}"

    @property
    def is_lost(self) -> bool:
        """Whether other nodes considered this node dead and released the lock, so that the statement cannot succeed."""
        return self._claim.lost

    def check(self, wanted_lock: LockRequest) -> None:
        """Check that a lock is held, by the state that this node has read.

        Raises SqlppError (ASX1039, ASX1049) if it is not held, LockLost if other nodes released it, ValueError if it
        was not requested.
        """
        if self._released:
            raise released_locks_error()
        if self.is_lost:
            raise LockLost(f"The statement doesn't hold its lock on {wanted_lock.key} any more: run it again")
        mode = self._modes.get(wanted_lock.key)
        if mode is None:
            raise ValueError(f"{wanted_lock.key} is not one of the requested keys")
        if not contains(mode, wanted_lock.mode):
            raise conflicting_modes_error(wanted_lock.mode, mode)

    async def upgrade(self, key: LockKey, timeout_s: float) -> None:
        """Upgrade EXCLUSIVE_MODIFY to UPGRADED_WRITE once the last reader has released its lock.

        Raises SqlppError (ASX1039, ASX1045, ASX1047), LockTimeout, LockLost, ServiceUnavailable (a deadlock); the lock
        is then unchanged.
        """
        if self._released:
            raise released_locks_error()
        await self._locks.upgrade(self._claim, key, timeout_s=timeout_s)
        self._modes[key] = LockMode.UPGRADED_WRITE

    async def downgrade(self, key: LockKey) -> None:
        """Downgrade the lock, which admits readers again. Raises SqlppError (ASX1039, ASX1046, ASX1048)."""
        if self._released:
            raise released_locks_error()
        await self._locks.pass_on(partial(lock_downgrade, token=self.token, key=key))
        self._modes[key] = LockMode.EXCLUSIVE_MODIFY

    async def release(self) -> None:
        """Release all locks. Idempotent."""
        if not self._released:
            self._released = True
            await self._locks.release(self._claim)


class StatementLocks:
    """The locks of the statements on this node."""

    def __init__(
        self, gate: FreshnessGate, store: Store, *, lease_ms: int = LEASE_MS, loops: BackgroundLoops | None = None
    ) -> None:
        self._loops = BackgroundLoops() if loops is None else loops
        self.gate = gate
        self.store = store
        self.lease_ms = lease_ms
        self.holder = new_holder()
        self.looks = 0
        self._permit = upkeep_permit("limnos")
        self._claims: set[_LockRequest] = set()
        self._has_stray_requests = False
        """Whether the store may have rows of locks that no statement here holds."""
        self._moment: bytes | None = None
        self._looked_at = 0.0
        self._looking_task: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._releasing: set[asyncio.Task[None]] = set()

    async def are_free(self, lock_requests: Iterable[LockRequest]) -> bool:
        """Return whether no other statement holds or requests these locks now.

        Sufficient for a short transaction that can safely fail.
        """
        for wanted_lock in lock_requests:
            if await self.gate.find(competing_locks_query(wanted_lock)):
                return False
        return True

    @asynccontextmanager
    async def hold(self, lock_requests: Iterable[LockRequest], timeout_s: float) -> AsyncIterator[HeldLocks]:
        """Hold locks for the body of the `with`. All are granted together, in the order of requests.

        A holder must not request further locks. Raises SqlppError (ASX1049), LockTimeout, LockLost or
        ServiceUnavailable; no lock is then held.
        """
        locks = await self.acquire(lock_requests, timeout_s)
        try:
            yield locks
        finally:
            await locks.release()

    async def acquire(self, lock_requests: Iterable[LockRequest], timeout_s: float) -> HeldLocks:
        """Acquire locks, which the caller must release. Raises as `held`; ServiceUnavailable also for too many locks,
        or too many statements with locks on this node.
        """
        request = lock_requests_of(lock_requests)
        if not 0 < len(request) <= WISHES_MAX:
            raise ServiceUnavailable(f"A statement can have 1 to {WISHES_MAX} locks, not {len(request)}: divide it")
        if len(self._claims) >= REQUESTS_MAX:
            raise ServiceUnavailable(
                "Too many statements are running on this node: try again, or ask another node", retry_after_s=5
            )
        claim = _LockRequest()
        self._claims.add(claim)
        try:
            await self._acquire(claim, request, timeout_s=timeout_s)
        except BaseException:
            self._has_stray_requests = True  # the request may be in the store in spite of the error
            if claim in self._claims:
                await self.release(claim)
            raise
        return HeldLocks(self, claim, lock_requests=request)

    async def _acquire(self, claim: _LockRequest, lock_requests: tuple[LockRequest, ...], *, timeout_s: float) -> None:
        if self._beating is None:
            self._beating = asyncio.create_task(self._renew_lease())

        def request(tx: Tx) -> bool:
            claim.token, is_granted = lock_request(tx, self.holder, lock_requests=lock_requests, lease_ms=self.lease_ms)
            return is_granted

        began = time.monotonic()
        if await self._submit(request):
            REQUESTS["at-once",] += 1
        elif await self._wait(claim, timeout_s - (time.monotonic() - began)):
            REQUESTS["waited",] += 1
        else:
            REQUESTS["timeout",] += 1
            raise _lock_timeout_error(await self._withdraw(claim), lock_requests[0].key, timeout_s=timeout_s)

    async def _withdraw(self, claim: _LockRequest) -> LockRow | None:
        """Withdraw a request that timed out. Returns the lock that blocked it."""
        row, passed = await self._submit(partial(lock_withdraw, token=claim.token))
        # Not before: after a cancellation during the withdrawal the locks must still be released.
        self._claims.discard(claim)
        self._wake(passed)
        return row

    async def upgrade(self, claim: _LockRequest, key: LockKey, *, timeout_s: float) -> None:
        """Wait for the upgrade of a held lock; on failure the lock is unchanged.

        Raises LockTimeout, LockLost, and as `lock_upgrade`.
        """
        token = claim.token
        is_had = False
        try:
            is_had = await self._submit(partial(lock_upgrade, token=token, key=key)) or await self._wait(
                claim, timeout_s
            )
            if not is_had:
                raise _lock_timeout_error(None, key, timeout_s=timeout_s)
        except BaseException:
            await self._run_shielded(self.pass_on(partial(lock_reset, token=token, key=key)))
            raise

    async def pass_on(self, mutation: Callable[[Tx], list[int]]) -> None:
        """Run a mutation that may grant locks to other requests, and wake their statements on this node."""
        self._wake(await self._submit(mutation))

    async def release(self, claim: _LockRequest) -> None:
        """Release the locks of a request.

        If the store cannot be reached, they are released later, or when this node's lease expires.
        """
        self._claims.discard(claim)
        await self._run_shielded(self._release(claim))

    async def _release(self, claim: _LockRequest) -> None:
        def mutation(tx: Tx) -> list[int]:
            # Read the token here, not before: a request still in the queue sets it before this runs, or never runs.
            return lock_release(tx, claim.token) if claim.token else []

        try:
            await self.pass_on(mutation)
        except Exception as error:  # noqa: BLE001 - the loop that renews the lease tries again
            self._has_stray_requests = True
            log.warning("locks could not be released yet", error=str(error))

    async def _run_shielded(self, work: Coroutine[None, None, None]) -> None:
        """Run a coroutine to its end even if the waiting caller is cancelled."""
        task = asyncio.create_task(work)
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)
        await asyncio.shield(task)

    async def _submit(self, mutation: Callable[[Tx], T]) -> T:
        return await self.store.submit(self._permit, mutation)

    # -- waiting -------------------------------------------------------------------------------------------------

    async def _wait(self, claim: _LockRequest, seconds: float) -> bool:
        """Wait until a request is granted. Returns False after the timeout.

        Raises LockLost if other nodes considered this node dead and released its locks.
        """
        claim.waits = True
        claim.changed.clear()
        self._moment = None  # something may have been committed since the last check
        if self._looking_task is None:
            self._looking_task = asyncio.create_task(self._poll_while_waiting())
        self._count()
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await claim.changed.wait()
        except TimeoutError:
            if not claim.changed.is_set():
                return False
        finally:
            claim.waits = False
            self._count()
        if claim.lost:
            raise LockLost(
                "This node did not renew its locks in time, and the statement lost them; nothing was changed: try again"
            )
        return True

    def _count(self) -> None:
        WAITING[()] = sum(claim.waits for claim in self._claims)

    async def _poll_while_waiting(self) -> None:
        """Poll the store for granted locks while statements wait."""
        every_s = EVERY_INLINE_S if self.store.inline else EVERY_S
        loop = self._loops.add("waiting for statement locks", every_s=every_s, retry_s_max=DEAD_EVERY_S)
        try:
            while any(claim.waits for claim in self._claims):
                await loop.attempt(self._poll)
                await asyncio.sleep(loop.pause_s)
        finally:
            loop.reset()
            self._looking_task = None

    async def _poll(self) -> None:
        """Poll the store once for all waiting statements, and release the locks of dead nodes."""
        waiting = [claim for claim in self._claims if claim.waits]
        moment = self.store.moment() if self.store.inline else None  # type: ignore[union-attr]
        now = time.monotonic()
        if moment is not None and moment == self._moment and now - self._looked_at < DEAD_EVERY_S:
            return
        self._moment, self._looked_at = moment, now
        self.looks += 1
        rows = await self.gate.find(lock_status_query(self.holder, now_ms=self.store.time.now_ms()))
        lock_tokens: dict[int, int] = dict(rows)
        for claim in waiting:
            if not lock_tokens.get(claim.token):
                claim.lost = claim.token not in lock_tokens
                claim.changed.set()
        if lock_tokens.get(0):
            await self.pass_on(partial(locks_drop_dead, holder=self.holder))

    def _wake(self, tokens: Iterable[int]) -> None:
        """Wake the waiting statements of this node that were granted locks."""
        granted = set(tokens)
        for claim in self._claims:
            if claim.waits and claim.token in granted:
                claim.changed.set()

    # -- lease ---------------------------------------------------------------------------------------------------

    async def _renew_lease(self) -> None:
        """Renew this node's lease periodically while it holds or waits for locks, or has lock rows left to release."""
        every_s = self.lease_ms / 3000
        loop = self._loops.add("statement locks", every_s=every_s, retry_s_max=every_s)
        try:
            while True:
                await asyncio.sleep(loop.pause_s)
                if not (self._claims or self._has_stray_requests):
                    return
                await loop.attempt(self._beat)
        finally:
            loop.reset()
            self._beating = None

    async def _beat(self) -> None:
        def mutation(tx: Tx) -> tuple[set[int], set[int], list[int]]:
            known = {claim.token for claim in tuple(self._claims)}  # read here: later requests must not count as known
            return known, *locks_beat(tx, self.holder, known=known, lease_ms=self.lease_ms)

        self._has_stray_requests = False
        try:
            tokens, lock_tokens, passed = await self._submit(mutation)
        except BaseException:
            self._has_stray_requests = True
            raise
        for claim in self._claims:
            if claim.token in tokens - lock_tokens - {0}:
                claim.lost = True
                claim.changed.set()
        self._wake(passed)

    async def close(self) -> None:
        """Wait for the releases in progress, and cancel the background tasks that poll for locks and renew leases."""
        await asyncio.gather(*self._releasing, return_exceptions=True)
        tasks = [task for task in (self._looking_task, self._beating) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _lock_timeout_error(row: LockRow | None, key: LockKey, *, timeout_s: float) -> LockTimeout:
    """Return the error for a lock that was not granted in time; `row` is the lock or the older request that blocked it,
    None if unknown.
    """
    if row is None:
        return LockTimeout(f"The lock on {key} was not granted within {timeout_s:g} s; nothing was changed: try again")
    if row.mode is None:
        how = f"another statement waits for it ({row.wanted.name}) and comes first"
    else:
        how = f"another statement holds it ({row.mode.name})"
    return LockTimeout(
        f"The lock on {row.key} was not granted within {timeout_s:g} s: {how}. Nothing was changed: try again"
    )


LOCKS: ComponentKey[StatementLocks] = ComponentKey(
    "locks", lambda services: StatementLocks(services.gate, services.store, loops=services.loops)
)
