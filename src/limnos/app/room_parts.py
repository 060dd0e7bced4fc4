# SPDX-License-Identifier: Apache-2.0
"""What rooms add to a server node, by their manifests: protocols, components, background loops and their end.

Knows no room by name.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import NamedTuple, cast

from limnos.config.active_rooms import rooms_of
from limnos.config.settings import Settings
from limnos.http.admin.protocol import AdminProtocol
from limnos.http.iceberg.protocol import IcebergProtocol
from limnos.http.route_targets import ErrorResponse, Protocol, RefusingProtocol
from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import Manifest, load
from limnos.manifests.switches import RoomSet
from limnos.model.errors import CannotStart
from limnos.services.request.node_services import NodeServices
from limnos.services.request.task_context import FileCleanup


class LoopStart(NamedTuple):
    """The arguments of a room's background loop: the services and the settings of the node.

    `bound` returns the socket on which processes that the room starts reach this server. A call may open one, so only
    rooms that start processes call it.
    """

    services: NodeServices
    settings: Settings
    bound: Callable[[], socket.socket]


Parts = Callable[[NodeServices, Settings], None]
Loop = Callable[[LoopStart], Coroutine[object, object, None] | None]
Close = Callable[[NodeServices], Awaitable[None]]
MakeProtocol = Callable[[Settings, RoomSet], Protocol]


def room_notes(settings: Settings) -> list[str]:
    """Return the missing requirements of the rooms that are on, a sentence each."""
    return [
        note
        for room in rooms_of(settings).on
        if room.notes
        for note in cast("Callable[[Settings], list[str]]", load(room.notes))(settings)
    ]


def require_usable_rooms(settings: Settings) -> RoomSet:
    """Return the rooms that are on and off by the settings.

    Raises CannotStart if a room of another package cannot be loaded and is not switched off: without it the server
    would not serve what its operator installed.
    """
    for each in installed_rooms().broken:
        if each.name not in settings.rooms.off:
            raise CannotStart(
                f"The room {each.name} of another package cannot be used",
                why=f"its entry point {each.value} does not load: {each.reason}",
                advice=f"install a version of it that fits this release, uninstall it, or add {each.name} to rooms.off",
            )
    return rooms_of(settings)


def migrations_of(rooms: RoomSet) -> dict[str, str]:
    """Return the packages with the migrations of rooms that have a chain of their own, by room, needed rooms first."""
    waiting = {room.name: room for room in rooms.on}
    packages: dict[str, str] = {}
    while waiting:
        ready = [room for room in waiting.values() if not any(need in waiting for need in room.needs)]
        for room in ready or list(waiting.values()):  # rooms that need each other: in the order of names
            del waiting[room.name]
            if room.migrations:
                packages[room.name] = room.migrations
    return packages


def protocols_of(settings: Settings, rooms: RoomSet) -> list[Protocol]:
    """Return all protocols in the order in which a path is looked up: Iceberg REST, those of rooms, and the own API.

    The paths of rooms that are off are refused with the reason, directly before the protocol that would serve them.
    """
    served: list[Protocol] = [IcebergProtocol()]
    for room in sorted((*rooms.on, *(each.manifest for each in rooms.off)), key=lambda each: each.name):
        off = next((each for each in rooms.off if each.manifest is room), None)
        for entry in room.protocols:
            if off is None:
                served.append(cast("MakeProtocol", load(entry.protocol))(settings, rooms))
            else:
                paths = (*entry.paths, *_paths_within(rooms, entry.name))
                error = cast("ErrorResponse", load(entry.error))
                served.append(RefusingProtocol(entry.name, paths, reason=off.reason, error=error))
    served.append(AdminProtocol(rooms.on))
    return [each for protocol in served for each in (*_refusals_before(protocol, rooms), protocol)]


def _paths_within(rooms: RoomSet, protocol: str) -> Iterator[str]:
    for room in (*rooms.on, *(each.manifest for each in rooms.off)):
        for entry in room.routes:
            if entry.protocol == protocol:
                yield from entry.paths


def _refusals_before(protocol: Protocol, rooms: RoomSet) -> Iterator[Protocol]:
    if isinstance(protocol, RefusingProtocol):
        return
    for each in rooms.off:
        paths = tuple(path for entry in each.manifest.routes if entry.protocol == protocol.name for path in entry.paths)
        if paths:
            yield RefusingProtocol(protocol.name, paths, reason=each.reason, error=protocol.error)


def register_parts(rooms: Iterable[Manifest], services: NodeServices, *, settings: Settings) -> None:
    """Register the components of rooms, before the first request."""
    for room in rooms:
        if room.parts:
            cast("Parts", load(room.parts))(services, settings)


def cleanups_of(rooms: Iterable[Manifest]) -> tuple[FileCleanup, ...]:
    """Return the functions of rooms that delete files in each round of the janitor."""
    return tuple(cast("FileCleanup", load(reference)) for room in rooms for reference in room.cleanups)


def loops_of(rooms: Iterable[Manifest], start: LoopStart) -> Iterator[Coroutine[object, object, None]]:
    """Yield the background loops of rooms. Each runs until it is cancelled. Raises CannotStart."""
    for room in rooms:
        for reference in room.loops:
            loop = cast("Loop", load(reference))(start)
            if loop is not None:
                yield loop


async def close_parts(rooms: Iterable[Manifest], services: NodeServices) -> None:
    """End what the components of rooms began."""
    for room in rooms:
        if room.close:
            await cast("Close", load(room.close))(services)
