"""Whose turn it is to have files of a scan read: a few of each caller's at a time, as what is read is held in memory.

May import the standard library only. Knows nothing of scans; who gives the turns is for `app` to choose.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

from limnos.services.request.node_services import ComponentKey
from limnos.services.request.offloaded_work import InlineOffloader, WorkOffloader

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


class ScanQueue(Protocol):
    """Whose turn it is to hold files of a scan in memory."""

    def turn(self, keys: tuple[tuple[str, str], ...]) -> AbstractAsyncContextManager[None]:
        """Hold a place; waits for one. Raises Unavailable when too many wait."""
        ...


class NoScanQueue:
    """It is everybody's turn, as tests and tools like it."""

    def turn(self, keys: tuple[tuple[str, str], ...]) -> AbstractAsyncContextManager[None]:
        """Hold a place at once."""
        del keys
        return nullcontext()


SCAN_QUEUE: ComponentKey[ScanQueue] = ComponentKey("scan_turns", lambda _: NoScanQueue())


SCAN_OFFLOADER: ComponentKey[WorkOffloader] = ComponentKey("scan_chores", lambda _: InlineOffloader())
