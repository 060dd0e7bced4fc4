# SPDX-License-Identifier: Apache-2.0
"""Throttling of wrong credentials: counted per client address, refused with 429 above a limit, logged once a second.

Must not know protocols or credentials. A valid credential is never delayed, because many users may share a proxy's
address. A credential that was valid once is not counted either. Guessing is infeasible anyway (a secret has 192 random
bits). The limit bounds the size of the log, and clients that retry in a loop get a `Retry-After` header.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from limnos.model.errors import AuthenticationFailed, TooManyAttempts
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

BURST: Final = 20
PER_S: Final = 2.0
ADDRESSES_MAX: Final = 10_000
LOG_EVERY_S: Final = 1.0
log = get_logger("limnos.http")
WRONG = Counter(
    "limnos_wrong_credentials_total",
    "Requests with a wrong credential, by status of the response: 401, or 429 for too many.",
    ("status",),
)


class CredentialThrottle:
    """A leaky bucket for wrong credentials per client address: `burst` attempts at once, then `PER_S` per second."""

    def __init__(self, *, burst: int = BURST, now: Callable[[], float] = time.monotonic) -> None:
        self.burst = burst
        self._now = now
        self._used: dict[str, tuple[float, float]] = {}
        self._logged_at = float("-inf")
        self._sampled_at = float("-inf")
        self._count = 0
        self._addresses: set[str] = set()

    def answer(self, peer: str, wrong: AuthenticationFailed) -> AuthenticationFailed | TooManyAttempts:
        """Count a wrong credential. Returns the given error, or TooManyAttempts above the limit."""
        address, now = address_of(peer), self._now()
        used, at = self._used.pop(address, (0.0, now))
        used = max(0.0, used - (now - at) * PER_S) + 1.0
        is_over = used > self.burst
        if len(self._used) >= ADDRESSES_MAX:
            del self._used[next(iter(self._used))]  # the least recently used address
        self._used[address] = (min(used, self.burst + 1.0), now)
        WRONG[429 if is_over else 401,] += 1
        self._tell(address, wrong, now)
        if not is_over:
            return wrong
        return TooManyAttempts(
            f"Too many wrong credentials were sent from {address}: correct this client's credential, then try again."
            f" The last error: {wrong.message}"
        )

    def _tell(self, address: str, wrong: AuthenticationFailed, now: float) -> None:
        self._count += 1
        if len(self._addresses) < ADDRESSES_MAX:
            self._addresses.add(address)
        if now - self._logged_at >= LOG_EVERY_S:
            self._logged_at = now
            self.flush(reason=wrong.message)

    def samples(self) -> bool:
        """Return whether a throttled request gets its own log record; true at most once per second."""
        now = self._now()
        if now - self._sampled_at < LOG_EVERY_S:
            return False
        self._sampled_at = now
        return True

    def flush(self, *, reason: str = "") -> None:
        """Log the number of wrong credentials since the last log record. `reason` is the message of the latest."""
        if self._count:
            some = sorted(self._addresses)[:5]
            log.warning(
                "wrong credentials",
                count=self._count,
                addresses=len(self._addresses),
                some_addresses=some,
                reason=reason,
            )
        self._count = 0
        self._addresses.clear()


def address_of(peer: str) -> str:
    """Return the key under which a client address is throttled: an IPv4 address, or the /64 prefix of an IPv6
    address.
    """
    if ":" not in peer:
        return peer or "unknown"
    head, _, tail = peer.partition("::")
    groups = head.split(":") if head else []
    missing = 8 - len(groups) - (len(tail.split(":")) if tail else 0)
    address_groups = groups + ["0"] * max(missing, 0) if "::" in peer else groups
    return ":".join(address_groups[:4]) + "::/64"
