# SPDX-License-Identifier: Apache-2.0
"""Settings of rooms: which are switched off, and the sections of rooms that other packages bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from limnos.config.section import SettingsSection
from limnos.config.values import Words
from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import load


class RoomsSection(SettingsSection):
    """Rooms: the optional parts of the server."""

    off: Annotated[tuple[str, ...], Words] = ()
    """Names of rooms that are switched off, separated by commas: `connectors`, `console`, `exchange`, `gravitino`,
    `jobs`, `lance`, `maintenance`, `pipelines`, `search`, `sqlpp`, and those of other packages. Their routes answer 404
    with the reason, their tasks and tables stay as they are.
    """


def added_sections(static: Mapping[str, type[SettingsSection]]) -> dict[str, type[SettingsSection]]:
    """Return the sections that rooms of other packages bring, by name.

    `static` are the sections of this distribution. Raises ValueError for a section whose name is taken, TypeError for
    one that is none, and the errors of its import.
    """
    results: dict[str, type[SettingsSection]] = {}
    for room in installed_rooms().manifests:
        for entry in room.settings:
            static_section = static.get(entry.name)
            if (
                static_section is not None
                and entry.section == f"{static_section.__module__}:{static_section.__qualname__}"
            ):
                continue
            model = load(entry.section)
            if static_section is not None or entry.name in results:
                raise ValueError(f"the section '{entry.name}' of room {room.name} exists already")
            if not (isinstance(model, type) and issubclass(model, SettingsSection)):
                raise TypeError(f"{entry.section} of room {room.name} is no SettingsSection")
            results[entry.name] = model
    return results


def unknown_rooms(names: tuple[str, ...]) -> str:
    """Return an error message if names in `rooms.off` are no installed rooms; empty if all are."""
    rooms = installed_rooms()
    room_names = [*(each.name for each in rooms.manifests), *(each.name for each in rooms.broken)]
    wrong = [name for name in names if name not in room_names]
    return f"there is no room '{wrong[0]}'; installed are {', '.join(sorted(room_names))}" if wrong else ""
