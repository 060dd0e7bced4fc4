# SPDX-License-Identifier: Apache-2.0
"""The budget of request bodies: the bytes that requests in progress hold are bounded, for each caller and in all, and
are returned when a request ends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from traceback import walk_tb

import pytest

from limnos.http.body_budget import BodyBudget, BodyShare
from limnos.http.request import Request
from limnos.model.errors import ServiceUnavailable
from limnos.services.request.concurrency.loop_turns import Caller
from tests.http.driver import DriverNode

MIB = 1 << 20
ANA: Caller = ("user", "ana")


def share(budget: BodyBudget, caller: Caller = ANA) -> BodyShare:
    """Return the share of a request of a caller."""
    return BodyShare(budget, lambda: caller)


def test_third_long_body_of_a_caller_is_refused() -> None:
    """A caller's third long body is refused with the time to wait; another caller's is not."""
    budget = BodyBudget(10 * MIB)
    first, second, third = (share(budget) for _ in range(3))
    first.take(10 * MIB)
    second.take(10 * MIB)

    with pytest.raises(ServiceUnavailable, match="Your requests") as refused:
        third.take(1)
    assert refused.value.retry_after_s == 2
    share(budget, ("user", "bob")).take(10 * MIB)


def test_bodies_of_all_callers_have_a_common_maximum() -> None:
    """Bodies of different callers have a common maximum."""
    budget = BodyBudget(10 * MIB)
    for number in range(4):
        share(budget, ("address", f"10.0.0.{number}")).take(10 * MIB)

    with pytest.raises(ServiceUnavailable, match="on this server"):
        share(budget).take(1)
    assert budget.held_bytes == 40 * MIB


def test_only_body_in_progress_has_no_other_limit_than_its_own() -> None:
    """A route may allow longer bodies than the settings do. The next body waits."""
    budget = BodyBudget(MIB)
    alone, other = share(budget), share(budget)
    for _ in range(6):
        alone.take(MIB)

    with pytest.raises(ServiceUnavailable):
        other.take(1)
    assert budget.held_bytes == 6 * MIB


def test_ended_request_returns_its_bytes() -> None:
    """After requests have ended, also after refusals, nothing is held and callers are forgotten."""
    budget = BodyBudget(10 * MIB)
    shares = [share(budget) for _ in range(3)]
    for each in shares[:2]:
        each.take(10 * MIB)
    with pytest.raises(ServiceUnavailable):
        shares[2].take(1)

    for each in (*shares, *shares):
        each.release()

    assert budget.held_bytes == 0
    assert not budget.bytes_by_caller


def test_body_in_chunks_is_counted_as_it_arrives() -> None:
    """A body of chunks takes its bytes one chunk after the other, and the chunk above the maximum is refused."""
    budget = BodyBudget(4 * MIB)
    share(budget).take(5 * MIB)
    request = _request(chunks=4, size=MIB)
    request.body_share = share(budget)

    with pytest.raises(ServiceUnavailable):
        asyncio.run(request.body())

    assert budget.held_bytes == 8 * MIB
    request.body_share.release()
    assert budget.held_bytes == 5 * MIB


def test_refused_body_is_freed_at_once() -> None:
    """The error of a refused body, which the request keeps, holds no bytes of it."""
    budget = BodyBudget(4 * MIB)
    share(budget).take(5 * MIB)
    request = _request(chunks=6, size=MIB)
    request.body_share = share(budget)

    with pytest.raises(ServiceUnavailable) as refused:
        asyncio.run(request.body())

    frames = [frame.f_locals for frame, _ in walk_tb(refused.value.__traceback__)]
    assert [bytes(each["received"]) for each in frames if "received" in each] == [b"", b""]


def test_chunks_of_a_body_are_joined_in_order() -> None:
    """A body of chunks is their concatenation, and is read once."""
    request = _request(chunks=3, size=5)

    assert asyncio.run(request.body()) == b"000001111122222"
    assert asyncio.run(request.body()) == b"000001111122222"


def _request(*, chunks: int, size: int) -> Request:
    """Return a request whose body arrives in chunks."""
    numbers = iter(range(chunks))

    async def receive() -> MutableMapping[str, object]:
        number = next(numbers)
        return {"type": "http.request", "body": str(number).encode() * size, "more_body": number < chunks - 1}

    return Request(
        method="POST",
        path=b"/",
        params=(),
        headers={},
        query_string=b"",
        body=receive,
        request_id="r",
        body_bytes_max=8 * MIB,
        peer="10.0.0.1",
        started=0.0,
    )


def test_bodies_of_many_requests_stay_below_the_maximum(node: DriverNode) -> None:
    """Of many long bodies that one user sends at the same time, the server never holds more than the maximum; it
    refuses some with 503 in the protocol's form, and holds nothing afterwards.
    """
    application = node.built.application
    application.bodies = BodyBudget(MIB)
    highest = 0

    async def send() -> tuple[int, dict[bytes, bytes], bytes]:
        nonlocal highest
        left = 12

        async def receive() -> MutableMapping[str, object]:
            nonlocal left, highest
            await asyncio.sleep(0)
            highest = max(highest, application.bodies.held_bytes)
            left -= 1
            return {"type": "http.request", "body": b" " * 65_536, "more_body": left > 0}

        headers = {b"authorization": b"Basic YWRtaW46eA==", b"transfer-encoding": b"chunked"}
        path = b"/iceberg/v1/lake.main/namespaces/a/tables"
        status, sent, body = await application.respond("POST", path, b"", headers, receive, request_id="r")
        assert isinstance(body, bytes)
        return status, dict(sent), body

    async def story() -> list[tuple[int, dict[bytes, bytes], bytes]]:
        return await asyncio.gather(*(send() for _ in range(12)))

    answers = node.runner.run(story())

    refused = [(sent, json.loads(body)) for status, sent, body in answers if status == 503]
    assert 0 < len(refused) < 12
    assert {status for status, _, _ in answers} == {400, 503}
    assert refused[0][0][b"retry-after"] == b"2"
    assert refused[0][1]["error"]["code"] == 503
    assert MIB < highest <= 2 * MIB
    assert application.bodies.held_bytes == 0
