# SPDX-License-Identifier: Apache-2.0
"""Client timeouts: one timer checks all connections and ends those whose client is too slow.

Must not know HTTP: a connection reports its progress as numbers, and closes itself. It counts its steps (a request
begins, a response is complete). If steps, phase and unsent bytes are unchanged for the time limit of the phase, the
client was inactive for that long. A body has one time limit as a whole, which the bytes that arrive extend, at
`BODY_BYTES_PER_S`; so has the unread part of a response, at `RESPONSE_BYTES_PER_S`. So a request costs a few additions,
and no timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

_CHECKS: Final = 8
_SECONDS_MAX: Final = 1.0


class ConnectionPhase(IntEnum):
    """The phase of a connection, by the event for which it waits.

    `ANSWER`: the server prepares the response; the client has no time limit. `READING_RESPONSE`: the client reads the
    response. `CLOSING`: the request was refused, and further input is discarded until the connection ends.
    """

    IDLE = 0
    HEAD = 1
    BODY = 2
    ANSWER = 3
    READING_RESPONSE = 4
    CLOSING = 5


class ConnectionProgress(NamedTuple):
    """The progress of a connection: the phase, the count of steps so far, the count of response bytes that are not
    sent yet, and the count of received bytes of the current body.
    """

    phase: ConnectionPhase
    steps: int
    unsent_bytes: int
    body_bytes: int = 0


class TimedConnection(Protocol):
    """A connection whose progress `ClientTimeouts` monitors."""

    def step(self) -> ConnectionProgress:
        """Return the connection's phase, its count of steps, and its count of unsent bytes."""

    def overdue(self, phase: ConnectionPhase) -> None:
        """Close the connection, because the client exceeded the time limit of this phase."""


IDLE_S: Final = 75.0
"""The maximum time that a connection may be idle, or that a client may leave a response unread, in seconds."""
BODY_BYTES_PER_S: Final = 1 << 16
"""The rate at which a long body must arrive, in bytes per second."""
RESPONSE_BYTES_PER_S: Final = 1 << 13
"""The rate at which a client must read a long response, which may hold a transaction, in bytes per second."""
CLOSING_S: Final = 2.0
"""The maximum time that a refused client may continue to send before the connection is closed, in seconds."""


class ClientTimeouts:
    """Monitors the connections of a server. `limits` are the time limits of the phases, in seconds."""

    def __init__(self, limits: Mapping[ConnectionPhase, float]) -> None:
        self.limits = dict(limits)
        self._seen: dict[TimedConnection, tuple[ConnectionProgress, float]] = {}
        self._every = min(_SECONDS_MAX, *(seconds / _CHECKS for seconds in self.limits.values()))
        self._is_watching = False

    def watch(self, connection: TimedConnection) -> None:
        """Monitor a connection from now on."""
        loop = asyncio.get_running_loop()
        self._seen[connection] = (connection.step(), loop.time())
        if not self._is_watching:
            self._is_watching = True
            loop.call_later(self._every, self._check_connections, loop)

    def forget(self, connection: TimedConnection) -> None:
        """Stop monitoring a connection that is closed."""
        self._seen.pop(connection, None)

    def _check_connections(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        try:
            for connection, (before, earlier) in tuple(self._seen.items()):
                step, since = connection.step(), earlier
                if step != before or step.phase not in self.limits:
                    since = _since(before, step, since=earlier, now=now)
                    self._seen[connection] = (step, since)
                if step.phase in self.limits and now - since >= self.limits[step.phase]:
                    self._seen[connection] = (step, now)
                    connection.overdue(step.phase)
        finally:  # an error of one connection may not end the checks of all others
            self._is_watching = bool(self._seen)
            if self._is_watching:
                loop.call_later(self._every, self._check_connections, loop)


def _since(before: ConnectionProgress, step: ConnectionProgress, *, since: float, now: float) -> float:
    """Return the time from which a connection's time limit counts, after progress: for a body that goes on, or a
    response that is read on, later by the time that the transferred bytes may take; else now.
    """
    if (before.phase, before.steps) != (step.phase, step.steps):
        return now
    if step.phase is ConnectionPhase.BODY:
        return min(now, since + (step.body_bytes - before.body_bytes) / BODY_BYTES_PER_S)
    bytes_read = before.unsent_bytes - step.unsent_bytes
    if step.phase is ConnectionPhase.READING_RESPONSE and bytes_read >= 0:
        return min(now, since + bytes_read / RESPONSE_BYTES_PER_S)
    return now  # another chunk was written, because the client has read the chunks before it


def client_timeouts_of(head_s: float, body_s: float) -> ClientTimeouts:
    """Build the timeouts of a server: `head_s` and `body_s` are the time limits for a head and for a body, in
    seconds.
    """
    return ClientTimeouts(
        {
            ConnectionPhase.IDLE: IDLE_S,
            ConnectionPhase.HEAD: head_s,
            ConnectionPhase.BODY: body_s,
            ConnectionPhase.READING_RESPONSE: IDLE_S,
            ConnectionPhase.CLOSING: CLOSING_S,
        }
    )
