# SPDX-License-Identifier: Apache-2.0
"""Group commits: writers that start at different moments share commits, and no writer waits in vain for others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.store.backends.mutation_queue import BATCHES, BlockingThread, MutationQueue
from limnos.store.backends.sqlite import SqliteStore
from tests.backends import StoreLab, sqlite_copy
from tests.store.test_clock import move_access, touch

WRITERS, ROUNDS = 4, 12
COMMIT_S, RETURN_S, PAUSE_S = 0.012, 0.002, 0.006
"""Durations of a commit, of a caller's way to the next request, and of the pause between commits: far apart, for slow
machines.
"""


@pytest.fixture
def lab(sqlite_template: Path, tmp_path: Path) -> Iterator[StoreLab]:
    """A lab on an SQLite file."""
    store_lab = StoreLab(sqlite_copy(sqlite_template, tmp_path))
    yield store_lab
    store_lab.close()


def commits_of_two_parties(lab: StoreLab, patch: pytest.MonkeyPatch) -> float:
    """Let two groups of writers write continuously, the second starting in the middle of the first one's commit.
    Returns the number of commits.
    """
    store = lab.store
    assert isinstance(store, SqliteStore)
    patch.setattr(MutationQueue, "pause_s", PAUSE_S)
    real = store._commit_now

    def slow() -> None:
        time.sleep(COMMIT_S)  # in the store's thread, like the delay of a disk
        real()

    patch.setattr(store, "_commit_now", slow)
    permit = lab.permit(0)

    async def writer() -> None:
        for _ in range(ROUNDS):
            await store.submit(permit, touch)
            await asyncio.sleep(RETURN_S)

    async def both() -> None:
        first = [asyncio.create_task(writer()) for _ in range(WRITERS)]
        await asyncio.sleep(COMMIT_S / 2)
        await asyncio.gather(*first, *(writer() for _ in range(WRITERS)))

    before = BATCHES[()]
    lab.run(both())
    return BATCHES[()] - before


def test_alternating_writers_soon_share_every_commit(lab: StoreLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """After one or two commits all writers share every commit. Without the pause the two groups alternate to the
    end.
    """
    together = commits_of_two_parties(lab, monkeypatch)

    async def at_once(_self: MutationQueue) -> None:
        return

    monkeypatch.setattr(MutationQueue, "wait_for_returning_callers", at_once)
    by_turns = commits_of_two_parties(lab, monkeypatch)

    assert together <= ROUNDS + 5
    assert by_turns >= 2 * ROUNDS - 4


def test_batch_after_a_refused_one_follows_without_a_pause(lab: StoreLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a mutation of the batch was refused because access moved, the next batch follows without a pause."""
    paused: list[int] = []
    real = MutationQueue.wait_for_returning_callers

    async def counted(self: MutationQueue) -> None:
        paused.append(len(self))
        await real(self)

    monkeypatch.setattr(MutationQueue, "wait_for_returning_callers", counted)
    store, permit = lab.store, lab.permit(0)

    async def main() -> list[object]:
        writes = (store.submit(permit, move_access), store.submit(permit, touch))
        return await asyncio.gather(*writes, return_exceptions=True)

    first, second = lab.run(main())

    assert first == 1
    assert isinstance(second, Exception)  # its permit is stale
    assert paused == [0]  # after the second batch, when no caller was left


@pytest.fixture
def thread() -> Iterator[BlockingThread]:
    """A thread that is stopped at the end of the test."""
    blocking_thread = BlockingThread("waits")
    yield blocking_thread
    blocking_thread.close()


def test_calls_run_in_order_in_the_thread(thread: BlockingThread) -> None:
    """Each call runs after the previous one, and none in the event loop's thread."""
    ran: list[tuple[int, str]] = []

    async def main() -> None:
        await asyncio.gather(
            *(thread.run(lambda i=i: ran.append((i, threading.current_thread().name))) for i in range(20))
        )

    asyncio.run(main())

    assert ran == [(i, "waits") for i in range(20)]


def test_exception_reaches_the_caller_and_the_thread_continues(thread: BlockingThread) -> None:
    """An exception of a call is raised in its caller, and the next call runs."""

    async def main() -> list[BaseException | None]:
        failing = thread.run(lambda: {}["absent"])
        return await asyncio.gather(failing, thread.run(lambda: None), return_exceptions=True)

    failed, done = asyncio.run(main())

    assert isinstance(failed, KeyError)
    assert done is None


def test_cancelled_call_runs_to_its_end(thread: BlockingThread) -> None:
    """A call whose caller was cancelled runs to its end and does not affect the others."""
    entered, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        entered.set()
        go_on.wait(10)
        done.set()

    async def main() -> None:
        waiter = thread.run(call)
        await asyncio.to_thread(entered.wait, 10)
        waiter.cancel()
        go_on.set()
        await thread.run(lambda: None)

    asyncio.run(main())

    assert done.is_set()


def test_close_waits_for_submitted_calls() -> None:
    """A close runs after all calls that were submitted before it."""
    thread = BlockingThread("waits")
    ran: list[int] = []

    async def main() -> None:
        for i in range(5):
            thread.run(lambda i=i: ran.append(i))
        thread.close()
        await asyncio.sleep(0)

    asyncio.run(main())

    assert ran == [0, 1, 2, 3, 4]
