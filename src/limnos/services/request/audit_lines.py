# SPDX-License-Identifier: Apache-2.0
"""Audit records: collects the records of requests and writes them in batches, and creates the records of changes from
the change feed.

Must not know any wire format. A request that changes something writes no record: the transaction of the change stores
the audit data. Records of reads and refusals are written asynchronously through a bounded queue. When it is full,
further records are counted and discarded. A node that is killed loses the records of about the last second.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Final

from limnos.model.audit import AuditRecord
from limnos.model.errors import ServiceUnavailable
from limnos.model.kinds import ROOT_ID
from limnos.model.permits import upkeep_permit
from limnos.services.request.defaults import AuditRules
from limnos.store.activity.audit import lines_put
from limnos.store.activity.audit_conversion import lines_collect, lines_due
from limnos.store.interface import Store
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter
from limnos.view.freshness_gate import FreshnessGate

log = get_logger("limnos.audit")
WAITING_MAX: Final = 20_000
BATCH_MAX: Final = 500
PAUSE_S: Final = 0.5
BATCHES_MAX: Final = 500
"""The maximum number of batches of changes that one read of the audit converts into records."""
LINES = Counter("limnos_audit_lines_total", "Audit records about reads and refusals, by outcome.", ("outcome",))


class _Sampler:
    """Samples one event of every `one_in`; no event if `one_in` is 0."""

    def __init__(self, one_in: int) -> None:
        self.one_in = one_in
        self._left = 1

    def takes(self) -> bool:
        """Return whether this event is in the sample; each call counts one event."""
        if self.one_in == 0:
            return False
        self._left -= 1
        if self._left:
            return False
        self._left = self.one_in
        return True


class AuditLines:
    """The queue and the writer of a node's audit records about reads and refusals."""

    def __init__(self, store: Store, gate: FreshnessGate, *, rules: AuditRules) -> None:
        self.rules = rules
        self.store = store
        self.gate = gate
        self.takes_reads = rules.reads_one_in > 0
        self.takes_refusals = rules.refusals_one_in > 0
        self.is_on = self.takes_reads or self.takes_refusals
        self._reads = _Sampler(rules.reads_one_in)
        self._refusals = _Sampler(rules.refusals_one_in)
        self._waiting: deque[AuditRecord] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._permit = upkeep_permit("limnos")
        self._second = 0.0
        self._refused = self._left_out = 0

    def wants_read(self) -> bool:
        """Return whether to write an audit record for this read.

        Call once for each successful read: the call advances the sampler.
        """
        return self._reads.takes()

    def wants_refusal(self) -> bool:
        """Return whether to write an audit record for this refusal.

        Call once for each refusal: the call advances the sampler. Refusals above `refusals_per_s_max` in one second get
        no records of their own; one record states their count.
        """
        if not self._refusals.takes():
            return False
        second = time.monotonic() // 1
        if second != self._second:
            self._queue_suppressed_count()
            self._second, self._refused = second, 0
        self._refused += 1
        if self._refused <= self.rules.refusals_per_s_max:
            return True
        self._left_out += 1
        LINES["left out",] += 1
        self._wake()
        return False

    def take(self, lines: Sequence[AuditRecord]) -> None:
        """Queue the audit records of a request. If the queue is full, they are discarded and counted as lost."""
        if len(self._waiting) + len(lines) > WAITING_MAX:
            LINES["lost",] += len(lines)
            return
        self._waiting.extend(lines)
        self._wake()

    def _wake(self) -> None:
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_soon())

    async def _write_soon(self) -> None:
        while self._waiting or self._left_out:
            await asyncio.sleep(PAUSE_S)
            if self._second != time.monotonic() // 1:
                self._queue_suppressed_count()
            if not await self.flush():
                await asyncio.sleep(PAUSE_S)

    def _queue_suppressed_count(self) -> None:
        """Queue one record that states the count of refusals without a record of their own."""
        count, self._left_out = self._left_out, 0
        if count:
            text = f"{count} more requests were refused or failed, without records of their own"
            line = AuditRecord(
                id=0,
                metalake_id=ROOT_ID,
                at=self.store.time.now_ms(),
                user="",
                user_id=None,
                outcome="refused",
                operation="left-out",
                detail=text,
            )
            self._waiting.append(line)

    async def flush(self) -> bool:
        """Write the queued records. Returns False if the store refused a batch.

        A batch that was certainly not written stays in the queue for the next call; a batch whose outcome is unknown
        counts as lost.
        """
        async with self._writing:
            while self._waiting:
                batch = list(islice(self._waiting, BATCH_MAX))
                if not await self._write(batch):
                    return False
                for _ in batch:
                    self._waiting.popleft()
        return True

    async def _write(self, batch: list[AuditRecord]) -> bool:
        try:
            await self.store.submit(self._permit, partial(lines_put, lines=batch))
        except ServiceUnavailable:
            return False
        except Exception as error:  # noqa: BLE001 - outcome unknown: writing again could duplicate the records
            LINES["lost",] += len(batch)
            log.warning("audit records may be lost", count=len(batch), error=str(error))
        else:
            LINES["kept",] += len(batch)
        return True

    async def collect(self) -> bool:
        """Create audit records for the next changes that have none yet.

        Returns whether changes from before this call may remain.
        """
        if not self.rules.changes or not await self.gate.look_up(lines_due):
            return False
        return await self.store.submit(self._permit, lines_collect)

    async def catch_up(self) -> None:
        """Convert all changes that were committed before this call into audit records.

        Raises ServiceUnavailable if too many changes are not converted yet.
        """
        await self.flush()
        for _ in range(BATCHES_MAX):
            if not await self.collect():
                return
        raise ServiceUnavailable("Many changes are not yet in the audit: try again in a minute")
