# SPDX-License-Identifier: Apache-2.0
"""Locks of statements on two nodes with one store: waiting, releasing, expiry of a node's lease, and concurrency."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from limnos.model.errors import LockLost, LockTimeout, ServiceUnavailable, StateUnknown
from limnos.model.permits import upkeep_permit
from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest
from limnos.names.dataverse import DataverseName
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.locks import are_compatible
from limnos.rooms.sqlpp.services.locks import statement_locks as sqlpp_locking
from limnos.rooms.sqlpp.services.locks.lock_mutations import lock_request
from limnos.rooms.sqlpp.services.locks.statement_locks import LOCKS, HeldLocks, StatementLocks
from tests.backends import StoreLab
from tests.inprocess import Node

WORKLOADS = int(os.environ.get("LIMNOS_TEST_LOCKS", "15"))
READ, MODIFY, BUILD = LockMode.READ, LockMode.MODIFY, LockMode.INDEX_BUILD
EXCLUSIVE, UPGRADED, WRITE = LockMode.EXCLUSIVE_MODIFY, LockMode.UPGRADED_WRITE, LockMode.WRITE
LONG_S = 60.0
"""Longer than anything takes here: whoever waits this long waits forever."""


def key(name: str) -> LockKey:
    """Return a dataset's key."""
    return LockKey(7, LockKind.DATASET, DataverseName.create(("sales", "east")), name)


A, B = key("a"), key("b")


def wanted_lock(of: LockKey, mode: LockMode) -> list[LockRequest]:
    """Return one lock request."""
    return [LockRequest(of, mode)]


def nodes(lab: StoreLab) -> tuple[StatementLocks, StatementLocks]:
    """The locks of two nodes."""
    return LOCKS.of(Node(lab.store).services), LOCKS.of(Node(lab.open()).services)


def rows(lab: StoreLab) -> int:
    """Return the number of rows of locks."""
    row_count: int = lab.database.sql("SELECT count(*) FROM sqlpp_lock")[0][0]
    return row_count


async def is_asked(lab: StoreLab, count: int) -> None:
    """Wait until this number of locks is held or requested."""
    async with asyncio.timeout(LONG_S):
        while rows(lab) < count:  # noqa: ASYNC110 - the rows have no event for it
            await asyncio.sleep(0.005)


async def end_lease(lab: StoreLab, locks: StatementLocks) -> None:
    """Let a node's lease expire."""
    await lab.store.submit(upkeep_permit("tester"), lambda tx: tx.locks.renew_lease(locks.holder, lease_ms=-1))


def test_released_lock_has_no_row(lab: StoreLab) -> None:
    """A held lock has a token that mutations can check. Its release leaves no row."""
    locks, _ = nodes(lab)

    async def story() -> HeldLocks:
        async with locks.hold([LockRequest(A, WRITE), LockRequest(B, READ)], LONG_S) as held_locks:
            await lab.store.submit(
                upkeep_permit("tester"), lambda tx: tx.locks.require(held_locks.token, LockRequest(A, WRITE))
            )
            held_locks.check(LockRequest(B, READ))
        return held_locks

    held_locks = lab.run(story())

    assert rows(lab) == 0
    with pytest.raises(LockLost):
        lab.write(lambda tx: tx.locks.require(held_locks.token))


@pytest.mark.parametrize("is_other_node", [False, True])
def test_release_wakes_a_waiting_statement(lab: StoreLab, *, is_other_node: bool) -> None:
    """A waiting statement of either node continues when the lock is released, with a greater token."""
    one, other = nodes(lab)
    second = other if is_other_node else one

    async def story() -> tuple[int, int]:
        first = await one.acquire(wanted_lock(A, WRITE), LONG_S)
        waiting = asyncio.create_task(second.acquire(wanted_lock(A, WRITE), LONG_S))
        await is_asked(lab, 2)
        assert not waiting.done()
        await first.release()
        held_locks = await asyncio.wait_for(waiting, LONG_S)
        await held_locks.release()
        return first.token, held_locks.token

    first, then = lab.run(story())

    assert first < then
    assert rows(lab) == 0


def test_lock_timeout_names_the_lock_and_mode(lab: StoreLab) -> None:
    """A lock timeout names the lock and its mode, and leaves no request. Unrelated locks stay free."""
    one, other = nodes(lab)

    async def story() -> str:
        async with one.hold(wanted_lock(A, READ), LONG_S):
            with pytest.raises(LockTimeout) as error:
                await other.acquire([LockRequest(A, WRITE), LockRequest(B, WRITE)], 0.0)
            async with one.hold(wanted_lock(B, WRITE), LONG_S):
                return str(error.value)

    assert lab.run(story()) == (
        "The lock on dataset sales.east.a was not granted within 0 s: another statement holds it (READ). Nothing was"
        " changed: try again"
    )
    assert rows(lab) == 0


def test_cancelled_wait_deletes_its_lock_request(lab: StoreLab) -> None:
    """A statement that is cancelled while it waits leaves no request and blocks no other statement."""
    one, other = nodes(lab)

    async def story() -> None:
        async with one.hold(wanted_lock(A, READ), LONG_S):
            waiting = asyncio.create_task(other.acquire(wanted_lock(A, WRITE), LONG_S))
            await is_asked(lab, 2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            async with one.hold(wanted_lock(A, READ), LONG_S):
                pass

    lab.run(story())

    assert rows(lab) == 0


@pytest.mark.parametrize("turns", range(6))
def test_cancel_before_confirmation_deletes_the_lock_request(lab: StoreLab, turns: int) -> None:
    """A statement that is cancelled before its request is known to be stored leaves no request and blocks no other
    statement.
    """
    one, other = nodes(lab)

    async def story() -> None:
        async with other.hold(wanted_lock(A, READ), LONG_S):
            asking = asyncio.create_task(one.acquire(wanted_lock(A, WRITE), LONG_S))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            async with one.hold(wanted_lock(A, READ), LONG_S):
                pass

    lab.run(story())

    assert rows(lab) == 0


def test_failing_statement_releases_its_locks(lab: StoreLab) -> None:
    """An exception in the body is raised, and the lock is released."""
    one, _ = nodes(lab)

    async def story() -> None:
        async with one.hold(wanted_lock(A, WRITE), LONG_S):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        lab.run(story())
    assert rows(lab) == 0


def test_upgrade_waits_for_readers(lab: StoreLab) -> None:
    """EXCLUSIVE_MODIFY is upgraded to UPGRADED_WRITE when the readers have released their locks. Readers are admitted
    after the downgrade.
    """
    one, other = nodes(lab)

    async def story() -> None:
        reader = await other.acquire(wanted_lock(A, READ), LONG_S)
        async with one.hold(wanted_lock(A, EXCLUSIVE), LONG_S) as held_locks:
            with pytest.raises(LockTimeout):
                await held_locks.upgrade(A, 0.0)
            upgrading = asyncio.create_task(held_locks.upgrade(A, LONG_S))
            await asyncio.sleep(0)
            await reader.release()
            await asyncio.wait_for(upgrading, LONG_S)
            held_locks.check(LockRequest(A, WRITE))
            waiting = asyncio.create_task(other.acquire(wanted_lock(A, READ), LONG_S))
            await is_asked(lab, 2)
            assert not waiting.done()
            await held_locks.downgrade(A)
            await (await asyncio.wait_for(waiting, LONG_S)).release()

    lab.run(story())

    assert rows(lab) == 0


def test_invalid_lock_operations_have_asterixdb_codes(lab: StoreLab) -> None:
    """Invalid lock operations have AsterixDB's codes: 1039 after a release, 1045 and 1046 for upgrades and downgrades,
    1049 for locks that are not held.
    """
    one, _ = nodes(lab)

    async def code(work: Coroutine[Any, Any, None]) -> str:
        with pytest.raises(SqlppError) as error:
            await work
        return error.value.code

    async def check(held_locks: HeldLocks, mode: LockMode) -> None:
        held_locks.check(LockRequest(A, mode))

    async def story() -> list[str]:
        held_locks = await one.acquire(wanted_lock(A, MODIFY), LONG_S)
        codes = [
            await code(held_locks.upgrade(A, LONG_S)),
            await code(held_locks.downgrade(A)),
            await code(held_locks.upgrade(B, LONG_S)),
            await code(held_locks.downgrade(B)),
            await code(check(held_locks, BUILD)),
        ]
        await held_locks.release()
        await held_locks.release()
        return [
            *codes,
            await code(held_locks.upgrade(A, 1)),
            await code(held_locks.downgrade(A)),
            await code(check(held_locks, READ)),
        ]

    assert lab.run(story()) == [f"ASX10{number}" for number in (45, 46, 47, 48, 49, 39, 39, 39)]


def test_expired_node_lease_frees_locks_and_voids_the_token(lab: StoreLab) -> None:
    """After a lease expires, waiting statements get the lock, and writes under the old token are refused."""
    one, other = nodes(lab)

    async def story() -> tuple[HeldLocks, HeldLocks]:
        zombie = await one.acquire(wanted_lock(A, WRITE), LONG_S)
        waiting = asyncio.create_task(other.acquire(wanted_lock(A, WRITE), LONG_S))
        await is_asked(lab, 2)
        await end_lease(lab, one)
        held_locks = await asyncio.wait_for(waiting, LONG_S)
        with pytest.raises(LockLost):
            await lab.store.submit(upkeep_permit("tester"), lambda tx: tx.locks.require(zombie.token))
        await one._beat()
        return zombie, held_locks

    zombie, held_locks = lab.run(story())

    assert zombie.is_lost
    assert not held_locks.is_lost
    with pytest.raises(LockLost, match="run it again"):
        zombie.check(LockRequest(A, READ))


def test_waiting_statement_ends_when_its_node_loses_its_lease(lab: StoreLab) -> None:
    """A waiting statement of a node that has lost its lease does not wait forever."""
    one, other = nodes(lab)

    async def story() -> None:
        async with other.hold(wanted_lock(A, WRITE), LONG_S):
            waiting = asyncio.create_task(one.acquire(wanted_lock(A, WRITE), LONG_S))
            await is_asked(lab, 2)
            await end_lease(lab, one)
            await other._beat()
            with pytest.raises(LockLost, match="try again"):
                await asyncio.wait_for(waiting, LONG_S)

    lab.run(story())


def test_heartbeat_keeps_the_nodes_locks(lab: StoreLab) -> None:
    """A timely heartbeat keeps the node's locks. A late heartbeat keeps them if no other statement has taken them."""
    one, other = nodes(lab)

    async def story() -> None:
        async with one.hold(wanted_lock(A, WRITE), LONG_S) as held_locks:
            await end_lease(lab, one)
            await one._beat()
            await other._beat()
            await lab.store.submit(upkeep_permit("tester"), lambda tx: tx.locks.require(held_locks.token))

    lab.run(story())


def test_heartbeat_releases_locks_that_no_statement_has(lab: StoreLab) -> None:
    """A heartbeat releases locks of its node whose statement has ended, and grants them to those who wait. Locks of the
    node's own statements and of other nodes stay.
    """
    one, other = nodes(lab)

    async def story() -> None:
        await lab.store.submit(
            upkeep_permit("tester"),
            lambda tx: lock_request(tx, one.holder, lock_requests=wanted_lock(A, WRITE), lease_ms=60_000),
        )
        async with one.hold(wanted_lock(B, WRITE), LONG_S), other.hold(wanted_lock(key("c"), WRITE), LONG_S):
            waiting = asyncio.create_task(other.acquire(wanted_lock(A, WRITE), LONG_S))
            await is_asked(lab, 4)
            await one._beat()
            assert rows(lab) == 3
            await (await asyncio.wait_for(waiting, LONG_S)).release()
            assert rows(lab) == 2

    lab.run(story())

    assert rows(lab) == 0


@pytest.mark.parametrize("done", [False, True])
def test_heartbeat_resolves_unknown_lock_outcomes(lab: StoreLab, *, done: bool) -> None:
    """If the outcome of a lock request or release is unknown, the next heartbeat restores a consistent state."""
    one, other = nodes(lab)
    submit = lab.store.submit

    async def lost(*args: Any, **named: Any) -> None:  # noqa: ANN401 - the store's own
        if done:
            await submit(*args, **named)
        raise StateUnknown("the answer was lost")

    async def story() -> None:
        held_locks = await one.acquire(wanted_lock(B, WRITE), LONG_S)
        lab.store.submit = lost  # type: ignore[method-assign, assignment]
        with pytest.raises(StateUnknown):
            await one.acquire(wanted_lock(A, WRITE), LONG_S)
        await held_locks.release()
        lab.store.submit = submit  # type: ignore[method-assign]
        await one._beat()
        async with other.hold([LockRequest(A, WRITE), LockRequest(B, WRITE)], LONG_S):
            pass

    lab.run(story())

    assert rows(lab) == 0


def test_check_for_free_locks_takes_no_lock(lab: StoreLab) -> None:
    """A check for free locks reports unused keys, and shared ones for readers, and takes no lock."""
    one, other = nodes(lab)

    async def story() -> list[bool]:
        async with one.hold([LockRequest(A, READ), LockRequest(B, MODIFY)], LONG_S):
            lock_requests = [(A, READ), (A, WRITE), (B, READ), (key("c"), WRITE)]
            return [
                await other.are_free([LockRequest(key("d"), READ), LockRequest(of, mode)]) for of, mode in lock_requests
            ]

    assert lab.run(story()) == [True, False, False, True]
    assert rows(lab) == 0


def test_waiting_statements_share_few_queries(file_lab: StoreLab) -> None:
    """On SQLite many waiting statements share a few queries, and no query runs while nothing is committed."""
    one, other = nodes(file_lab)

    async def story() -> int:
        async with one.hold(wanted_lock(A, WRITE), LONG_S):
            crowd = [asyncio.create_task(other.acquire(wanted_lock(A, READ), LONG_S)) for _ in range(100)]
            await is_asked(file_lab, 101)
            await asyncio.sleep(0.1)
            before = other.looks
            await asyncio.sleep(20 * sqlpp_locking.EVERY_INLINE_S)
            quiet = other.looks - before
        for each in await asyncio.gather(*crowd):
            await each.release()
        return quiet

    assert file_lab.run(story()) <= 1


def test_too_many_waiting_statements_or_locks_are_refused(lab: StoreLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many waiting statements, or too many locks of one statement, are refused with advice."""
    one, _ = nodes(lab)
    monkeypatch.setattr(sqlpp_locking, "REQUESTS_MAX", 1)
    monkeypatch.setattr(sqlpp_locking, "WISHES_MAX", 1)

    async def story() -> None:
        async with one.hold(wanted_lock(A, READ), LONG_S):
            with pytest.raises(ServiceUnavailable, match="Too many statements"):
                await one.acquire(wanted_lock(A, READ), LONG_S)
        with pytest.raises(ServiceUnavailable, match="divide it"):
            await one.acquire([LockRequest(A, READ), LockRequest(B, READ)], LONG_S)

    lab.run(story())


# -- concurrency ---------------------------------------------------------------------------------------------------


@dataclass
class Oracle:
    """The held locks, as the statements themselves report them."""

    held: dict[int, dict[LockKey, LockMode]] = field(default_factory=dict)
    waited: int = 0

    def enter(self, token: int, lock_requests: dict[LockKey, LockMode]) -> None:
        """Record that a statement holds locks. Fails if another statement holds conflicting locks, or if a token is
        repeated.
        """
        assert token not in self.held
        for other in self.held.values():
            for of, mode in lock_requests.items():
                assert of not in other or are_compatible(mode, other[of]), (of, mode, other[of])
        self.held[token] = lock_requests

    def leave(self, token: int) -> None:
        """Record that a statement released or lost its locks."""
        del self.held[token]


class Workload:
    """Random statements on two nodes: they wait, upgrade, fail and are cancelled, and one node may crash."""

    def __init__(self, lab: StoreLab, pair: tuple[StatementLocks, StatementLocks], seed: int) -> None:
        self.lab = lab
        self.chance = random.Random(seed)
        self.pair = pair
        self.oracle = Oracle()
        self.keys = [key(f"{seed}-{number}") for number in range(self.chance.randint(1, 3))]

    async def run(self) -> None:
        """Run all statements to their end. Fails if one waits forever."""
        dying = LOCKS.of(Node(self.lab.store).services) if self.chance.random() < 0.3 else None
        async with asyncio.timeout(LONG_S), asyncio.TaskGroup() as group:
            if dying is not None:
                group.create_task(self.die(dying))
            for number in range(self.chance.randint(2, 7)):
                group.create_task(self.statement(self.pair[number % 2]))
        assert not self.oracle.held

    def lock_requests(self) -> dict[LockKey, LockMode]:
        """Return the lock requests of a statement."""
        keys = self.chance.sample(self.keys, self.chance.randint(1, len(self.keys)))
        return {of: self.chance.choice([READ, READ, MODIFY, BUILD, EXCLUSIVE, EXCLUSIVE, WRITE]) for of in keys}

    async def statement(self, locks: StatementLocks) -> None:
        """Hold the locks for some turns, with a possible upgrade or cancellation."""
        lock_requests, patience = self.lock_requests(), self.chance.choice([LONG_S] * 9 + [0.0])
        for _ in range(self.chance.randint(0, 3)):
            await asyncio.sleep(0)
        try:
            held_locks = await locks.acquire([LockRequest(*each) for each in lock_requests.items()], patience)
        except LockTimeout:
            assert patience == 0
            return
        self.oracle.enter(held_locks.token, lock_requests)
        try:
            await self.work(held_locks, lock_requests)
        finally:
            self.oracle.leave(held_locks.token)
            await held_locks.release()

    async def work(self, held_locks: HeldLocks, lock_requests: dict[LockKey, LockMode]) -> None:
        """Wait some time, possibly with an upgrade."""
        for of in [of for of, mode in lock_requests.items() if mode is EXCLUSIVE and self.chance.random() < 0.5]:
            try:
                await held_locks.upgrade(of, LONG_S)
            except LockTimeout:
                raise
            except ServiceUnavailable:  # it would wait for its own lock
                continue
            self.oracle.leave(held_locks.token)
            self.oracle.enter(held_locks.token, lock_requests | {of: UPGRADED})
            await asyncio.sleep(0)
            lock_requests[of] = EXCLUSIVE
            self.oracle.leave(held_locks.token)
            self.oracle.enter(held_locks.token, lock_requests)
            await held_locks.downgrade(of)
        await asyncio.sleep(self.chance.choice([0, 0, 0.001]))

    async def die(self, locks: StatementLocks) -> None:
        """Take locks, and send no further heartbeats."""
        lock_requests = self.lock_requests()
        held_locks = await locks.acquire([LockRequest(*each) for each in lock_requests.items()], LONG_S)
        self.oracle.enter(held_locks.token, lock_requests)
        await locks.close()
        await asyncio.sleep(self.chance.choice([0, 0.002]))
        self.oracle.leave(held_locks.token)
        await end_lease(self.lab, locks)


def test_random_workloads_of_two_nodes_never_conflict_or_hang(lab: StoreLab) -> None:
    """In random concurrent workloads, conflicting locks are never held at the same time, no statement waits forever,
    and no row remains.
    """
    pair = nodes(lab)

    async def story() -> None:
        for seed in range(WORKLOADS):
            await Workload(lab, pair, seed).run()
        for locks in pair:
            await locks.close()

    lab.run(story())
    lab.run(pair[0]._beat())  # takes the locks of the last dead node, if no statement waited for them

    assert rows(lab) == 0
