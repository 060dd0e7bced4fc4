# SPDX-License-Identifier: Apache-2.0
"""Metadata documents of tables for the maintenance tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

DAY_MS = 86_400_000
NOW_MS = 1_800_000_000_000


def snapshot(number: int, *, parent: int | None = None, age_days: float = 10, **summary: str) -> dict[str, Any]:
    """Return a snapshot of this many days ago, whose id is 100 times its number."""
    entry: dict[str, Any] = {
        "snapshot-id": number * 100,
        "sequence-number": number,
        "timestamp-ms": NOW_MS - round(age_days * DAY_MS),
        "manifest-list": f"file:///t/metadata/snap-{number}.avro",
        "summary": {"operation": "append", **{key.replace("_", "-"): value for key, value in summary.items()}},
    }
    return entry if parent is None else {**entry, "parent-snapshot-id": parent * 100}


def table(
    snapshots: Sequence[Mapping[str, Any]] = (), *, refs: Mapping[str, Mapping[str, Any]] | None = None, **more: object
) -> dict[str, Any]:
    """Return a table's metadata. Without `refs`, `main` is at the last snapshot."""
    last = snapshots[-1]["snapshot-id"] if snapshots else None
    main = {} if last is None else {"main": {"snapshot-id": last, "type": "branch"}}
    return {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "file:///t",
        "current-snapshot-id": -1 if last is None else last,
        "snapshots": list(snapshots),
        "refs": {**main, **(refs or {})},
        "properties": {},
        **more,
    }


def chain(count: int, *, first_age_days: float = 30, step_days: float = 1) -> list[dict[str, Any]]:
    """Return consecutive snapshots, the oldest first."""
    return [
        snapshot(number, parent=number - 1 or None, age_days=first_age_days - step_days * (number - 1))
        for number in range(1, count + 1)
    ]


def body(document: Mapping[str, Any]) -> bytes:
    """Return the document as stored."""
    return json.dumps(document).encode()
