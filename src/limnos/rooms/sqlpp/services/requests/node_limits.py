# SPDX-License-Identifier: Apache-2.0
"""SQL++ limits of a node: worker processes and concurrency limits, so that long queries do not delay commits."""

from __future__ import annotations

import asyncio
from typing import Final

from limnos.services.request.node_services import ComponentKey
from limnos.services.request.offloaded_work import InlineOffloader, WorkOffloader

GATHERING_MAX: Final = 4

SQLPP_OFFLOADER: ComponentKey[WorkOffloader] = ComponentKey("sqlpp_chores", lambda _: InlineOffloader())
"""The worker processes that parse, bind and evaluate statements."""
PARSING_SLOTS: ComponentKey[asyncio.Semaphore] = ComponentKey("parsing", lambda _: asyncio.Semaphore(1))
"""The maximum number of long statements, other than queries, that are parsed in threads at once."""
GATHERING_SLOTS: ComponentKey[asyncio.Semaphore] = ComponentKey("gathering", lambda _: asyncio.Semaphore(GATHERING_MAX))
"""The maximum number of queries that collect metadata objects at once."""
