# SPDX-License-Identifier: Apache-2.0
"""Running requests of the query service: long requests are visible to all nodes, and abandoned ones are ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from limnos.model.principals import Requester
from limnos.rooms.sqlpp.services.requests.running_requests import (
    BEAT_S,
    KNOWN_AFTER_S,
    LEASE_MS,
    REQUESTS,
    RequestEnded,
    RunningRequest,
    RunningRequests,
)
from tests.backends import StoreLab
from tests.inprocess import Node

ANA, BOB = Requester("ana", 1), Requester("bob", 2)
LONG_S = 60.0


async def never() -> AsyncIterator[bytes]:
    """Return an iterator of lines that never arrive."""
    await asyncio.Event().wait()
    yield b""


def here(lab: StoreLab) -> RunningRequests:
    """Return the requests of a separate node over the store, which polls only when a test calls it."""
    requests = REQUESTS.of(Node(lab.open()).services)
    requests.every_s, requests.reach_s = 3600.0, 0.0
    return requests


def start_request(
    requests: RunningRequests, *, requester: Requester = ANA, ago_s: float = 0.0, **more: object
) -> RunningRequest:
    """Return a request of ana that began some time ago."""
    at = requests.store.time.now_ms()
    request = RunningRequest(
        request_id="r", requester=requester, client_context_id="c", text="select 1", now_ms=at, **more
    )  # type: ignore[arg-type]
    request.began -= ago_s
    requests.add(request)
    return request


async def ends(request: RunningRequest) -> RequestEnded:
    """Return the outcome of a request without results."""
    with pytest.raises(RequestEnded) as error:
        async for _ in request.batches(never(), timeout_s=LONG_S):
            pass
    return error.value


def test_short_requests_write_nothing(lab: StoreLab) -> None:
    """Only requests that take more than a second have a row, which is deleted at their end."""

    async def story() -> list[int]:
        requests = here(lab)
        start_request(requests)
        counts = []
        for step in (requests.look(), None, requests.look()):
            if step is None:
                long = start_request(requests, ago_s=KNOWN_AFTER_S)
                continue
            await step
            counts.append(rows(lab))
        await requests.remove(long)
        counts.append(rows(lab))
        await requests.close()
        return counts

    assert lab.run(story()) == [0, 1, 0]


def rows(lab: StoreLab) -> int:
    """Return the number of requests in the store."""
    row_count: int = lab.database.sql("SELECT count(*) FROM sqlpp_request")[0][0]
    return row_count


def test_request_can_be_cancelled_from_another_node(lab: StoreLab) -> None:
    """A request can be cancelled from another node by its own user, or by a caller who may cancel all requests."""

    async def story() -> tuple[list[list[str]], bool]:
        one, other = here(lab), here(lab)
        request = start_request(one, ago_s=KNOWN_AFTER_S)
        cancelled_ids = [await other.cancel("request_id", "r", requester=ANA, everybody=False)]
        await one.look()
        cancelled_ids.append(await other.cancel("request_id", "r", requester=BOB, everybody=False))
        assert [each.request_id for each in await other.everywhere(ANA, everybody=False)] == ["r"]
        assert await other.everywhere(BOB, everybody=False) == []
        cancelled_ids.append(await other.cancel("request_id", "r", requester=BOB, everybody=True))
        await one.look()
        outcome = await ends(request)
        await one.close()
        await other.close()
        return cancelled_ids, outcome.late

    assert lab.run(story()) == ([[], [], ["r"]], False)


def test_local_request_is_cancelled_without_a_stored_row(lab: StoreLab) -> None:
    """A request on this node is cancelled even if the store has no row of it."""

    async def story() -> tuple[list[str], str]:
        requests = here(lab)
        request = start_request(requests)
        cancelled_ids = await requests.cancel("client_context_id", "c", requester=ANA, everybody=False)
        outcome = await ends(request)
        await requests.close()
        return cancelled_ids, str(outcome)

    assert lab.run(story()) == (["r"], "ASX0041: The request was cancelled")


@pytest.mark.parametrize("by,identifier", [("request_id", "r"), ("client_context_id", "c"), ("handle", "")])
def test_other_user_cannot_cancel_a_local_request(lab: StoreLab, by: str, identifier: str) -> None:
    """Another user cannot cancel a request by its id, its client's id or its handle; a service admin can by each of
    them.
    """

    async def story() -> tuple[list[list[str]], list[str]]:
        requests = here(lab)
        request = start_request(requests)
        named = identifier or request.handle
        cancelled_ids = [await requests.cancel(by, named, requester=BOB, everybody=False)]
        seen = [each.request_id for each in await requests.everywhere(BOB, everybody=False)]
        cancelled_ids.append(await requests.cancel(by, named, requester=BOB, everybody=True))
        await ends(request)
        await requests.close()
        return cancelled_ids, seen

    assert lab.run(story()) == ([[], ["r"]], [])


@pytest.mark.parametrize("size,lines", [(1, 65_536), (30_000, 3), (65_535, 2), (200_000, 1)])
def test_result_batches_are_limited_by_size(lab: StoreLab, size: int, lines: int) -> None:
    """A batch ends with the line that reaches the size limit, which may be its first line."""

    async def generate_lines() -> AsyncIterator[bytes]:
        for _ in range(2 * lines + 1):
            yield b"x" * size

    async def story() -> list[int]:
        requests = here(lab)
        request = start_request(requests)
        batch_sizes = [len(batch) async for batch in request.batches(generate_lines(), timeout_s=LONG_S)]
        await requests.close()
        return batch_sizes

    assert lab.run(story()) == [lines, lines, 1]


def test_request_cancelled_in_the_store_ends_at_the_next_poll(lab: StoreLab) -> None:
    """Requests that were cancelled in the store end at the next poll. Others continue."""
    left: set[str] = set()

    async def story() -> tuple[str, bool]:
        requests = here(lab)
        abandoned_request = start_request(requests, is_gone=lambda: "it" in left)
        stays = start_request(requests)
        await requests.look()
        left.add("it")
        await requests.look()
        outcome = await ends(abandoned_request)
        goes_on = asyncio.create_task(ends(stays))
        await asyncio.sleep(0)
        is_done = goes_on.done()
        await requests.close()
        await goes_on
        return str(outcome), is_done

    assert lab.run(story()) == ("ASX0041: Its client has disconnected", False)


def test_stopped_node_ends_its_requests_with_the_reason(lab: StoreLab) -> None:
    """When a node stops, its requests end with an error that has the reason."""

    async def story() -> str:
        requests = here(lab)
        request = start_request(requests)
        await requests.close()
        return str(await ends(request))

    assert lab.run(story()) == "ASX0041: The server was stopped: run it again"


def test_lease_is_renewed_after_at_most_a_third_of_its_time() -> None:
    """The lease of a statement's request survives two missed heartbeats."""
    assert BEAT_S * 1000 * 3 <= LEASE_MS
