# SPDX-License-Identifier: Apache-2.0
"""Scan queue: limits the number of each caller's scans that hold files in memory concurrently.

Must not know scans; `app` chooses the implementation.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

from limnos.services.request.node_services import ComponentKey
from limnos.services.request.offloaded_work import InlineOffloader, WorkOffloader


class ScanQueue(Protocol):
    """Limits the number of concurrent scans that hold files in memory, fairly by user."""

    def turn(self, keys: tuple[tuple[str, str], ...]) -> AbstractAsyncContextManager[None]:
        """Return an async context manager that waits for a slot of the fair queue, and releases the slot at its exit.

        Entering raises ServiceUnavailable if too many scans wait.
        """


class NoScanQueue:
    """A scan queue without limits, for tests and tools."""

    def turn(self, keys: tuple[tuple[str, str], ...]) -> AbstractAsyncContextManager[None]:
        """Return an async context manager that does not wait."""
        del keys
        return nullcontext()


SCAN_QUEUE: ComponentKey[ScanQueue] = ComponentKey("scan_turns", lambda _: NoScanQueue())


SCAN_OFFLOADER: ComponentKey[WorkOffloader] = ComponentKey("scan_chores", lambda _: InlineOffloader())
