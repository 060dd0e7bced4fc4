"""Locks as a statement has them: asked for, waited for, held and given back on this node.

May import `sqlpp`, `store`, `telemetry` and the rooms below. Who is granted what is decided by the mutations of `sqlpp_locks`.

What it costs: a lock that is free takes one transaction, and another one when it is given back. Who waits writes nothing. While
somebody waits here, one look for all of them: a statement ten times a second on PostgreSQL, on an SQLite file only when something
was committed. While something is held or waited for, one transaction every five seconds says that this node lives. When it has said
nothing for `LEASE_MS`, whoever waits takes its locks; what it still writes under their tokens is refused by `tx.locks.require`.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import uuid4

from limnos.model.errors import LimnosError, LockLost, LockTimeout, ServiceUnavailable
from limnos.model.permits import upkeep_permit
from limnos.services.request.node_services import ComponentKey
from limnos.services.sqlpp.lock_mutations import (
    lock_downgrade,
    lock_lessen,
    lock_release,
    lock_request,
    lock_upgrade,
    lock_withdraw,
    locks_beat,
    locks_drop_dead,
)
from limnos.sqlpp.locks import (
    LockMode,
    LockRequest,
    conflicting_modes_error,
    contains,
    released_locks_error,
    secret_of,
    wishes_of,
)
from limnos.store.sqlpp_locks import competing_locks_query, lock_status_query
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter, Gauge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable

    from limnos.sqlpp.locks import LockKey, LockRow
    from limnos.store.interface import Store
    from limnos.store.tx import Tx
    from limnos.view.freshness_gate import FreshnessGate

T = TypeVar("T")
log = get_logger("limnos.locks")
LEASE_MS: Final = 15_000
EVERY_S: Final = 0.1
EVERY_INLINE_S: Final = 0.01
"""Where a look is at some bytes of memory."""
DEAD_EVERY_S: Final = 1.0
"""So often it is looked whether a lease is out where nothing is committed."""
REQUESTS_MAX: Final = 2_000
"""Statements that hold locks or wait for them on this node."""
WISHES_MAX: Final = 1_000
REQUESTS = Counter(
    "limnos_lock_requests_total", "Requests of statements for locks on this node, by outcome.", ("outcome",)
)
WAITING = Gauge("limnos_lock_waiting", "Requests for locks that wait on this node.", ())


class _LockRequest:
    """A request on this node. The mutation that writes it notes its token, so that it is known before it is committed."""

    __slots__ = ("changed", "lost", "token", "waits")

    def __init__(self) -> None:
        self.token = 0
        self.waits = False
        self.lost = False
        self.changed = asyncio.Event()


class HeldLocks:
    """Locks that a statement holds. `token` is what its mutations show to `tx.locks.require`."""

    def __init__(self, locks: StatementLocks, claim: _LockRequest, *, wishes: tuple[LockRequest, ...]) -> None:
        self._locks = locks
        self._claim = claim
        self._modes = dict(wishes)
        self._released = False

    @property
    def token(self) -> int:
        """The request's number: greater than that of whoever held one of its locks before, in a way that excludes this one."""
        return self._claim.token

    @property
    def shown(self) -> str:
        """What a commit over the wire shows to rest on this lock: as good as the lock, so it is told to nobody else."""
        return f"{self.token}.{secret_of(self._locks.holder, self.token)}"

    @property
    def is_lost(self) -> bool:
        """Whether this node was taken for dead: what the statement does is in vain."""
        return self._claim.lost

    def check(self, wish: LockRequest) -> None:
        """Make sure that a wish is covered, as far as this node knows. Raises SqlppError (ASX1039, ASX1049), LockLost."""
        if self._released:
            raise released_locks_error()
        if self.is_lost:
            raise LockLost(f"The statement doesn't hold its lock on {wish.key} any more: run it again")
        held = self._modes.get(wish.key)
        if held is None:
            raise ValueError(f"{wish.key} is none of the keys that were asked for")
        if not contains(held, wish.mode):
            raise conflicting_modes_error(wish.mode, held)

    async def upgrade(self, key: LockKey, timeout_s: float) -> None:
        """Have EXCLUSIVE_MODIFY become UPGRADED_WRITE when the last reader has gone.

        Raises SqlppError (ASX1039, ASX1045, ASX1047), LockTimeout, LockLost, ServiceUnavailable (it would wait for itself); the lock is then
        what it was.
        """
        if self._released:
            raise released_locks_error()
        await self._locks.upgrade(self._claim, key, timeout_s=timeout_s)
        self._modes[key] = LockMode.UPGRADED_WRITE

    async def downgrade(self, key: LockKey) -> None:
        """Let readers in again. Raises SqlppError (ASX1039, ASX1046, ASX1048)."""
        if self._released:
            raise released_locks_error()
        await self._locks.pass_on(partial(lock_downgrade, token=self.token, key=key))
        self._modes[key] = LockMode.EXCLUSIVE_MODIFY

    async def release(self) -> None:
        """Give everything back; once more is nothing."""
        if not self._released:
            self._released = True
            await self._locks.release(self._claim)


class StatementLocks:
    """The locks of this node's statements."""

    def __init__(self, gate: FreshnessGate, store: Store, *, lease_ms: int = LEASE_MS) -> None:
        self.gate = gate
        self.store = store
        self.lease_ms = lease_ms
        self.holder = uuid4().hex
        self.looks = 0
        self._permit = upkeep_permit("limnos")
        self._claims: set[_LockRequest] = set()
        self._untidy = False
        """Whether something may be in the store that nobody here knows of."""
        self._moment: bytes | None = None
        self._looked_at = 0.0
        self._read_connection: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._releasing: set[asyncio.Task[None]] = set()

    async def are_free(self, wishes: Iterable[LockRequest]) -> bool:
        """Say whether nobody is in the way of wishes just now: for what is one short transaction, and goes wrong cleanly if beaten."""
        for wish in wishes:
            if await self.gate.find(competing_locks_query(wish)):
                return False
        return True

    @asynccontextmanager
    async def held(self, wishes: Iterable[LockRequest], timeout_s: float) -> AsyncIterator[HeldLocks]:
        """Hold locks for the time of a `with` body: all at once, in the order of requests. Who holds some asks for no others.

        Raises SqlppError (ASX1049), LockTimeout (nothing is held), ServiceUnavailable.
        """
        held = await self.acquire(wishes, timeout_s)
        try:
            yield held
        finally:
            await held.release()

    async def acquire(self, wishes: Iterable[LockRequest], timeout_s: float) -> HeldLocks:
        """Hold locks until they are released."""
        asked = wishes_of(wishes)
        if not 0 < len(asked) <= WISHES_MAX:
            raise ServiceUnavailable(f"A statement can have 1 to {WISHES_MAX} locks, not {len(asked)}: do it in parts")
        if len(self._claims) >= REQUESTS_MAX:
            raise ServiceUnavailable(
                "Too many statements are at work here: try again, or another node", retry_after_s=5
            )
        claim = _LockRequest()
        self._claims.add(claim)
        try:
            await self._acquire(claim, asked, timeout_s=timeout_s)
        except BaseException:
            self._untidy = True  # perhaps it is written after all
            if claim in self._claims:
                await self.release(claim)
            raise
        return HeldLocks(self, claim, wishes=asked)

    async def _acquire(self, claim: _LockRequest, wishes: tuple[LockRequest, ...], *, timeout_s: float) -> None:
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat_on())

        def request(tx: Tx) -> bool:
            claim.token, is_granted = lock_request(tx, self.holder, wishes=wishes, lease_ms=self.lease_ms)
            return is_granted

        began = time.monotonic()
        if await self._submit(request):
            REQUESTS["at-once",] += 1
        elif await self._wait(claim, timeout_s - (time.monotonic() - began)):
            REQUESTS["waited",] += 1
        else:
            REQUESTS["timeout",] += 1
            raise _lock_timeout_error(await self._withdraw(claim), wishes[0].key, timeout_s=timeout_s)

    async def _withdraw(self, claim: _LockRequest) -> LockRow | None:
        """Take back a request that waited too long; says what was in its way."""
        found, passed = await self._submit(partial(lock_withdraw, token=claim.token))
        self._claims.discard(claim)  # only now: who is cancelled on the way still has something to give back
        self._tell(passed)
        return found

    async def upgrade(self, claim: _LockRequest, key: LockKey, *, timeout_s: float) -> None:
        """Wait for more of a lock that a claim holds; what is not had is as before."""
        token = claim.token
        is_had = False
        try:
            is_had = await self._submit(partial(lock_upgrade, token=token, key=key)) or await self._wait(
                claim, timeout_s
            )
            if not is_had:
                raise _lock_timeout_error(None, key, timeout_s=timeout_s)
        except BaseException:
            await self._shielded(self.pass_on(partial(lock_lessen, token=token, key=key)))
            raise

    async def pass_on(self, mutation: Callable[[Tx], list[int]]) -> None:
        """Carry out what may let others on, and tell them."""
        self._tell(await self._submit(mutation))

    async def release(self, claim: _LockRequest) -> None:
        """Give a claim's locks back. Where the store can't be reached it is done later, or by the end of this node's lease."""
        self._claims.discard(claim)
        await self._shielded(self._release(claim))

    async def _release(self, claim: _LockRequest) -> None:
        def mutation(tx: Tx) -> list[int]:
            # Read now: where the request was given up on its way, it has run before this, or never will.
            return lock_release(tx, claim.token) if claim.token else []

        try:
            await self.pass_on(mutation)
        except LimnosError as error:
            self._untidy = True
            log.warning("locks could not be given back yet", error=str(error))

    async def _shielded(self, work: Coroutine[None, None, None]) -> None:
        """Finish something, also when whoever waits for it is cancelled."""
        task = asyncio.create_task(work)
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)
        await asyncio.shield(task)

    async def _submit(self, mutation: Callable[[Tx], T]) -> T:
        return await self.store.submit(self._permit, mutation)

    # -- waiting -------------------------------------------------------------------------------------------------

    async def _wait(self, claim: _LockRequest, seconds: float) -> bool:
        """Wait until a claim is granted; False when it was not in time. Raises LockLost."""
        claim.waits = True
        claim.changed.clear()
        self._moment = None  # something may have been committed since
        if self._read_connection is None:
            self._read_connection = asyncio.create_task(self._look_on())
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
                "This node was taken for dead, and the statement lost its locks; nothing was changed: try again"
            )
        return True

    def _count(self) -> None:
        WAITING[()] = sum(claim.waits for claim in self._claims)

    async def _look_on(self) -> None:
        """Look whether something was granted as long as somebody waits."""
        try:
            while any(claim.waits for claim in self._claims):
                try:
                    await self._look()
                except LimnosError as error:
                    log.warning("locks could not be looked at", error=str(error))
                await asyncio.sleep(EVERY_INLINE_S if self.store.inline else EVERY_S)
        finally:
            self._read_connection = None

    async def _look(self) -> None:
        """One look for all who wait now; takes the locks of the dead."""
        waiting = [claim for claim in self._claims if claim.waits]
        moment = self.store.moment() if self.store.inline else None  # type: ignore[union-attr]
        now = time.monotonic()
        if moment is not None and moment == self._moment and now - self._looked_at < DEAD_EVERY_S:
            return
        self._moment, self._looked_at = moment, now
        self.looks += 1
        rows = await self.gate.find(lock_status_query(self.holder, now_ms=self.store.time.now_ms()))
        standing: dict[int, int] = dict(rows)
        for claim in waiting:
            if not standing.get(claim.token):
                claim.lost = claim.token not in standing
                claim.changed.set()
        if standing.get(0):
            await self.pass_on(partial(locks_drop_dead, holder=self.holder))

    def _tell(self, tokens: Iterable[int]) -> None:
        """Wake those of this node that were granted something."""
        granted = set(tokens)
        for claim in self._claims:
            if claim.waits and claim.token in granted:
                claim.changed.set()

    # -- being alive ---------------------------------------------------------------------------------------------

    async def _beat_on(self) -> None:
        """Say that this node lives as long as it holds something or waits, or left something behind."""
        try:
            while True:
                await asyncio.sleep(self.lease_ms / 3000)
                if not (self._claims or self._untidy):
                    return
                try:
                    await self._beat()
                except LimnosError as error:
                    log.warning("the locks of this node could not be kept", error=str(error))
        finally:
            self._beating = None

    async def _beat(self) -> None:
        def mutation(tx: Tx) -> tuple[set[int], set[int], list[int]]:
            known = {claim.token for claim in tuple(self._claims)}  # now: of what comes later nothing is said
            return known, *locks_beat(tx, self.holder, known=known, lease_ms=self.lease_ms)

        self._untidy = False
        try:
            known, standing, passed = await self._submit(mutation)
        except BaseException:
            self._untidy = True
            raise
        for claim in self._claims:
            if claim.token in known - standing - {0}:
                claim.lost = True
                claim.changed.set()
        self._tell(passed)

    async def close(self) -> None:
        """End what is under way beside statements."""
        await asyncio.gather(*self._releasing, return_exceptions=True)
        tasks = [task for task in (self._read_connection, self._beating) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _lock_timeout_error(row: LockRow | None, key: LockKey, *, timeout_s: float) -> LockTimeout:
    """Say what was waited for in vain."""
    if row is None:
        return LockTimeout(f"The lock on {key} was not to be had in {timeout_s:g} s; nothing was changed: try again")
    if row.mode is None:
        how = f"another statement waits for it ({row.wanted.name}) and comes first"
    else:
        how = f"another statement holds it ({row.mode.name})"
    return LockTimeout(
        f"The lock on {row.key} was not to be had in {timeout_s:g} s: {how}. Nothing was changed: try again"
    )


LOCKS: ComponentKey[StatementLocks] = ComponentKey(
    "locks", lambda services: StatementLocks(services.gate, services.store)
)
