"""SQL++ limits of a node: its own worker processes, and how many statements do the same at once, so that long queries
delay no commit.

May import `services.request` alone.
"""

from __future__ import annotations

import asyncio
from typing import Final

from limnos.services.request.node_services import ComponentKey
from limnos.services.request.offloaded_work import InlineOffloader, WorkOffloader

GATHERING_MAX: Final = 4

SQLPP_OFFLOADER: ComponentKey[WorkOffloader] = ComponentKey("sqlpp_chores", lambda _: InlineOffloader())
"""The worker processes that parse, bind and evaluate."""
PARSING_SLOTS: ComponentKey[asyncio.Semaphore] = ComponentKey("parsing", lambda _: asyncio.Semaphore(1))
"""How many long statements other than queries a thread parses at once."""
GATHERING_SLOTS: ComponentKey[asyncio.Semaphore] = ComponentKey("gathering", lambda _: asyncio.Semaphore(GATHERING_MAX))
"""How many queries collect metadata objects at once."""
