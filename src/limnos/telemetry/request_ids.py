# SPDX-License-Identifier: Apache-2.0
"""Request ids: one short string per request, unique across nodes and restarts, for logs, responses and change rows.

May import nothing but the standard library. Must not know requests.
"""

from __future__ import annotations

import itertools
import os
import secrets
from contextvars import ContextVar
from typing import Final

PREFIX_LENGTH: Final = 12

current_request_id: Final[ContextVar[str | None]] = ContextVar("request_id", default=None)
"""The id of the current request. Every log line of its task, and of threads that run in its context, carries it."""

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
