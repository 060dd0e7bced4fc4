# SPDX-License-Identifier: Apache-2.0
"""The current request, for log lines and for parts of a request in other tasks and threads.

Must not know requests.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final, Protocol


class CurrentRequest(Protocol):
    """What the parts of a request share, in whatever task or thread they run."""

    id: str
    loop_use: Any
    """Its use of the event loop (`services.request.concurrency.loop_turns.LoopUse`); None before it waits."""


current_request: Final[ContextVar[CurrentRequest | None]] = ContextVar("request", default=None)
"""The current request. Every log line of its task, and of threads that run in its context, carries its id."""
