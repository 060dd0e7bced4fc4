"""What the snapshots of a published table say of the runs that made them.

Job: read marks from a table's metadata, the newest first. May import `client`'s types. It must not know pipelines nor Spark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.client.values import Json

INPUTS = "limnos.inputs"
"""JSON: table or view -> snapshot that was read, or what its definition was. In the summary of what a step wrote."""
RUN = "limnos.run"
"""The run that made it."""
_NO_SNAPSHOT = -1
"""How older metadata says that a table has no snapshot."""


class _CheckpointSnapshot(msgspec.Struct, rename="kebab"):
    snapshot_id: int
    parent_snapshot_id: int | None = None
    summary: dict[str, str] = {}


class _CheckpointMetadata(msgspec.Struct, rename="kebab"):
    """What of a table's metadata is looked at here."""

    current_snapshot_id: int | None = None
    snapshots: list[_CheckpointSnapshot] = []


def head_of(found: Json | None) -> int | None:
    """The newest snapshot of `main`."""
    head = _metadata(found).current_snapshot_id
    return None if head == _NO_SNAPSHOT else head


def mark_of(found: Json | None, key: str) -> str | None:
    """A mark in the newest summary that has it, from the head of `main` back as far as snapshots are kept."""
    metadata = _metadata(found)
    known = {one.snapshot_id: one for one in metadata.snapshots}
    at = known.pop(metadata.current_snapshot_id or _NO_SNAPSHOT, None)
    while at is not None:  # maintenance lays snapshots on top; each is looked at once
        if key in at.summary:
            return at.summary[key]
        at = known.pop(at.parent_snapshot_id or _NO_SNAPSHOT, None)
    return None


def inputs_of(told: str | None) -> Mapping[str, int | str | None] | None:
    """Read a mark of inputs; None where it is nothing that a step writes.

    Whoever may write a table may write this, too (decision record 0056), so nothing rests on its form.
    """
    try:
        found = json.loads(told or "")
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    return {
        name: state
        for name, state in found.items()
        if state is None or isinstance(state, str) or (isinstance(state, int) and not isinstance(state, bool))
    }


def _metadata(found: Json | None) -> _CheckpointMetadata:
    return msgspec.convert(found or {}, _CheckpointMetadata)
