# SPDX-License-Identifier: Apache-2.0
"""Components of the room `exchange` that are closed with the server."""

from __future__ import annotations

from limnos.rooms.exchange.services.held_snapshots import HELD_SNAPSHOTS
from limnos.services.request.node_services import NodeServices


async def close(services: NodeServices) -> None:
    """Close the snapshots that reads in parts hold."""
    await HELD_SNAPSHOTS.of(services).close()
