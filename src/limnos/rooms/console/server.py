# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `console`: the protocol."""

from __future__ import annotations

from limnos.config.settings import Settings
from limnos.manifests.switches import RoomSet
from limnos.rooms.console.app.console_site import console_site_of
from limnos.rooms.console.http.protocol import ConsoleProtocol


def protocol(settings: Settings, rooms: RoomSet) -> ConsoleProtocol:
    """Return the console with the pages of the rooms that are on."""
    return ConsoleProtocol(console_site_of(settings, rooms), rooms)
