# SPDX-License-Identifier: Apache-2.0
"""Which of the installed rooms are on, and why the others are off."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import Manifest

OFF: Final = "rooms.off"
"""The setting with the names of the rooms that are switched off."""
VARIABLE: Final = "LIMNOS__ROOMS__OFF"
"""The environment variable of that setting, which the command line reads as well."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class RoomOff(NamedTuple):
    """A room that is off, and the reason as a clause."""

    manifest: Manifest
    why: str

    @property
    def reason(self) -> str:
        """The reason as a sentence for callers."""
        return f"This server does not serve {self.manifest.about}: {self.why}"


class RoomSet(NamedTuple):
    """The installed rooms that are on, and those that are off, each sorted by name."""

    on: tuple[Manifest, ...]
    off: tuple[RoomOff, ...] = ()

    def is_on(self, name: str) -> bool:
        """Return whether a room is installed and switched on."""
        return any(each.name == name for each in self.on)


def room_set(
    off: Collection[str] = (), closed: Mapping[str, str] = _NONE, *, manifests: Sequence[Manifest] | None = None
) -> RoomSet:
    """Divide the installed rooms into those that are on and those that are off.

    Args:
        off: The names in the setting `rooms.off`. Names that are not installed have no effect.
        closed: Names of further rooms that are off, each with the reason as a clause.
        manifests: The rooms; by default the installed ones.
    """
    rooms = installed_rooms().manifests if manifests is None else manifests
    reasons = {each.name: f"the setting {OFF} contains {each.name}" for each in rooms if each.name in off} | {
        each.name: closed[each.name] for each in rooms if each.name in closed
    }
    while added := {
        each.name: why for each in rooms if each.name not in reasons and (why := _lack(each, rooms, reasons=reasons))
    }:
        reasons |= added
    return RoomSet(
        tuple(each for each in rooms if each.name not in reasons),
        tuple(RoomOff(each, reasons[each.name]) for each in rooms if each.name in reasons),
    )


def _lack(manifest: Manifest, rooms: Sequence[Manifest], *, reasons: Mapping[str, str]) -> str:
    """Return why a room cannot work without another one; empty if it can."""
    for need in manifest.needs:
        if need in reasons:
            return f"{manifest.name} needs {need}, and {reasons[need]}"
        if all(each.name != need for each in rooms):
            return f"{manifest.name} needs {need}, which is not installed"
    return ""
