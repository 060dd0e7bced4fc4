# SPDX-License-Identifier: Apache-2.0
"""Threads for blocking calls: a stuck call delays only its own catalog."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from limnos.files import ThreadShares, run_in_own_thread
from limnos.model.errors import ServiceUnavailable


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """The event that a stuck call waits for. It is set at the end."""
    event = threading.Event()
    yield event
    event.set()


def test_results_and_exceptions_are_passed_to_caller() -> None:
    """A call's result is returned and its exception is raised, including its own timeout."""

    async def run() -> None:
        shares = ThreadShares(timeout_s=60)
        assert await shares.run("a", lambda: 7) == 7
        for error in (ValueError, TimeoutError):
            with pytest.raises(error):
                await shares.run("a", _raise(error))

    asyncio.run(run())


def _raise(error: type[Exception]):  # noqa: ANN202
    def call() -> None:
        raise error

    return call


def test_stuck_calls_block_only_their_share(stuck: threading.Event) -> None:
    """A call that exceeds its time is Unavailable. While all threads of a share are stuck, its next calls are
    Unavailable at once, and another share works.
    """

    async def run() -> None:
        shares = ThreadShares(timeout_s=0.05, threads_max=2)
        late = await asyncio.gather(*(shares.run("a", stuck.wait) for _ in range(2)), return_exceptions=True)
        shares.timeout_s = 60
        with pytest.raises(ServiceUnavailable, match="does not answer"):
            await shares.run("a", lambda: 7)

        assert [type(each) for each in late] == [ServiceUnavailable] * 2
        assert await shares.run("b", lambda: 7) == 7

    asyncio.run(run())


def test_share_recovers_when_stuck_calls_return(stuck: threading.Event) -> None:
    """When stuck calls return, their threads serve new calls."""

    async def run() -> None:
        shares = ThreadShares(timeout_s=0.05, threads_max=1)
        with pytest.raises(ServiceUnavailable):
            await shares.run("a", stuck.wait)
        shares.timeout_s = 60
        stuck.set()
        for _ in range(10_000):
            try:
                assert await shares.run("a", lambda: 7) == 7
            except ServiceUnavailable:
                await asyncio.sleep(0.001)
            else:
                return
        raise AssertionError("the share stays closed")

    asyncio.run(run())


@pytest.mark.parametrize("way", ["late", "cancelled"])
def test_effect_of_late_call_is_undone(stuck: threading.Event, way: str) -> None:
    """The effect of a call that ends after its caller has timed out or was cancelled is undone, in the call's
    thread.
    """
    undone = threading.Event()

    async def run() -> None:
        shares = ThreadShares(timeout_s=0.05 if way == "late" else 60)
        began = threading.Event()

        def call() -> None:
            began.set()
            stuck.wait()

        waiting = asyncio.create_task(shares.run("a", call, late=undone.set))
        if way == "cancelled":
            await asyncio.to_thread(began.wait)
            waiting.cancel()
        with pytest.raises((ServiceUnavailable, asyncio.CancelledError)):
            await waiting
        assert not undone.is_set()
        stuck.set()

    asyncio.run(run())

    assert undone.wait(300)


def test_effect_of_timely_call_is_not_undone() -> None:
    """The effect of a call that ends in time is not undone."""
    undone: list[int] = []

    async def run() -> None:
        await ThreadShares(timeout_s=60).run("a", lambda: None, late=lambda: undone.append(1))

    asyncio.run(run())

    assert undone == []


def test_abandoned_call_is_never_executed(stuck: threading.Event) -> None:
    """A call whose caller stopped waiting for a thread is never executed."""
    ran = threading.Event()

    async def run() -> None:
        shares = ThreadShares(timeout_s=60, threads_max=1)
        first = asyncio.create_task(shares.run("a", stuck.wait))
        await asyncio.sleep(0)
        second = asyncio.create_task(shares.run("a", ran.set))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        stuck.set()
        await first
        await shares.run("a", lambda: None)

    asyncio.run(run())

    assert not ran.is_set()


def test_stuck_threads_do_not_prevent_exit(stuck: threading.Event) -> None:
    """Stuck threads are daemon threads, so the process can end without them."""

    async def run() -> list[bool]:
        shares = ThreadShares(timeout_s=60)
        tasks = [asyncio.create_task(shares.run("a", stuck.wait)), asyncio.create_task(run_in_own_thread(stuck.wait))]
        await asyncio.sleep(0)
        flags = [thread.daemon for thread in threading.enumerate() if thread.name.startswith("limnos-")]
        for task in tasks:
            task.cancel()
        return flags

    daemon_flags = asyncio.run(run())

    assert len(daemon_flags) >= 2
    assert all(daemon_flags)
