# SPDX-License-Identifier: Apache-2.0
"""Request ids: one short string per request, unique across nodes and restarts, for logs, responses and change rows.

Must not know requests.
"""

from __future__ import annotations

import itertools
import os
import secrets
from contextvars import ContextVar
from typing import Any, Final, Protocol

PREFIX_LENGTH: Final = 12


class CurrentRequest(Protocol):
    """What the parts of a request share, in whatever task or thread they run."""

    id: str
    loop_use: Any
    """Its use of the event loop (`services.request.concurrency.loop_turns.LoopUse`); None before it waits."""


current_request: Final[ContextVar[CurrentRequest | None]] = ContextVar("request", default=None)
"""The current request. Every log line of its task, and of threads that run in its context, carries its id."""

_prefix = ""
_count = itertools.count(1)


def next_request_id() -> str:
    """Return a new id: 12 random hex digits of this process, then a counter in hex. Takes less than a microsecond."""
    return f"{_prefix}{next(_count):06x}"


def _begin() -> None:
    """Choose the random prefix of this process's request ids. Called again in a forked child."""
    global _prefix, _count  # noqa: PLW0603 - one prefix per process is the point
    _prefix = secrets.token_hex(PREFIX_LENGTH // 2)
    _count = itertools.count(1)


_begin()
os.register_at_fork(after_in_child=_begin)
