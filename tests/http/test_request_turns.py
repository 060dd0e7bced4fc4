# SPDX-License-Identifier: Apache-2.0
"""Turns of requests on the event loop: every protocol takes them, and health probes never wait."""

from __future__ import annotations

import json

import pytest

from limnos.services.request.concurrency.loop_turns import FREE_S, TURNS, LoopTurns
from tests.http.driver import API, OWN, DriverNode
from tests.installed import has_room

ASKS = {
    "iceberg": ("GET", "/iceberg/v1/lake.main/namespaces", None),
    "gravitino": ("GET", f"{API}/lake/catalogs", None),
    "lance": ("GET", "/lance/v1/namespace/main/list", None),
    "admin": ("GET", f"{OWN}/metalakes/lake/search?q=t", None),
    "asterix": ("POST", "/query/service", {"statement": "SELECT VALUE 1"}),
}
"""A request of each protocol."""
ROOMS = {"gravitino": "gravitino", "lance": "lance", "asterix": "sqlpp", "admin": "search"}
"""The rooms of these requests."""
SERVED = [each for each in ASKS if each not in ROOMS or has_room(ROOMS[each])]
PROBES = ("/health", "/health/live", "/health/ready", "/api/health", "/api/health/ready")


@pytest.fixture
def dear(node: DriverNode) -> DriverNode:
    """A node on which every step costs more than the free time, and nobody may wait."""
    clock = iter(range(1_000_000))
    node.built.application.turns.loop_turns = LoopTurns(now=lambda: next(clock) * 2 * FREE_S, waiting_max=0)
    return node


@pytest.mark.parametrize("protocol", SERVED)
def test_caller_with_too_many_waiting_requests_is_refused_in_the_protocols_form(
    dear: DriverNode, protocol: str
) -> None:
    """The second expensive request of a caller who may have none waiting is 503 with Retry-After, in the protocol's
    form; another caller's first one is not refused.
    """
    method, path, body = ASKS[protocol]
    first = dear.ask(method, path, body)
    second = dear.ask(method, path, body)
    other = dear.ask(method, path, body, user="nobody")

    assert first.status == 200, first.body
    assert second.status == 503
    assert second.headers["retry-after"] == "2"
    assert "requests are waiting" in json.dumps(second.json())
    assert other.status != 503


@pytest.mark.parametrize("path", PROBES)
def test_health_probes_take_no_turns(dear: DriverNode, path: str) -> None:
    """Probes are answered without a turn, whatever earlier ones cost."""
    before = TURNS["refused",], TURNS["given",]

    assert [dear.get(path, user=None).status for _ in range(3)] == [200, 200, 200]
    assert (TURNS["refused",], TURNS["given",]) == before


def test_requests_of_every_step_are_answered_in_turns(node: DriverNode) -> None:
    """Requests of which each step needs a turn have the same answers as others."""
    asks = [node.ask(*ASKS[protocol]).body for protocol in SERVED]
    clock = iter(range(1_000_000))
    node.built.application.turns.loop_turns = LoopTurns(now=lambda: next(clock) * 2 * FREE_S)
    before = TURNS["given",]

    again = [node.ask(*ASKS[protocol]) for protocol in SERVED]

    assert [each.status for each in again] == [200] * len(SERVED)
    bodies = [each.body for each in again]
    assert [body for body, protocol in zip(bodies, SERVED, strict=True) if protocol != "asterix"] == [
        body for body, protocol in zip(asks, SERVED, strict=True) if protocol != "asterix"
    ]
    assert TURNS["given",] > before


def respond_at_once(node: DriverNode, path: str) -> tuple[int, bool]:
    """Begin a request outside of a task, as a connection does. Returns the status, and whether it had to wait."""
    application, headers = node.built.application, {b"authorization": b"Basic YWRtaW46eA=="}

    async def serve() -> tuple[int, bool]:
        work = application.respond("GET", path.encode(), b"", headers, b"", request_id="id", at_once=True)
        try:
            waits_for = work.send(None)
        except StopIteration as ended:
            return ended.value[0], False
        rest, _ = application.resume_response(work, waits_for, method="GET", raw=path.encode())
        return (await rest)[0], True

    return node.runner.run(serve())


@pytest.mark.parametrize(
    "path, operation",
    [
        ("/iceberg/v1/lake.main/namespaces", ("iceberg", "list-namespaces")),
        (f"{OWN}/metalakes/lake/audit", ("admin", "list-audit")),
    ],
)
def test_request_that_is_begun_at_once_is_recorded(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, path: str, operation: tuple[str, str]
) -> None:
    """A request that is begun outside of a task takes turns: above the free time, the caller's next one begins with
    one, whether it was answered in one step or had to wait.
    """
    monkeypatch.setattr("limnos.http.request_turns.SHORT_S", 0.0)
    monkeypatch.setattr("limnos.services.request.concurrency.loop_turns.FREE_S", 1e-9)

    status, has_waited = respond_at_once(node, path)

    assert (status, has_waited) == (200, operation[0] == "admin")
    assert list(node.built.application.turns.loop_turns.dear) == [(("user", "admin"), operation)]
