# SPDX-License-Identifier: Apache-2.0
"""Metrics for Gravitino's table operations, read from the newest snapshots of a table."""

from __future__ import annotations

import json

from limnos.model.entities import MetadataDocument
from limnos.rooms.maintenance.services.table_operations import METRICS, SNAPSHOTS_MAX, _points


def document(snapshots: int) -> MetadataDocument:
    """Return the document of a table with this number of snapshots, each with one more file."""
    summaries = [{"operation": "append", "total-data-files": str(number)} for number in range(1, snapshots + 1)]
    body = {
        "format-version": 2,
        "table-uuid": "u",
        "location": "file:///t",
        "last-updated-ms": 1,
        "current-snapshot-id": snapshots,
        "snapshots": [
            {
                "snapshot-id": number,
                "parent-snapshot-id": number - 1 or None,
                "timestamp-ms": number * 1000,
                "manifest-list": "l",
                "summary": summary,
            }
            for number, summary in enumerate(summaries, 1)
        ],
    }
    return MetadataDocument(
        node_id=1,
        version=1,
        uuid="u",
        location="file:///t",
        metadata_location="file:///t/m.json",
        body=json.dumps(body).encode(),
    )


def test_metrics_are_limited_to_the_newest_snapshots() -> None:
    """The number of metrics points is limited for a table with a long history, and the points are sorted, oldest
    first.
    """
    points = _points(document(SNAPSHOTS_MAX + 2))

    assert (len(points), {each.name for each in points}) == (SNAPSHOTS_MAX, {METRICS[0]})
    assert [points[0].value, points[-1].value] == [3, SNAPSHOTS_MAX + 2]
    assert [points[0].timestamp_s, points[-1].timestamp_s] == [3, SNAPSHOTS_MAX + 2]
