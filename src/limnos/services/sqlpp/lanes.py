"""What SQL++ has for itself on a node, so that a long query holds up no commit: processes, and how many statements do what at once.

May import `chores` and `shared`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from limnos.services.request.chores import Chores, OwnChores
from limnos.services.request.shared import Part

GATHERING_MAX: Final = 4

SQLPP_CHORES: Part[Chores] = Part("sqlpp_chores", lambda _: OwnChores())
"""Processes that parse, bind and evaluate."""
PARSING: Part[asyncio.Semaphore] = Part("parsing", lambda _: asyncio.Semaphore(1))
"""Statements at once that are no query, are long, and are parsed by a thread."""
GATHERING: Part[asyncio.Semaphore] = Part("gathering", lambda _: asyncio.Semaphore(GATHERING_MAX))
"""Queries at once that gather objects of SQL++'s metadata."""
