# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of pipelines, which are stored in the summaries of a published table's snapshots.

Reads a checkpoint from a table's metadata, newest snapshot first. Must not know pipelines or Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import msgspec

from limnos.client.values import Json
from limnos.pipeline.outcomes import LANCE_STATE

INPUTS = "limnos.inputs"
"""Summary key: JSON that maps each table or view to the snapshot that was read, or to the view's definition."""
RUN = "limnos.run"
"""Summary key: the id of the run that wrote the snapshot."""
_LANCE_STATE = re.compile(rf"{LANCE_STATE}([0-9]{{1,18}}):[0-9a-f]*")
_NO_SNAPSHOT = -1
"""The value of `current-snapshot-id` in older metadata of a table without snapshots: -1."""


class _CheckpointSnapshot(msgspec.Struct, rename="kebab"):
    snapshot_id: int
    parent_snapshot_id: int | None = None
    summary: dict[str, str] = {}


class _CheckpointMetadata(msgspec.Struct, rename="kebab"):
    """The part of a table's metadata that checkpoints need."""

    current_snapshot_id: int | None = None
    snapshots: list[_CheckpointSnapshot] = []


def head_of(fields: Json | None) -> int | None:
    """Return the id of the newest snapshot of `main`, or None for an empty table."""
    head = _metadata(fields).current_snapshot_id
    return None if head == _NO_SNAPSHOT else head


def checkpoint_of(fields: Json | None) -> Mapping[str, str]:
    """Return the summary of the newest snapshot that has a checkpoint, by its key `INPUTS`.

    Searches the head of `main` and its unexpired ancestors. Returns an empty mapping if no snapshot has one.
    """
    metadata = _metadata(fields)
    snapshots_by_id = {one.snapshot_id: one for one in metadata.snapshots}
    at = snapshots_by_id.pop(metadata.current_snapshot_id or _NO_SNAPSHOT, None)
    while at is not None:  # maintenance adds snapshots after a run's; each snapshot is visited once
        if INPUTS in at.summary:
            return at.summary
        at = snapshots_by_id.pop(at.parent_snapshot_id or _NO_SNAPSHOT, None)
    return {}


def inputs_of(text: str | None) -> Mapping[str, int | str | None] | None:
    """Parse the summary value `INPUTS`: JSON that maps each input's name to its snapshot id, its fingerprint or null.

    Returns None if there is no value or it is not a JSON object; entries of other types are dropped. The form is
    checked because every writer of the table can write this value (decision record 0056).
    """
    try:
        result = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(result, dict):
        return None
    return {
        name: state
        for name, state in result.items()
        if state is None or isinstance(state, str) or (isinstance(state, int) and not isinstance(state, bool))
    }


def snapshot_of(state: int | str | None) -> int | None:
    """Return the snapshot in an input's state, or of a Lance table the number of its version; None for other states.

    The form is checked, as that of the whole checkpoint.
    """
    if isinstance(state, str):
        match = _LANCE_STATE.fullmatch(state)
        return None if match is None else int(match[1])
    return state if isinstance(state, int) else None


def _metadata(fields: Json | None) -> _CheckpointMetadata:
    return msgspec.convert(fields or {}, _CheckpointMetadata)
