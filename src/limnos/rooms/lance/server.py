# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `lance`: the protocol, and the worker processes for tables."""

from __future__ import annotations

from limnos.config.settings import Settings
from limnos.manifests.switches import RoomSet
from limnos.rooms.lance.app.worker_pool import lance_processes
from limnos.rooms.lance.http.protocol import LanceProtocol
from limnos.rooms.lance.services.components import LanceTableFiles
from limnos.rooms.lance.services.maintenance import LanceTableMaintenance
from limnos.rooms.lance.services.workers import WORKERS
from limnos.services.lance.maintained_tables import LANCE_MAINTENANCE
from limnos.services.lance.table_files import LANCE_FILES
from limnos.services.request.node_services import NodeServices


def protocol(settings: Settings, rooms: RoomSet) -> LanceProtocol:
    """Return Lance REST."""
    del rooms
    return LanceProtocol(data_timeout_s=settings.lance.data_timeout_s)


def register_parts(services: NodeServices, settings: Settings) -> None:
    """Register the pool of worker processes, and what the kernel and other rooms ask about files of tables. No process
    is started before the first request.
    """
    WORKERS.put(services, lance_processes(settings.lance))
    LANCE_FILES.put(services, LanceTableFiles())
    LANCE_MAINTENANCE.put(services, LanceTableMaintenance())


async def close(services: NodeServices) -> None:
    """End the worker processes."""
    WORKERS.of(services).close()
