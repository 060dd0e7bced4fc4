# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `sqlpp`: the protocol, the processes for statements, and the engine."""

from __future__ import annotations

from typing import Final

from limnos.app.engine_files import engine_notes
from limnos.app.offload_processes import OffloadProcesses
from limnos.app.room_parts import LoopStart
from limnos.config.settings import Settings
from limnos.manifests.switches import RoomSet
from limnos.rooms.sqlpp.app.engines import engine_of, has_engine
from limnos.rooms.sqlpp.http.protocol import AsterixProtocol
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.rooms.sqlpp.services.locks.statement_locks import LOCKS
from limnos.rooms.sqlpp.services.requests.node_limits import SQLPP_OFFLOADER
from limnos.rooms.sqlpp.services.requests.running_requests import REQUESTS
from limnos.services.request.node_services import NodeServices

STATEMENT_BYTES_MAX: Final = 1 << 30
"""Memory limit in bytes of a process that parses, binds or evaluates SQL++ statements."""


def protocol(settings: Settings, rooms: RoomSet) -> AsterixProtocol:
    """Return AsterixDB's query service."""
    del rooms
    return AsterixProtocol(timeout_s=settings.sqlpp.timeout_s)


def notes(settings: Settings) -> list[str]:
    """Return notes for `server check` about missing files of the engine."""
    return engine_notes(settings) if has_engine(settings) else []


def register_processes(services: NodeServices, settings: Settings) -> None:
    """Register the processes for statements. None is started before the first statement."""
    offloader = OffloadProcesses(processes_max=settings.sqlpp.workers_max, memory_bytes_max=STATEMENT_BYTES_MAX)
    SQLPP_OFFLOADER.put(services, offloader)


def engine_loop(start: LoopStart) -> None:
    """Register the engine, which starts on demand, or now if `engine.warm` is set. It has no loop."""
    if has_engine(start.settings):
        ENGINE.put(start.services, engine_of(start.settings, start.bound()))
        ENGINE.of(start.services).begin()


async def close(services: NodeServices) -> None:
    """End running statements, locks, processes and the engine."""
    await REQUESTS.of(services).close()
    await LOCKS.of(services).close()
    SQLPP_OFFLOADER.of(services).close()
    ENGINE.of(services).close()
