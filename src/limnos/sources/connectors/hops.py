# SPDX-License-Identifier: Apache-2.0
"""The servers that have passed a request on to the source of a catalog: a header that each of them extends.

A server that finds itself in the header of a request does not pass it on again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

HOPS_HEADER: Final = "x-limnos-hops"
"""The header with the ids of the server nodes that passed a request on, the first one first, separated by commas."""
HOPS_MAX: Final = 8
"""The maximum number of servers that may pass on one request."""
_HOPS: ContextVar[tuple[str, ...]] = ContextVar("hops", default=())


@contextmanager
def send_server_ids(hops: tuple[str, ...]) -> Iterator[None]:
    """Send the ids of these servers with the requests of connectors in this thread."""
    token = _HOPS.set(hops)
    try:
        yield
    finally:
        _HOPS.reset(token)


def current_hops() -> tuple[str, ...]:
    """Return the ids to send with a request."""
    return _HOPS.get()


def hops_of(header: str) -> tuple[str, ...]:
    """Return the ids in the header of a received request, at most one more than a request may have."""
    return tuple(filter(None, map(str.strip, header.split(",", HOPS_MAX + 1)[: HOPS_MAX + 1])))
