# SPDX-License-Identifier: Apache-2.0
"""Full-text indexing for searches: one node at a time holds the lease, and indexes the zones whose index is behind.

`rooms.search.services.indexing` implements a step. If a node is killed, the next node takes the lease when it expires,
and continues at the stored positions.
"""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import Final

from limnos.app.work_poller import WorkPoller
from limnos.model.permits import upkeep_permit
from limnos.rooms.search.services.indexing import index_step
from limnos.services.request.concurrency.lease_holders import new_holder
from limnos.services.request.node_services import NodeServices
from limnos.store.activity.search_index import zones_behind_read
from limnos.telemetry.metrics import Counter

LEASE_MS: Final = 30_000
RENEWED_S: Final = 10.0
"""The age at which a lease is renewed. A younger one costs no transaction."""
STEPS = Counter(
    "limnos_search_index_steps_total", "Indexing steps of the word index on this node, by outcome.", ("outcome",)
)


class SearchIndexing(WorkPoller):
    """Fills the full-text search index on this node."""

    works = "search index"

    def __init__(self, services: NodeServices) -> None:
        super().__init__(services.loops)
        self.services = services
        self.holder = new_holder()
        self._permit = upkeep_permit("limnos")
        self._leased_at = -RENEWED_S

    async def _take(self) -> None:
        """Index all zones whose index is behind, if this node gets the lease."""
        try:
            is_left = await self._is_behind()
            while is_left and await self._lease():
                is_left = bool(await index_step(self.services, may_continue=self._lease))
                STEPS["done",] += 1
                self._loop.record_progress()
        except Exception:  # searches report the lag
            STEPS["failed",] += 1
            raise

    async def _is_behind(self) -> bool:
        return bool(await self.services.gate.look_up(partial(zones_behind_read, limit=1)))

    async def _lease(self) -> bool:
        """Acquire the lease, or renew it unless it was renewed recently. Returns whether this node has it."""
        now = monotonic()
        if self._leased_at + RENEWED_S > now:
            return True
        is_taken = await self.services.store.submit(
            self._permit, lambda tx: tx.search.lease(self.holder, lease_ms=LEASE_MS)
        )
        self._leased_at = now if is_taken else -RENEWED_S
        return is_taken
