# SPDX-License-Identifier: Apache-2.0
"""Results that are being sent: what one user's clients that do not read them may hold of a node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from limnos.rooms.sqlpp.services.requests.open_results import OPEN_RESULTS
from tests.http.driver import API, DriverAnswer, DriverNode
from tests.rooms.sqlpp.http.wire import SERVICE, status_and_message

LARGE = "select value repeat('x', 1000) from range(1, 1000) x"
SIZE = 1_000_000
Ask = Callable[..., Awaitable[DriverAnswer]]
Leave = Callable[[str, asyncio.Event], Awaitable[asyncio.Task[DriverAnswer]]]


def limit(node: DriverNode, monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    """Set limits, and add a user."""
    services = node.built.services
    monkeypatch.setattr(services, "defaults", services.defaults._replace(**limits))
    node.done("POST", f"{API}/lake/users", {"name": "ana"})


def run(node: DriverNode, story: Callable[[Ask, Leave], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with two functions: one sends a statement; the other does so with a client that stops reading,
    and returns when the result is open.
    """
    results = OPEN_RESULTS.of(node.built.services)

    async def ask(text: str, *, user: str = "admin", reads: asyncio.Event | None = None) -> DriverAnswer:
        body = {"statement": text}
        return await node.answer("POST", SERVICE, body, user=user, reads=reads, content_type="application/json")

    async def leave_open(text: str, reads: asyncio.Event) -> asyncio.Task[DriverAnswer]:
        before = results._streams["admin"]
        task = asyncio.create_task(ask(text, reads=reads))
        async with asyncio.timeout(30):
            while results._streams["admin"] == before:  # noqa: ASYNC110 - the node has no event for it
                await asyncio.sleep(0.001)
        return task

    node.runner.run(story(ask, leave_open))

    assert not results._streams
    assert not results._bytes


def test_open_results_per_user_are_limited(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a user's clients leave results unread, further large results are refused with 429 and the name of the
    limit. Small ones, and other users' results, are not. A result that was read no longer counts.
    """
    limit(node, monkeypatch, sqlpp_streams_max=1)

    async def story(ask: Ask, leave_open: Leave) -> None:
        reads = asyncio.Event()
        first = await leave_open(LARGE, reads)
        refused = await ask(LARGE)
        others = [await ask("select value 1"), await ask(LARGE, user="ana")]
        reads.set()

        assert refused.status == 429
        assert "sqlpp.streams_max" in status_and_message(refused)[1]
        assert [each.status for each in (*others, await first, await ask(LARGE))] == [200] * 4

    run(node, story)


def test_bytes_of_open_results_per_user_are_limited(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the node has a user's unread results in memory, a result with which they would exceed the limit is refused
    with 429 and the name of the limit. Other users' results are not, and a result that was read no longer counts.
    """
    limit(node, monkeypatch, sqlpp_streams_bytes_max=2 * SIZE)

    async def story(ask: Ask, leave_open: Leave) -> None:
        reads = asyncio.Event()
        first = await leave_open(LARGE, reads)
        refused = await ask(LARGE)
        other = await ask(LARGE, user="ana")
        reads.set()

        assert refused.status == 429
        assert "sqlpp.streams_bytes_max" in status_and_message(refused)[1]
        assert [each.status for each in (other, await first, await ask(LARGE))] == [200] * 3

    run(node, story)


def test_client_that_leaves_closes_its_result(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result whose client disconnects no longer counts."""
    limit(node, monkeypatch, sqlpp_streams_max=1, sqlpp_streams_bytes_max=2 * SIZE)

    async def story(ask: Ask, leave_open: Leave) -> None:
        first = await leave_open(LARGE, asyncio.Event())
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)

        assert (await ask(LARGE)).status == 200

    run(node, story)
