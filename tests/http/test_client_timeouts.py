# SPDX-License-Identifier: Apache-2.0
"""Client timeouts without a server: a connection without progress is ended after its phase's limit, an active one is
not, and one timer serves all connections.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from limnos.http.admission_protocol import AdmissionProtocol
from limnos.http.client_timeouts import (
    BODY_BYTES_PER_S,
    RESPONSE_BYTES_PER_S,
    ClientTimeouts,
    ConnectionPhase,
    ConnectionProgress,
)
from tests.clocks import run

LIMITS = {
    ConnectionPhase.IDLE: 80.0,
    ConnectionPhase.HEAD: 16.0,
    ConnectionPhase.BODY: 32.0,
    ConnectionPhase.READING_RESPONSE: 40.0,
}
SLACK_S = 2.0
"""The tolerance: a check is at most a second late, and detects progress at most a second after it."""


class Client:
    """A scripted connection that records how it ended."""

    def __init__(self, phase: ConnectionPhase = ConnectionPhase.IDLE) -> None:
        self.now = ConnectionProgress(phase, 0, 0)
        self.ended: list[tuple[ConnectionPhase, float]] = []

    def step(self) -> ConnectionProgress:
        """Return the progress of the connection."""
        return self.now

    def moves(self, **to: object) -> None:
        """Advance the progress."""
        self.now = self.now._replace(**to)  # type: ignore[arg-type]

    def overdue(self, phase: ConnectionPhase) -> None:
        """Record that the connection is overdue in a phase."""
        self.ended.append((phase, asyncio.get_running_loop().time()))


def test_each_phase_has_its_limit() -> None:
    """A connection is ended when the limit of its phase is over, and not before; without a limit, never."""

    async def story() -> dict[ConnectionPhase, list[tuple[ConnectionPhase, float]]]:
        timeouts = ClientTimeouts(LIMITS)
        clients = {phase: Client(phase) for phase in ConnectionPhase}
        for client in clients.values():
            timeouts.watch(client)
        await asyncio.sleep(100)
        return {phase: client.ended for phase, client in clients.items()}

    ended = run(story())

    assert ended[ConnectionPhase.ANSWER] == []
    for phase, limit in LIMITS.items():
        (ended_phase, at) = ended[phase][0]
        assert ended_phase is phase
        assert limit <= at <= limit + SLACK_S


def test_progress_restarts_the_timeout() -> None:
    """A step, another phase, or bytes that the client takes restart the timeout."""

    async def story() -> list[tuple[ConnectionPhase, float]]:
        timeouts, client = ClientTimeouts(LIMITS), Client(ConnectionPhase.HEAD)
        timeouts.watch(client)
        for move in (
            {"steps": 1},
            {"unsent_bytes": 500},
            {"phase": ConnectionPhase.BODY},
            {"phase": ConnectionPhase.HEAD, "steps": 2},
        ):
            await asyncio.sleep(LIMITS[ConnectionPhase.HEAD] - SLACK_S)
            client.moves(**move)
        await asyncio.sleep(LIMITS[ConnectionPhase.HEAD] - SLACK_S)
        return client.ended

    assert run(story()) == []


def test_closed_connection_is_no_longer_watched() -> None:
    """A closed connection is no longer watched. Without connections no timer runs."""

    async def story() -> tuple[list[tuple[ConnectionPhase, float]], bool]:
        timeouts, client = ClientTimeouts(LIMITS), Client(ConnectionPhase.HEAD)
        timeouts.watch(client)
        timeouts.forget(client)
        await asyncio.sleep(LIMITS[ConnectionPhase.HEAD] * 3)
        return client.ended, timeouts._is_watching

    assert run(story()) == ([], False)


def test_received_bytes_of_a_body_are_counted() -> None:
    """A connection reports the bytes of a body that have arrived."""
    connection = AdmissionProtocol.__new__(AdmissionProtocol)
    connection.cycle = SimpleNamespace(response_complete=True)  # type: ignore[assignment]

    for size in (1, 500, 4):
        connection.on_body(bytes(size))

    assert connection._body_bytes == 505


def body_ends_at(bytes_per_s: int, *, for_s: int) -> float | None:
    """Return when a connection is ended that sends a body at a rate, and then nothing; None if not while it sends."""

    async def story() -> list[tuple[ConnectionPhase, float]]:
        timeouts, client = ClientTimeouts(LIMITS), Client(ConnectionPhase.BODY)
        timeouts.watch(client)
        for _ in range(for_s):
            await asyncio.sleep(1)
            client.moves(body_bytes=client.now.body_bytes + bytes_per_s)
        return client.ended

    ended = run(story())
    return ended[0][1] if ended else None


def test_body_has_one_time_limit_and_a_minimum_rate() -> None:
    """A body that arrives at half of the rate is ended after twice the time limit; one that trickles, after the time
    limit, however long it goes on; one at the rate is not ended.
    """
    limit = LIMITS[ConnectionPhase.BODY]
    half, trickle = (body_ends_at(rate, for_s=1_000) for rate in (BODY_BYTES_PER_S // 2, 100))

    assert half is not None
    assert trickle is not None
    assert abs(half - 2 * limit) <= 2 * SLACK_S
    assert abs(trickle - limit) <= 2 * SLACK_S
    assert body_ends_at(BODY_BYTES_PER_S, for_s=1_000) is None


def reading_ends_at(bytes_per_s: int, *, for_s: int, chunk: int = 1 << 24) -> float | None:
    """Return when a connection is ended that reads chunks of a response at a rate; None if not while it reads."""

    async def story() -> list[tuple[ConnectionPhase, float]]:
        timeouts, client = ClientTimeouts(LIMITS), Client(ConnectionPhase.READING_RESPONSE)
        client.moves(unsent_bytes=chunk)
        timeouts.watch(client)
        for _ in range(for_s):
            await asyncio.sleep(1)
            left = client.now.unsent_bytes - bytes_per_s
            client.moves(unsent_bytes=left if left > 0 else chunk)
        return client.ended

    ended = run(story())
    return ended[0][1] if ended else None


def test_response_must_be_read_at_a_minimum_rate() -> None:
    """A response that is read at half of the rate is ended after twice the time limit, one that trickles after the time
    limit; one at the rate is not ended, in few chunks and in many.
    """
    limit = LIMITS[ConnectionPhase.READING_RESPONSE]
    half, trickle = (reading_ends_at(rate, for_s=1_000) for rate in (RESPONSE_BYTES_PER_S // 2, 1))

    assert half is not None
    assert trickle is not None
    assert abs(half - 2 * limit) <= 2 * SLACK_S
    assert abs(trickle - limit) <= 2 * SLACK_S
    assert reading_ends_at(RESPONSE_BYTES_PER_S, for_s=1_000) is None
    assert reading_ends_at(RESPONSE_BYTES_PER_S, for_s=1_000, chunk=1 << 16) is None


def test_next_body_of_a_connection_has_its_own_limit() -> None:
    """The time limit of a body begins with its request."""

    async def story() -> list[tuple[ConnectionPhase, float]]:
        timeouts, client = ClientTimeouts(LIMITS), Client(ConnectionPhase.BODY)
        timeouts.watch(client)
        for request in range(5):
            await asyncio.sleep(LIMITS[ConnectionPhase.BODY] - SLACK_S)
            client.moves(steps=request + 1)
        return client.ended

    assert run(story()) == []


def test_error_of_one_connection_ends_no_checks() -> None:
    """If a connection raises when it is ended, the others are still ended after their limit, and later ones too."""

    class BrokenClient(Client):
        def overdue(self, phase: ConnectionPhase) -> None:
            raise RuntimeError(phase.name)

    async def story() -> list[int]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        timeouts = ClientTimeouts(LIMITS)
        clients = [BrokenClient(ConnectionPhase.HEAD), Client(ConnectionPhase.HEAD), Client(ConnectionPhase.HEAD)]
        for client in clients[:2]:
            timeouts.watch(client)
        await asyncio.sleep(100)
        timeouts.watch(clients[2])
        await asyncio.sleep(100)
        return [len(client.ended) for client in clients]

    broken, beside, later = run(story())

    assert broken == 0
    assert min(beside, later) > 0
