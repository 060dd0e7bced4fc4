"""What SQL++ has for itself on a node, so that a long query holds up no commit: processes, and how many statements do what at once.

May import `chores` and `shared`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from limnos.services.request.node_services import ComponentKey
from limnos.services.request.offloaded_work import InlineOffloader, WorkOffloader

GATHERING_MAX: Final = 4

SQLPP_OFFLOADER: ComponentKey[WorkOffloader] = ComponentKey("sqlpp_chores", lambda _: InlineOffloader())
"""Processes that parse, bind and evaluate."""
PARSING_SLOTS: ComponentKey[asyncio.Semaphore] = ComponentKey("parsing", lambda _: asyncio.Semaphore(1))
"""Statements at once that are no query, are long, and are parsed by a thread."""
GATHERING_SLOTS: ComponentKey[asyncio.Semaphore] = ComponentKey("gathering", lambda _: asyncio.Semaphore(GATHERING_MAX))
"""Queries at once that gather objects of SQL++'s metadata."""
