# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `gravitino`: the protocol."""

from __future__ import annotations

from limnos.config.settings import Settings
from limnos.manifests.switches import RoomSet
from limnos.rooms.gravitino.http.protocol import GravitinoProtocol


def protocol(settings: Settings, rooms: RoomSet) -> GravitinoProtocol:
    """Return Gravitino REST with the routes of the rooms that are on."""
    del settings
    return GravitinoProtocol(rooms.on)
