# SPDX-License-Identifier: Apache-2.0
"""Paths that documents and commits name."""

from __future__ import annotations

from limnos.formats.iceberg.named_paths import NAMING, NamedPath, added_paths, named_paths
from limnos.formats.iceberg.updates import ACTIONS

SNAPSHOT = {"snapshot-id": 5, "manifest-list": "/l", "manifests": ["/m", "/n", 3]}
STATISTICS = {"snapshot-id": 5, "statistics-path": "/s"}
OF_SNAPSHOT = [
    NamedPath("manifest list of snapshot 5", "/l"),
    NamedPath("manifest of snapshot 5", "/m"),
    NamedPath("manifest of snapshot 5", "/n"),
]
OF_STATISTICS = [NamedPath("statistics file of snapshot 5", "/s")]


def test_a_document_names_paths_in_four_lists() -> None:
    """Snapshots, both kinds of statistics and the metadata log name files; malformed parts name none."""
    document = {
        "snapshots": [SNAPSHOT, 4],
        "statistics": [STATISTICS],
        "partition-statistics": [STATISTICS],
        "metadata-log": [{"metadata-file": "/old"}, {}],
        "location": "/t",
    }

    assert named_paths(document) == [
        *OF_SNAPSHOT,
        *OF_STATISTICS,
        *OF_STATISTICS,
        NamedPath("metadata file in the metadata log", "/old"),
    ]
    assert named_paths({"snapshots": None, "statistics": 3}) == []


def test_updates_add_paths() -> None:
    """A commit adds paths by its snapshots and statistics."""
    updates = [
        {"action": "add-snapshot", "snapshot": SNAPSHOT},
        {"action": "set-statistics", "statistics": STATISTICS},
        {"action": "set-partition-statistics", "partition-statistics": STATISTICS},
        {"action": "set-location", "location": "/x"},
        {"action": "add-snapshot"},
        {"action": "set-statistics", "statistics": []},
        "add-snapshot",
    ]

    assert added_paths(updates) == [*OF_SNAPSHOT, *OF_STATISTICS, *OF_STATISTICS]


def test_all_other_updates_name_no_file() -> None:
    """The updates that name files are listed: a new update of Iceberg must be put on one of both lists."""
    nameless = {
        "assign-uuid",
        "upgrade-format-version",
        "set-location",
        "add-schema",
        "set-current-schema",
        "remove-schemas",
        "add-spec",
        "set-default-spec",
        "remove-partition-specs",
        "add-sort-order",
        "set-default-sort-order",
        "remove-snapshots",
        "set-snapshot-ref",
        "remove-snapshot-ref",
        "set-properties",
        "remove-properties",
        "remove-statistics",
        "remove-partition-statistics",
        "add-encryption-key",
        "remove-encryption-key",
        "limnos-mend-metadata",
    }
    assert set(ACTIONS) == nameless | set(NAMING)
