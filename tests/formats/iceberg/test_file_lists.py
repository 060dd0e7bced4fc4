# SPDX-License-Identifier: Apache-2.0
"""Files named by manifest lists, manifests and commits: new files, live files, and their lengths."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.file_lists import (
    AddedSnapshots,
    FilePage,
    ListedFile,
    ListedManifest,
    SnapshotFiles,
    added_snapshots,
    manifest_files,
    read_manifest,
    read_manifest_list,
    snapshots_of,
    statistics_of,
)
from limnos.formats.iceberg.named_paths import NamedPath
from limnos.model.errors import InvalidTable
from tests.iceberg_manifests import DELETED, EXISTING, data_file, entry, listed, manifest, manifest_list

MANIFEST = manifest(
    [
        entry(data_file("a")),
        entry(data_file("b"), status=EXISTING, snapshot=1, sequence=1),
        entry(data_file("c", file_size_in_bytes=5)),
        entry(data_file("c", file_size_in_bytes=5)),
        entry(data_file("d"), status=DELETED, snapshot=1, sequence=1),
    ]
)


@pytest.mark.parametrize("version", [2, 3])
def test_manifests_have_length_and_snapshot(version: int) -> None:
    """Each manifest of a list has its length and the snapshot that added it."""
    data = manifest_list([listed("m1", b"12345", snapshot=7), listed("m2", b"", snapshot=8)], version=version)

    assert read_manifest_list(data) == (ListedManifest("m1", 5, 7), ListedManifest("m2", 0, 8))


def test_manifest_returns_added_or_live_files() -> None:
    """The files of a manifest are those that it adds, or all live ones. Two consecutive equal entries are one file."""
    a, b, c = ListedFile("a", 1000), ListedFile("b", 1000), ListedFile("c", 5)

    assert read_manifest(MANIFEST, only_added=True, limit=9) == FilePage((a, c), has_more=False)
    assert read_manifest(MANIFEST, only_added=False, limit=9) == FilePage((a, b, c), has_more=False)


def test_manifest_is_read_in_pages() -> None:
    """A page of a manifest says whether more entries follow, and the next page begins after its last entry."""
    pages = [read_manifest(MANIFEST, only_added=False, skip=number, limit=1) for number in range(4)]

    assert [[each.path for each in page.files] for page in pages] == [["a"], ["b"], ["c"], []]
    assert [page.has_more for page in pages] == [True, True, False, False]


def test_damaged_manifests_are_reported() -> None:
    """A damaged manifest or manifest list is reported as such."""
    for damaged in (b"", b"no", MANIFEST[:-20]):
        with pytest.raises(InvalidTable):
            read_manifest(damaged, only_added=False, limit=9)
        with pytest.raises(InvalidTable):
            read_manifest_list(damaged)
        with pytest.raises(InvalidTable):
            list(manifest_files(damaged))


def test_live_files_have_content_and_rows() -> None:
    """Live files have size, format and rows, and say whether they are delete files."""
    data = manifest([*map(entry, (data_file("a", record_count=4), data_file("b", content=1)))])
    data_entry, delete_entry = manifest_files(data)

    assert (data_entry.path, data_entry.size, data_entry.row_count, data_entry.is_delete) == ("a", 1000, 4, False)
    assert (delete_entry.path, delete_entry.is_delete) == ("b", True)
    assert [each.path for each in manifest_files(MANIFEST)] == ["a", "b", "c"]


def test_commit_adds_snapshots_with_locations() -> None:
    """A commit adds snapshots with their locations. Invalid updates are ignored here, because the commit refuses
    them.
    """
    snapshot = {"snapshot-id": 5, "manifest-list": "l", "timestamp-ms": 9}
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-location", "location": "file:///n"},
        {"action": "set-properties", "updates": {"write.data.path": "file:///d", "k": "v"}},
        {"action": "add-snapshot"},
        5,
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 6, "manifests": ["m", 1]}},
    ]

    assert added_snapshots(updates) == AddedSnapshots(
        (SnapshotFiles(5, "l", (), 9), SnapshotFiles(6, None, ("m",))),
        ("file:///n", "file:///d"),
        (NamedPath("manifest list of snapshot 5", "l"), NamedPath("manifest of snapshot 6", "m")),
    )
    assert added_snapshots(updates[1:3]) == AddedSnapshots((), ())


def test_only_the_last_locations_of_a_commit_count() -> None:
    """A location that a later update of the same commit replaces or removes gives the table no files, in each spelling
    of the updates: no rule has checked it.
    """
    added = {"action": "add-snapshot", "snapshot": {"snapshot-id": 5, "manifest-list": "l"}}
    for sets, removes in (("updates", "removals"), ("updated", "removed")):
        updates = [
            {"action": "set-location", "location": "file:///x"},
            {"action": "set-properties", sets: {"write.data.path": "file:///y"}},
            added,
            {"action": "set-location", "location": "file:///n"},
            {"action": "remove-properties", removes: ["write.data.path"]},
        ]

        assert added_snapshots(updates).new_places == ("file:///n",)


def test_metadata_returns_snapshots_and_statistics_files() -> None:
    """Snapshots are ordered by age. Statistics of the table and of its partitions have their lengths."""
    metadata = {
        "snapshots": [
            {"snapshot-id": 2, "timestamp-ms": 5},
            {"snapshot-id": 1, "timestamp-ms": 4, "manifest-list": "l"},
        ],
        "statistics": [{"statistics-path": "s", "file-size-in-bytes": 3}],
        "partition-statistics": [{"statistics-path": "p"}],
    }

    assert snapshots_of(metadata) == [SnapshotFiles(1, "l", (), 4), SnapshotFiles(2, None, (), 5)]
    assert statistics_of(metadata) == [ListedFile("s", 3), ListedFile("p", None)]
