# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `search`: the index of words is filled beside requests."""

from __future__ import annotations

from collections.abc import Coroutine

from limnos.app.room_parts import LoopStart
from limnos.rooms.search.app.search_indexing import SearchIndexing


def indexing_loop(start: LoopStart) -> Coroutine[object, object, None] | None:
    """Return the loop that fills the index of words; None if the settings disable it on this node."""
    return SearchIndexing(start.services).run() if start.settings.search.words else None
