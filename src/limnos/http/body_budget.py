# SPDX-License-Identifier: Apache-2.0
"""The budget of request bodies: bounds the bytes of long bodies that a node holds for all requests in progress, and for
those of one caller.

Must not know protocols or connections. A request takes its body's bytes as they arrive, and returns them when it ends.
Short bodies that arrive in one piece are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.concurrency.loop_turns import Caller
from limnos.telemetry.metrics import Gauge

BODIES_MAX: Final = 4
"""The maximum of all bodies, as a multiple of the largest single one."""
OWN_MAX: Final = 2
"""The maximum of one caller's bodies, as a multiple of the largest single one."""
RETRY_AFTER_S: Final = 2
HELD_BYTES = Gauge("limnos_request_bodies_bytes", "Bytes of long request bodies of requests in progress.", ())


class BodyBudget:
    """The bytes of bodies that a node holds. `body_bytes_max` is the maximum of a single body."""

    def __init__(self, body_bytes_max: int) -> None:
        self.bytes_max = BODIES_MAX * body_bytes_max
        self.own_max = OWN_MAX * body_bytes_max
        self.bytes_by_caller: Counter[Caller] = Counter()
        self.held_bytes = 0

    def add(self, caller: Caller, size: int, *, own_bytes: int) -> None:
        """Count bytes of a body of which `own_bytes` are counted, or return them if `size` is negative.

        Raises ServiceUnavailable above a maximum, unless no other request holds bytes: a single body has a limit of its
        own, which a route may set higher.
        """
        if size > 0 and self.bytes_by_caller[caller] > own_bytes and self.bytes_by_caller[caller] + size > self.own_max:
            raise _full("Your requests in progress have", self.own_max)
        if size > 0 and self.held_bytes > own_bytes and self.held_bytes + size > self.bytes_max:
            raise _full("The requests in progress on this server have", self.bytes_max)
        self.bytes_by_caller[caller] += size
        self.held_bytes += size
        if not self.bytes_by_caller[caller]:
            del self.bytes_by_caller[caller]
        HELD_BYTES[()] = self.held_bytes


class BodyShare:
    """The bytes of the budget that one request holds. `caller` returns who sent it."""

    __slots__ = ("_budget", "_caller", "_find_caller", "_size")

    def __init__(self, budget: BodyBudget, caller: Callable[[], Caller]) -> None:
        self._budget = budget
        self._find_caller = caller
        self._caller: Caller | None = None
        self._size = 0

    def take(self, size: int) -> None:
        """Count bytes that arrived. Raises ServiceUnavailable above a maximum."""
        if self._caller is None:
            self._caller = self._find_caller()
        self._budget.add(self._caller, size, own_bytes=self._size)
        self._size += size

    def release(self) -> None:
        """Return all bytes."""
        if self._caller is not None and self._size:
            self._budget.add(self._caller, -self._size, own_bytes=self._size)
            self._size = 0


def _full(what: str, bytes_max: int) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"{what} bodies of {bytes_max} bytes, which is the maximum, and nothing was changed: send fewer long requests"
        " at once, and this one again later",
        retry_after_s=RETRY_AFTER_S,
    )
