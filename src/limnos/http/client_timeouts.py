"""Patience with clients: one timer looks at all connections and ends those that wait for their client too long.

May import the standard library. Knows no HTTP: a connection tells its state as two numbers, and how it ends is its own
affair. A connection counts its steps (a request begins, a phase changes, an answer is complete); one whose count and
phase are what they were a limit ago has done nothing for so long. So a request costs additions, never a timer.
"""

from __future__ import annotations

import asyncio
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHECKS: Final = 8
_SECONDS_MAX: Final = 1.0


class ConnectionPhase(IntEnum):
    """What a connection waits for. `ANSWER`: for us, so nothing is asked of the client; `TAKING`: that it reads."""

    IDLE = 0
    HEAD = 1
    BODY = 2
    ANSWER = 3
    TAKING = 4
    PARTING = 5


class ConnectionProgress(NamedTuple):
    """How far a connection has come: the phase, the number of steps so far, and bytes that wait to be taken."""

    phase: ConnectionPhase
    steps: int
    unsent_bytes: int


class TimedConnection(Protocol):
    """What is looked at."""

    def step(self) -> ConnectionProgress:
        """Say how far it has come."""
        ...

    def overdue(self, phase: ConnectionPhase) -> None:
        """End it: the client has kept it in this phase for longer than it may."""
        ...


IDLE_S: Final = 75.0
"""For how long a connection may stay open without a request, and an answer may lie without being taken."""
PARTING_S: Final = 2.0
"""For how long a refused client may go on sending before the connection is cut."""


class ClientTimeouts:
    """The connections of a server, and for how many seconds each phase may last."""

    def __init__(self, limits: Mapping[ConnectionPhase, float]) -> None:
        self.limits = dict(limits)
        self._seen: dict[TimedConnection, tuple[ConnectionProgress, float]] = {}
        self._every = min(_SECONDS_MAX, *(seconds / _CHECKS for seconds in self.limits.values()))
        self._read_connection = False

    def watch(self, connection: TimedConnection) -> None:
        """Look at a connection from now on."""
        loop = asyncio.get_running_loop()
        self._seen[connection] = (connection.step(), loop.time())
        if not self._read_connection:
            self._read_connection = True
            loop.call_later(self._every, self._look, loop)

    def forget(self, connection: TimedConnection) -> None:
        """The connection is gone."""
        self._seen.pop(connection, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection, (before, since) in tuple(self._seen.items()):
            step = connection.step()
            if step != before or step.phase not in self.limits:
                self._seen[connection] = (step, now)
            elif now - since >= self.limits[step.phase]:
                self._seen[connection] = (step, now)
                connection.overdue(step.phase)
        self._read_connection = bool(self._seen)
        if self._read_connection:
            loop.call_later(self._every, self._look, loop)


def client_timeouts_of(head_s: float, body_s: float) -> ClientTimeouts:
    """Make the limits of a server."""
    return ClientTimeouts(
        {
            ConnectionPhase.IDLE: IDLE_S,
            ConnectionPhase.HEAD: head_s,
            ConnectionPhase.BODY: body_s,
            ConnectionPhase.TAKING: IDLE_S,
            ConnectionPhase.PARTING: PARTING_S,
        }
    )
