# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `lance`: the protocol, and the worker processes for tables."""

from __future__ import annotations

from limnos.app.lance import lance_processes
from limnos.config.settings import Settings
from limnos.http.lance.protocol import LanceProtocol
from limnos.manifests.switches import RoomSet
from limnos.services.lance.workers import WORKERS
from limnos.services.request.node_services import NodeServices


def protocol(settings: Settings, rooms: RoomSet) -> LanceProtocol:
    """Return Lance REST."""
    del rooms
    return LanceProtocol(data_timeout_s=settings.lance.data_timeout_s)


def register_workers(services: NodeServices, settings: Settings) -> None:
    """Register the pool of worker processes. None is started before the first request."""
    WORKERS.put(services, lance_processes(settings.lance))


async def close(services: NodeServices) -> None:
    """End the worker processes."""
    WORKERS.of(services).close()
