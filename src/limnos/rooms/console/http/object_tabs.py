# SPDX-License-Identifier: Apache-2.0
"""The tabs of the pages of objects, by the object's kind and a table's format.

An object's page and its access page have the same tabs, so their names are defined here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import TabEntry
from limnos.model.declared_kinds import DECLARED_KINDS
from limnos.model.kinds import Kind
from limnos.rooms.console.http.site import ConsoleSite

TABLE_TABS: Final = {
    "columns": "Columns",
    "preview": "Preview",
    "snapshots": "Snapshots",
    "lineage": "Lineage",
    "scans": "Scans",
    "properties": "Properties",
    "connect": "Connect",
    "metadata": "Metadata",
}
LANCE_TABLE_TABS: Final = {
    "columns": "Columns",
    "preview": "Preview",
    "properties": "Properties",
    "connect": "Connect",
}
NAMESPACE_TABS: Final = {"contents": "Contents", "properties": "Properties", "policies": "Policies"}
NARROW_NAMESPACE_TABS: Final = {"contents": "Contents"}
"""The tabs of a catalog or namespace of which the caller sees the name only."""
EXTERNAL_NAMESPACE_TABS: Final = {"contents": "Contents", "properties": "Properties"}
FILESET_TABS: Final = {"files": "Files", "properties": "Properties"}
OTHER_TABS: Final = {"about": "About"}
_BY_KIND: Final = {
    Kind.CATALOG: NAMESPACE_TABS,
    Kind.NAMESPACE: NAMESPACE_TABS,
    Kind.FILESET: FILESET_TABS,
}

DROPPABLE: Final = frozenset(
    {Kind.CATALOG, Kind.NAMESPACE, Kind.TABLE, Kind.VIEW, Kind.FILESET, Kind.MODEL, Kind.TOPIC, *DECLARED_KINDS}
)
"""The kinds whose objects the console can drop."""
RENAMABLE: Final = frozenset({Kind.CATALOG, Kind.NAMESPACE, Kind.TABLE, Kind.VIEW})
"""The kinds whose objects the console can rename."""

EDITABLE: Final = frozenset({Kind.CATALOG, Kind.NAMESPACE, Kind.TABLE, Kind.VIEW, Kind.FILESET, Kind.MODEL, Kind.TOPIC})
"""The kinds whose comment and properties the console can change."""


def tabs_of(kind: Kind, *, is_lance: bool, site: ConsoleSite) -> Mapping[str, str]:
    """Return the labels of the tabs of an object's page by tab name, in display order.

    `is_lance` is whether the object lies in a catalog of Lance tables. Pages of tables also have the tabs of the rooms
    that are on.
    """
    if kind is not Kind.TABLE:
        return _BY_KIND.get(kind, OTHER_TABS)
    labels = dict(LANCE_TABLE_TABS if is_lance else TABLE_TABS)
    names = list(labels)
    for entry in room_tabs(site):
        if entry.is_lance not in (None, is_lance):
            continue
        names.insert(next((names.index(name) for name in entry.before if name in names), len(names)), entry.name)
        labels[entry.name] = entry.text
    return {name: labels[name] for name in names}


def room_tabs(site: ConsoleSite) -> tuple[TabEntry, ...]:
    """Return the tabs of the rooms that are on, for pages of tables."""
    return tuple(
        entry for room in installed_rooms().manifests if room.name not in site.rooms_off for entry in room.tabs
    )
