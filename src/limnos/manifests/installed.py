# SPDX-License-Identifier: Apache-2.0
"""The rooms that are installed: those of this distribution, and those of other packages by the entry point
`limnos.rooms`.

A room of this distribution is a package below `limnos.rooms` with a module `manifest`; so a room whose folder is
missing is not installed. An entry point names the manifest of another package, `name = "package.module:MANIFEST"`. Its
name is the room's name.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from limnos.manifests.manifest import Manifest, load

ROOMS: Final = "limnos.rooms"
"""The group of entry points of rooms, and the package of the rooms of this distribution."""
CONNECTORS: Final = "limnos.connectors"
"""The group of entry points of connectors."""
_NAME: Final = "MANIFEST"


class BrokenEntry(NamedTuple):
    """An entry point that cannot be used: its name, its value, and the reason."""

    name: str
    value: str
    reason: str


class InstalledRooms(NamedTuple):
    """The manifests of the installed rooms by name, and the entry points that cannot be used."""

    manifests: tuple[Manifest, ...]
    broken: tuple[BrokenEntry, ...] = ()


class EntryPoint(NamedTuple):
    """An entry point of another package: its name, and its value `module:name`."""

    name: str
    value: str


@cache
def installed_rooms() -> InstalledRooms:
    """Return the installed rooms, sorted by name. Read once for each process: installing one needs a restart."""
    manifests: dict[str, Manifest] = {each.name: each for each in _own_manifests()}
    broken_entries: list[BrokenEntry] = []
    for each in entry_points(ROOMS):
        try:
            manifest = _load_manifest(each, manifests)
        except Exception as error:  # noqa: BLE001 - code of another package: every error is shown with its name
            broken_entries.append(BrokenEntry(each.name, each.value, f"{type(error).__name__}: {error}"))
        else:
            manifests[manifest.name] = manifest
    return InstalledRooms(tuple(manifests[name] for name in sorted(manifests)), tuple(broken_entries))


def _own_manifests() -> Iterator[Manifest]:
    folder = Path(__file__).parents[1] / "rooms"
    if not folder.is_dir():
        return
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 - the fastest way; every start of a command does this
        if (folder / name / "manifest.py").is_file():
            yield importlib.import_module(f"{ROOMS}.{name}.manifest").MANIFEST


def _load_manifest(entry: EntryPoint, manifests: dict[str, Manifest]) -> Manifest:
    manifest = load(entry.value)
    if not isinstance(manifest, Manifest):
        raise TypeError(f"{entry.value} is no Manifest")
    if manifest.name != entry.name:
        raise ValueError(f"the entry point is named {entry.name}, its room {manifest.name}")
    if manifest.name in manifests:
        raise ValueError(f"there are two rooms {manifest.name}")
    return manifest


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, sorted by name.

    `importlib.metadata` takes tens of milliseconds to import and to search, which every command would pay. So it is
    used only if a file `entry_points.txt` of an installed package has the group.
    """
    if not any(_has_group(Path(folder or "."), f"[{group}]".encode()) for folder in sys.path):
        return ()
    from importlib import metadata  # noqa: PLC0415 - slow, and needed only with rooms of other packages

    manifests = {(each.name, each.value) for each in metadata.entry_points(group=group)}
    return tuple(EntryPoint(name, value) for name, value in sorted(manifests))


def _has_group(folder: Path, heading: bytes) -> bool:
    try:
        names = [each.path for each in os.scandir(folder) if each.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    for name in names:
        try:
            with open(f"{name}/entry_points.txt", "rb") as file:  # noqa: PTH123 - as above
                if heading in file.read():
                    return True
        except OSError:
            continue
    return False
