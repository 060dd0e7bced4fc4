# SPDX-License-Identifier: Apache-2.0
"""The rooms that are on and off by the settings."""

from __future__ import annotations

from limnos.config.settings import Settings
from limnos.manifests.installed import installed_rooms
from limnos.manifests.switches import RoomSet, room_set


def rooms_of(settings: Settings) -> RoomSet:
    """Return the installed rooms that are on and off by the settings."""
    closed_reasons = {
        room.name: f"the setting {room.switch} is false"
        for room in installed_rooms().manifests
        if room.switch and not _value(settings, room.switch)
    }
    return room_set(settings.rooms.off, closed_reasons)


def _value(settings: Settings, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(settings.section(section), name)
