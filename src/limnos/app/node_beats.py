# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of this node: it writes a row at its start and every half minute, and deletes the row when it stops.

A failed heartbeat is retried, and does not stop the node from serving. While the node's last write failed, it is not
ready, and it writes a heartbeat every few seconds to find out when the store can be written again. The row is deleted
at most once: if that fails, other nodes see the last heartbeat grow old.
"""

from __future__ import annotations

import asyncio
import os
import socket
from functools import partial
from typing import Final
from uuid import uuid4

from limnos import __version__
from limnos.model.permits import upkeep_permit
from limnos.services.catalog.nested_namespaces import OTHER_SEPARATOR
from limnos.services.request.node_services import OWN_NODE, NodeServices
from limnos.services.upkeep.nodes import BEAT_S, failing_loops
from limnos.store.activity.node_beats import NodeHeartbeat
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.nodes")
PROBE_S: Final = 2.0
"""The time between two heartbeats in seconds while writes fail."""


class NodeBeats:
    """Writes the heartbeats of one node."""

    def __init__(self, services: NodeServices) -> None:
        self.services = services
        self.id = uuid4().hex
        self.name = f"{socket.gethostname()}, process {os.getpid()}"
        self.started_at = services.store.time.now_ms()
        self._loop = services.loops.add("heartbeats", every_s=PROBE_S, retry_s_max=PROBE_S)
        self._due_at = 0.0
        """The time of the next heartbeat by the clock of the event loop."""
        self._reported: frozenset[str] = frozenset()
        """The names of the failing loops of the last heartbeat."""
        self._permit = upkeep_permit("limnos")
        OWN_NODE.put(services, self.id)

    async def run(self) -> None:
        """Write heartbeats until cancelled, then delete the node's row."""
        try:
            await self._loop.run(self._beat_if_due)
        finally:
            try:
                await self.services.store.submit(self._permit, lambda tx: tx.node_beats.leave(self.id))
            except Exception as error:  # noqa: BLE001 - the node stops in any case
                log.warning("the row of this node could not be deleted", error=f"{type(error).__name__}: {error}")

    async def _beat_if_due(self) -> None:
        """Write a heartbeat if the last one is `BEAT_S` old, after a failed write, or if other loops fail."""
        now = asyncio.get_running_loop().time()
        names = frozenset(each.name for each in self.services.loops.failures())
        if now >= self._due_at or self.services.store.last_write_failed or names != self._reported:
            await self.beat()
            self._due_at = now + BEAT_S

    async def beat(self) -> None:
        """Write one heartbeat. Raises the errors of the store."""
        clock = self.services.store.time
        failing = failing_loops(self.services)
        heartbeat = NodeHeartbeat(
            id=self.id,
            name=self.name,
            version=__version__,
            started_at=self.started_at,
            seen_at=0,
            clock_offset_ms=clock.offset_ms,
            failing=failing,
        )
        beat_result = await self.services.store.submit(self._permit, partial(_beat, heartbeat=heartbeat))
        self._reported = frozenset(each.name for each in failing)
        OTHER_SEPARATOR.of(self.services).update(beat_result, defaults=self.services.defaults)


def _beat(tx: Tx, *, heartbeat: NodeHeartbeat) -> str | None:
    """Write the heartbeat. Returns the separator and policy of the node that started last."""
    tx.node_beats.beat(heartbeat)
    return tx.nesting.read_checked()
