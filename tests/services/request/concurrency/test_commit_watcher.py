# SPDX-License-Identifier: Apache-2.0
"""Waiting for commits: one query for all waiting callers, and none while nothing is committed."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.services.catalog.namespaces import namespace_create
from limnos.services.request.concurrency import commit_watcher as watching
from limnos.services.request.concurrency.commit_watcher import CommitWatcher
from tests.backends import StoreLab
from tests.inprocess import MAIN, Node, fill

CROWD = 300


def zone_of(lab: StoreLab) -> int:
    """Return the zone of catalog `main`."""
    zone: int = lab.database.sql("SELECT id FROM node WHERE name = 'main'")[0][0]
    return zone


def test_commit_wakes_many_waiting_callers_with_few_queries(lab: StoreLab) -> None:
    """Hundreds of waiting callers are woken by one commit, after a few queries for all of them."""
    node = Node(lab.store)
    lab.run(fill(node.ctx()))
    zone, watch = zone_of(lab), node.services.watch

    async def story() -> int:
        crowd = [asyncio.create_task(watch.wait({zone: 0}, 60)) for _ in range(CROWD)]
        while watch.waiting < CROWD:  # noqa: ASYNC110 - the watch has no event for it
            await asyncio.sleep(0)
        looks = watch.looks
        await namespace_create(node.ctx(), MAIN, levels=("a",), properties={})
        await asyncio.wait_for(asyncio.gather(*crowd), 300)
        return watch.looks - looks

    assert lab.run(story()) < CROWD / 10
    assert watch.waiting == 0


def test_long_wait_without_commits_needs_one_query(file_lab: StoreLab) -> None:
    """On an SQLite file with a readable index, a waiting caller needs one query, however long the wait is."""
    node = Node(file_lab.store)
    file_lab.run(fill(node.ctx()))
    watch = node.services.watch

    file_lab.run(watch.wait({zone_of(file_lab): 0}, 3 * watching.EVERY_S))

    assert watch.looks == 1


def test_read_started_without_a_task_waits_until_its_timeout(lab: StoreLab) -> None:
    """A read that the fast path started without a task waits, and ends at its timeout."""
    node = Node(lab.store)
    lab.run(fill(node.ctx()))
    watch, zone = node.services.watch, zone_of(lab)
    revision = lab.clock(zone)[0]
    ends: list[bool] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def start() -> None:
            work = watch.wait({zone: revision}, 2 * watching.EVERY_S)
            future = work.send(None)
            ends.append(watch.waiting == 1)
            future.add_done_callback(lambda _: done.set_result(work))

        loop.call_soon(start)
        with pytest.raises(StopIteration):
            (await asyncio.wait_for(done, 300)).send(None)

    lab.run(story())

    assert ends == [True]
    assert watch.waiting == 0


def test_change_of_another_zone_does_not_wake_a_caller(lab: StoreLab) -> None:
    """A change of another zone does not wake a waiting caller."""
    node = Node(lab.store)
    lab.run(fill(node.ctx()))
    watch, zone = node.services.watch, zone_of(lab)
    lake = lab.database.sql("SELECT parent_id FROM node WHERE id = ?", zone)[0][0]

    async def story() -> bool:
        waiting = asyncio.create_task(watch.wait({lake: lab.clock(lake)[0]}, 60))
        await asyncio.sleep(0)
        looks = watch.looks
        await namespace_create(node.ctx(), MAIN, levels=("a",), properties={})
        while watch.looks < looks + 2:
            await asyncio.sleep(0.01)
            watch._must_read_again = True
        woken = waiting.done()
        watch.close()
        await waiting
        return woken

    assert lab.run(story()) is False


def test_commit_before_the_wait_ends_it_immediately(lab: StoreLab) -> None:
    """A commit between the caller's read and its wait ends the wait immediately."""
    node = Node(lab.store)
    lab.run(fill(node.ctx()))
    lab.run(namespace_create(node.ctx(), MAIN, levels=("a",), properties={}))

    lab.run(asyncio.wait_for(node.services.watch.wait({zone_of(lab): 0}, 600), 300))


def test_callers_beyond_the_limit_get_retry_after(lab: StoreLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers beyond the limit are refused with Retry-After, except those that are always admitted."""
    monkeypatch.setattr(watching, "WAITERS_MAX", 1)
    node = Node(lab.store)
    watch = CommitWatcher(node.gate, lab.store)

    async def story() -> None:
        first = asyncio.create_task(watch.wait({0: 0}, 60))
        await asyncio.sleep(0)
        try:
            await watch.wait({0: 0}, 0.01, always=True)
            await watch.wait({0: 0}, 60)
        finally:
            watch.close()
            await first

    with pytest.raises(ServiceUnavailable):
        lab.run(story())


@pytest.mark.parametrize("error", [ServiceUnavailable("gone"), OSError(5, "Input/output error")], ids=repr)
def test_store_failure_wakes_all_waiting_callers(
    file_lab: StoreLab, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """If the store fails, with any error, all waiting callers are woken, and their own reads raise the error."""
    node = Node(file_lab.store)

    async def fail_look_up(_: object) -> None:
        raise error

    monkeypatch.setattr(node.gate, "look_up", fail_look_up)

    file_lab.run(asyncio.wait_for(node.services.watch.wait({0: 0}, 600), 300))
