"""Recognise a commit that has already happened: its answer was lost and the client sends it again.

May import the standard library and this package. Must not know requirements, files or stores.
"""

from __future__ import annotations

from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.metadata import rows


def is_replay(base: Json | None, updates: list[object]) -> bool:
    """Whether the updates add snapshots and `base` holds every one of them already, with equal content.

    Snapshot ids are random 63-bit numbers, so equal ids with equal content mean the same commit.
    """
    actions = [one for one in updates if isinstance(one, dict) and one.get("action") == "add-snapshot"]
    added = [one.get("snapshot") for one in actions]
    if base is None or not added:
        return False
    known = rows(base, "snapshots")
    return all(isinstance(one, dict) and any(_equal(one, row) for row in known) for one in added)


def _equal(one: Json, other: Json) -> bool:
    """Equal content; a missing field and a null one are the same."""
    return one.get("snapshot-id") == other.get("snapshot-id") and _present(one) == _present(other)


def _present(snapshot: Json) -> Json:
    return {key: value for key, value in snapshot.items() if value is not None}
