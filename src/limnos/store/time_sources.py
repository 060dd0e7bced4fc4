# SPDX-License-Identifier: Apache-2.0
"""The store's time: one clock that all nodes share.

Must not know connections. On SQLite all nodes run on one machine, and use its clock. On PostgreSQL a node reads the
database's clock when it connects, and again at intervals. In between it counts with its monotonic clock, so that
changes of the wall clock do not affect stored times.
"""

from __future__ import annotations

import time

from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Gauge

log = get_logger("limnos.store")
OFFSET = Gauge("limnos_clock_offset_seconds", "Difference of this node's clock to the store's clock.", ())
OLD_S = 30.0
"""The time in seconds after which the store's time is read again."""
JUMP_S = 1.0
"""The difference in seconds between the wall clock and the monotonic clock from which the wall clock was set, or the
machine slept.
"""
OFF_MS = 5_000
"""The difference of clocks in milliseconds above which a warning is logged."""


class LocalTime:
    """The clock of this machine, which SQLite stores use."""

    offset_ms = 0

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return time.time_ns() // 1_000_000


class StoreTime:
    """The database's clock: its last reading plus the time elapsed on this node's monotonic clock since."""

    def __init__(self) -> None:
        self.offset_ms = 0
        """The time by which this node's clock was ahead of the store's when the latter was last read, in
        milliseconds.
        """
        self._at = 0.0
        self._wall_at = 0.0
        self._store_ms: int | None = None

    def now_ms(self) -> int:
        """Return the store's time in milliseconds since 1970; this machine's time before the first reading."""
        if self._store_ms is None:
            return time.time_ns() // 1_000_000
        return self._store_ms + int((time.monotonic() - self._at) * 1000)

    def is_old(self) -> bool:
        """Return whether the last reading is so old that the database's clock should be read again."""
        passed = time.monotonic() - self._at
        return passed > OLD_S or abs(time.time() - self._wall_at - passed) > JUMP_S

    def learn(self, store_ms: int, asked_at: float) -> None:
        """Store a reading of the store's clock; the query was sent at `asked_at` by the monotonic clock."""
        now, wall = time.monotonic(), time.time()
        self._at, self._wall_at = now, wall
        self._store_ms = store_ms + int((now - asked_at) * 500)  # assumed read halfway through the round trip
        offset, before = int(wall * 1000) - self._store_ms, self.offset_ms
        self.offset_ms = offset
        OFFSET[()] = offset / 1000
        if abs(offset) > OFF_MS and abs(offset - before) > OFF_MS:
            log.warning(
                "this node's clock differs from the store's clock, which its writes use",
                ahead_s=round(offset / 1000, 1),
            )
