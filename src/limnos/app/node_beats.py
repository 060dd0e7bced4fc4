"""Heartbeats of this node: it writes a row at its start and every half minute, and deletes the row when it stops.

May import `services`, `store` and the layers below. A failed heartbeat is retried, and does not stop the node from
serving.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from functools import partial
from uuid import uuid4

from limnos import __version__
from limnos.model.permits import upkeep_permit
from limnos.services.request.node_services import OWN_NODE, NodeServices
from limnos.services.upkeep.nodes import BEAT_S
from limnos.store.activity.node_beats import NodeHeartbeat
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.nodes")


class NodeBeats:
    """Writes the heartbeats of one node."""

    def __init__(self, services: NodeServices) -> None:
        self.services = services
        self.id = uuid4().hex
        self.name = f"{socket.gethostname()}, process {os.getpid()}"
        self.started_at = services.store.time.now_ms()
        self._permit = upkeep_permit("limnos")
        OWN_NODE.put(services, self.id)

    async def run(self) -> None:
        """Write heartbeats until cancelled, then delete the node's row."""
        try:
            while True:
                await self.beat()
                await asyncio.sleep(BEAT_S)
        finally:
            await self._submit(lambda tx: tx.node_beats.leave(self.id))

    async def beat(self) -> None:
        """Write one heartbeat. A failed write is only logged, and the next heartbeat tries again."""
        clock = self.services.store.time
        heartbeat = NodeHeartbeat(self.id, self.name, __version__, self.started_at, 0, clock.offset_ms)
        await self._submit(partial(_beat, heartbeat=heartbeat))

    async def _submit(self, mutation: Callable[[Tx], None]) -> None:
        try:
            await self.services.store.submit(self._permit, mutation)
        except Exception as error:  # noqa: BLE001 - the node continues to serve, and retries
            log.warning("a heartbeat could not be written", error=f"{type(error).__name__}: {error}")


def _beat(tx: Tx, *, heartbeat: NodeHeartbeat) -> None:
    tx.node_beats.beat(heartbeat)
