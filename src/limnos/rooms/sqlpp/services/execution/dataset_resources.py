# SPDX-License-Identifier: Apache-2.0
"""Rows of the functions `dataset_resources` and `storage_components`: a dataset's indexes, and the commits of its
files.

Must not know any wire format. All values come from a table's metadata; no file is read. Only the primary index has
files of its own: other indexes are metadata only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language.definitions import index_name
from limnos.rooms.sqlpp.language.metadata import METADATA
from limnos.rooms.sqlpp.language.values.model import Value
from limnos.rooms.sqlpp.services.definitions.datasets import indexes_of
from limnos.rooms.sqlpp.services.requests.names import scope_of, source_find
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView

NODE: Final = "limnos"


class _ComponentSnapshot(msgspec.Struct, rename="kebab"):
    snapshot_id: int
    sequence_number: int = 0
    summary: dict[str, str] = {}


class _ComponentMetadata(msgspec.Struct, rename="kebab"):
    location: str = ""
    current_snapshot_id: int | None = None
    snapshots: list[_ComponentSnapshot] = []


async def resources_read(ctx: Context, sources: Sequence[tuple[Levels, str]]) -> list[tuple[Value, ...]]:
    """Return the rows of the functions on datasets' resources, all in one request view. Raises SqlppError,
    PermissionDenied.
    """

    def read(request_view: RequestView) -> list[tuple[Value, ...]]:
        request_view.require_in_use()
        return [resource_rows(request_view, each[0][1], path=(*each[0][2:], each[1])) for each in sources]

    return await ctx.read(scope_of(ctx), read)


def resource_rows(request_view: RequestView, function: str, *, path: Levels) -> tuple[Value, ...]:
    """Return the rows of one of the two functions for a dataset; empty for an object that has no table.

    Access is decided again, because the name was bound in an earlier request view. Raises PermissionDenied, CacheMiss.
    """
    if path[:-1] == METADATA:
        return (
            (_resource(f"metadata/{path[-1]}", 0),) if function == "dataset_resources" else (_components(path[-1], ()),)
        )
    node = source_find(request_view, path)
    if node is None or node.kind is not Kind.TABLE:
        return ()
    metadata = msgspec.json.decode(request_view.document(node.id).body, type=_ComponentMetadata)
    others = [index_name(each, path[-1]) for each in indexes_of(node)]
    if function == "dataset_resources":
        current = next((each for each in metadata.snapshots if each.snapshot_id == metadata.current_snapshot_id), None)
        files = 0 if current is None else _number(current, "total-data-files")
        return (_resource(metadata.location, files), *(_resource(f"{metadata.location}#{name}", 0) for name in others))
    return (
        _components(metadata.location, tuple(metadata.snapshots)),
        *(_components(f"{metadata.location}#{name}", ()) for name in others),
    )


def _resource(place: str, files: int) -> Value:
    return {"dir": place, "memory": 0, "disk": files, "num-scheduled-flushes": 0, "current-memory-component": 0}


def _components(place: str, snapshots: tuple[_ComponentSnapshot, ...]) -> Value:
    """Return the storage components of an index: one for each commit that added files, oldest first."""
    result: list[Value] = [
        {
            "min": each.sequence_number,
            "max": each.sequence_number,
            "size": _number(each, "added-files-size"),
            "component": f"snapshot {each.snapshot_id}",
        }
        for each in sorted(snapshots, key=lambda each: each.sequence_number)
        if _number(each, "added-data-files")
    ]
    return {"node": NODE, "path": place, "components": tuple(result)}


def _number(snapshot: _ComponentSnapshot, name: str) -> int:
    text = snapshot.summary.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() else 0
