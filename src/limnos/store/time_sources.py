"""What time it is by the store: the one clock that all nodes share.

May import `telemetry` and the standard library. On SQLite all nodes are on one machine, and its clock it is. On PostgreSQL
the database's clock is learned when a node connects, and again now and then; in between a node counts on by its monotonic
clock, so that nobody who sets the clock on the wall moves the times that are written.
"""

from __future__ import annotations

import time

from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Gauge

log = get_logger("limnos.store")
OFFSET = Gauge("limnos_clock_offset_seconds", "How far this node's clock is ahead of the store's.", ())
OLD_S = 30.0
"""After so long the store's time is asked for again."""
JUMP_S = 1.0
"""A clock on the wall that moved by so much against the monotonic one was set, or the machine slept."""
OFF_MS = 5_000
"""A clock that is further off is worth a warning."""


class LocalTime:
    """The machine's own clock."""

    offset_ms = 0

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return time.time_ns() // 1_000_000


class StoreTime:
    """The database's clock, as this node knows it."""

    def __init__(self) -> None:
        self.offset_ms = 0
        """How far this node's clock was ahead when the store's was last learned."""
        self._at = 0.0
        self._wall_at = 0.0
        self._store_ms: int | None = None

    def now_ms(self) -> int:
        """Return the store's time in milliseconds since 1970; the machine's own as long as the store was never asked."""
        if self._store_ms is None:
            return time.time_ns() // 1_000_000
        return self._store_ms + int((time.monotonic() - self._at) * 1000)

    def is_old(self) -> bool:
        """Say whether it is time to ask again."""
        passed = time.monotonic() - self._at
        return passed > OLD_S or abs(time.time() - self._wall_at - passed) > JUMP_S

    def learn(self, store_ms: int, asked_at: float) -> None:
        """Take the store's answer to a question that was sent at `asked_at` by the monotonic clock."""
        now, wall = time.monotonic(), time.time()
        self._at, self._wall_at = now, wall
        self._store_ms = store_ms + int((now - asked_at) * 500)  # it was read halfway, as far as anybody knows
        offset, before = int(wall * 1000) - self._store_ms, self.offset_ms
        self.offset_ms = offset
        OFFSET[()] = offset / 1000
        if abs(offset) > OFF_MS and abs(offset - before) > OFF_MS:
            log.warning(
                "this node's clock is off: times that it writes are the store's", ahead_s=round(offset / 1000, 1)
            )
