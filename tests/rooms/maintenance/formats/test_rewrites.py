# SPDX-License-Identifier: Apache-2.0
"""Validation of rewrites: what a new snapshot may contain instead of the former files, manifest by manifest."""

from __future__ import annotations

from typing import Any

import pytest

from limnos.model.errors import BadRequest
from limnos.rooms.maintenance.formats.rewrites import (
    CheckedManifest,
    RewriteFigures,
    RewriteTerms,
    carried_summary,
    check_rewrite,
    rewrite_request,
    writer_activity,
)
from limnos.rooms.maintenance.formats.table_metadata import Snapshot, SnapshotRef, TableMetadata
from tests.iceberg_manifests import DELETED, EQUALITY, EXISTING, POSITIONS, data_file, entry, manifest

BEFORE, AFTER, BOTH = (True, False), (False, True), (True, True)
Part = tuple[tuple[bool, bool], list[dict[str, Any]]]


def check(*parts: Part, least_after: int = 0, deletes_rows: bool = False, is_complete: bool = False) -> RewriteFigures:
    """Check a rewrite whose manifests are of the snapshot before, of the one after, or of both."""
    manifests = [CheckedManifest(before, after, 5) for (before, after), _ in parts]
    terms = RewriteTerms(manifests, least_after, deletes_rows, is_complete)
    return check_rewrite(terms, [manifest(entries, version=3) for _, entries in parts])


def data(name: str, records: int = 10, *, sequence: int = 5, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a data file's entry."""
    return entry(data_file(f"file:///t/{name}", record_count=records), sequence=sequence, **more)


def deletes(name: str, records: int, content: int = POSITIONS, *, sequence: int = 6, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a delete file's entry."""
    return entry(data_file(f"file:///t/{name}", content=content, record_count=records, **more), sequence=sequence)


def test_files_may_be_merged_into_one() -> None:
    """Many files may become one with the same records. The figures have the removed and added files."""
    figures = check((BEFORE, [data("a"), data("b")]), (AFTER, [data("ab", 20)]), (BOTH, [data("kept")]))

    assert figures == RewriteFigures(2, 1, 1_000, ("file:///t/ab",))


def test_deleted_entries_are_not_files_of_snapshot() -> None:
    """Entries of status DELETED are not files of a snapshot."""
    parts: tuple[Part, ...] = (
        (BEFORE, [data("a"), data("b", status=DELETED)]),
        (AFTER, [data("a", status=DELETED), data("c")]),
    )

    assert check(*parts).paths == ("file:///t/c",)


def test_manifest_rewrite_with_same_files_is_valid() -> None:
    """The same files in other manifests are a valid rewrite. With another sequence number they are not."""
    same: Part = (AFTER, [data("a", status=EXISTING), data("b", status=EXISTING)])
    other: Part = (AFTER, [data("a", status=EXISTING), data("b", sequence=7, status=EXISTING)])

    assert check((BEFORE, [data("a")]), (BEFORE, [data("b")]), same) == RewriteFigures(0, 0, 0, ())
    with pytest.raises(BadRequest, match="changes the entry"):
        check((BEFORE, [data("a")]), (BEFORE, [data("b")]), other)


@pytest.mark.parametrize(
    "parts, reason",
    [
        ([(BEFORE, [data("a")]), (AFTER, [data("b", 11)])], "1 records more"),
        ([(BEFORE, [data("a")]), (AFTER, [data("b", 9)])], "1 records fewer"),
        ([(BEFORE, [data("a")])], "10 records fewer"),
        ([(AFTER, [data("a")])], "10 records more"),
        ([(BEFORE, [data("a")]), (AFTER, [data("kept")]), (BOTH, [data("kept")])], "twice"),
        ([(BEFORE, [data("a", 12)]), (AFTER, [data("b", 9)]), (BOTH, [deletes("d", 2)])], "3 records fewer"),
        ([(BEFORE, [deletes("d", 2)]), (BOTH, [data("a")])], "leaves out delete file"),
        ([(BEFORE, [data("a")]), (AFTER, [data("b"), deletes("d", 2)])], "adds delete files"),
        ([(BEFORE, [deletes("d", 2)]), (AFTER, [deletes("e", 3)])], "more positions"),
        ([(BEFORE, [deletes("d", 2)]), (AFTER, [deletes("e", 1, EQUALITY)])], "adds delete files"),
    ],
)
def test_invalid_rewrite_is_refused(parts: list[Part], reason: str) -> None:
    """An invalid rewrite is refused with the reason."""
    with pytest.raises(BadRequest, match=reason):
        check(*parts)


@pytest.mark.parametrize(
    "parts",
    [
        [(BEFORE, [data("a")]), (AFTER, [data("b", 8)]), (BOTH, [deletes("d", 2)])],
        [(BEFORE, [data("a")]), (AFTER, [data("b", 1)]), (BOTH, [deletes("d", 1, EQUALITY)])],
        [(BEFORE, [deletes("d", 2), deletes("e", 3)]), (AFTER, [deletes("f", 4)])],
        [(BEFORE, [data("a"), deletes("d", 2, referenced_data_file="file:///t/a")]), (AFTER, [data("b", 8)])],
        [(BEFORE, [data("a")]), (BOTH, [deletes("d", 10)])],
    ],
)
def test_rewrite_may_remove_deleted_rows(parts: list[Part]) -> None:
    """A rewrite may remove as many records as delete files delete, and may replace these by fewer delete files."""
    assert check(*parts).removed


def test_delete_file_older_than_all_data_may_be_removed() -> None:
    """A delete file may be removed if every data file is younger."""
    assert check((BEFORE, [deletes("d", 2, sequence=6)]), least_after=7).removed == 1
    with pytest.raises(BadRequest):
        check((BEFORE, [deletes("d", 2, sequence=6)]), least_after=6)


def _paths(name: str) -> dict[int, bytes]:
    """Return a bound of the path column in a position delete file."""
    return {2147483546: f"file:///t/{name}".encode()}


def test_delete_file_without_live_data_file_may_be_removed() -> None:
    """A delete file may be removed if it names no live data file, provided that all files of the table are known."""
    dangling = BEFORE, [deletes("d", 2, referenced_data_file="file:///t/a")]
    several = BEFORE, [deletes("d", 2, lower_bounds=_paths("a"), upper_bounds=_paths("c"))]

    vectors = [
        deletes("v", 2, content_offset=4 + n, referenced_data_file=f"file:///t/{each}") for n, each in enumerate("ab")
    ]

    assert check((BEFORE, vectors), (BOTH, [data("e")]), is_complete=True).removed == 2
    assert check(dangling, (BOTH, [data("b")]), is_complete=True).removed == 1
    assert check(several, (BOTH, [data("Z"), data("e")]), is_complete=True).removed == 1
    for parts, is_complete in (
        ([dangling, (BOTH, [data("b")])], False),
        ([dangling, (BOTH, [data("a")])], True),
        ([(BEFORE, [deletes("d", 2)]), (BOTH, [data("b")])], True),
        ([several, (BOTH, [data("Z"), data("b"), data("e")])], True),
        ([several, (BOTH, [data("c-longer")])], True),
        ([several, (BOTH, [data("Z")])], False),
        ([(BEFORE, vectors), (BOTH, [data("b")])], True),
        ([(BEFORE, vectors[::-1]), (BOTH, [data("b")])], True),
        ([(BEFORE, [deletes("d", 2, lower_bounds=_paths("a"))]), (BOTH, [data("z")])], True),
        ([(BEFORE, [deletes("d", 2, EQUALITY, referenced_data_file="file:///t/a")]), (BOTH, [data("b")])], True),
    ):
        with pytest.raises(BadRequest, match="may still delete rows"):
            check(*parts, is_complete=is_complete)


def history(*operations: str, gap_ms: int = 60_000) -> TableMetadata:
    """Return a table whose commits have equal intervals, the last at 10,000,000."""
    first = 10_000_000 - gap_ms * (len(operations) - 1)
    snapshots = [
        Snapshot(
            snapshot_id=number,
            timestamp_ms=first + gap_ms * (number - 1),
            parent_snapshot_id=number - 1 or None,
            summary={"operation": each},
        )
        for number, each in enumerate(operations, start=1)
    ]
    return TableMetadata(location="file:///t", current_snapshot_id=len(snapshots), snapshots=snapshots)


@pytest.mark.parametrize(
    "metadata, pause_ms",
    [
        (history("append", "append", "append"), 0),
        (history("append", "overwrite"), 1_200_000),
        (history("append", "overwrite", gap_ms=10_000), 600_000),
        (history("append", "overwrite", gap_ms=1_000), 99_000),
        (history("append", "delete", gap_ms=1_000_000), 3_600_000),
        (history("append", "delete", gap_ms=1_200_000), 600_000),
        (history("overwrite", "append", gap_ms=700_000), 2_900_000),
        (history("overwrite", "replace", "replace"), 480_000),
        (history("append", *["overwrite"] * 99), 60_000),
        (history(*["overwrite"] * 100), 0),
        (history(*["append", "delete"] * 100), 0),
        (history(*["overwrite"] * 100, "replace", "append"), 1_080_000),
        (history(*["overwrite"] * 100, "replace", *["delete"] * 99), 60_000),
        (history(*["overwrite"] * 40, "replace", "overwrite", gap_ms=1_000), 99_000),
        (history("overwrite", *["append"] * 50), 0),
        (TableMetadata(location="file:///t"), 0),
    ],
)
def test_rewrite_waits_after_overwrites(metadata: TableMetadata, pause_ms: int) -> None:
    """Appends do not delay a rewrite. After an overwrite it waits for a time without overwrites, or for a hundred
    overwrites.
    """
    assert writer_activity(metadata, now_ms=10_000_000).pause_ms == pause_ms


@pytest.mark.parametrize(
    "operations, now_ms, is_busy",
    [
        (["append"] * 3, 10_000_000, False),
        (["overwrite"] * 3, 10_000_000, True),
        (["overwrite"] * 3, 20_000_000, False),
        (["overwrite"] * 100, 10_000_000, True),
        (["overwrite"] * 100, 20_000_000, False),
    ],
)
def test_recently_overwritten_table_is_busy(operations: list[str], now_ms: int, is_busy: bool) -> None:
    """A table is busy if it was overwritten recently, whether or not a rewrite is waiting."""
    assert writer_activity(history(*operations), now_ms=now_ms).is_busy is is_busy


ABOUT_A = {"referenced_data_file": "file:///t/a"}


@pytest.mark.parametrize(
    "parts",
    [
        [(BEFORE, [data("a")])],
        [(BEFORE, [data("a")]), (AFTER, [data("b", 4)])],
        [(BOTH, [data("a")]), (AFTER, [deletes("d", 2)])],
        [(BOTH, [data("a")]), (BEFORE, [deletes("d", 2, **ABOUT_A)]), (AFTER, [deletes("e", 3, **ABOUT_A)])],
        [(BEFORE, [data("a"), deletes("d", 2, **ABOUT_A)])],
    ],
)
def test_row_deletion_may_drop_or_rewrite_files(parts: list[Part]) -> None:
    """A deletion of old rows may drop files, rewrite them with fewer rows, and add position deletes."""
    check(*parts, deletes_rows=True)

    if parts[0][0] == BEFORE:
        with pytest.raises(BadRequest, match="records fewer"):
            check(*parts)


@pytest.mark.parametrize(
    "parts, reason",
    [
        ([(AFTER, [data("b", 1)])], "1 records more"),
        ([(BEFORE, [data("a")]), (AFTER, [data("b", 11)])], "1 records more"),
        ([(BOTH, [data("a")]), (AFTER, [deletes("d", 2, EQUALITY)])], "equality deletes"),
        ([(BOTH, [data("a")]), (BEFORE, [deletes("d", 2)])], "leaves out delete file"),
        (
            [(BOTH, [data("a")]), (BEFORE, [deletes("d", 2, **ABOUT_A)]), (AFTER, [deletes("e", 1, **ABOUT_A)])],
            "leaves out delete file",
        ),
    ],
)
def test_deletion_that_adds_or_restores_rows_is_refused(parts: list[Part], reason: str) -> None:
    """A deletion that adds rows or restores deleted ones is refused."""
    with pytest.raises(BadRequest, match=reason):
        check(*parts, deletes_rows=True)


RETENTION = {"min-snapshots-to-keep": 3, "max-snapshot-age-ms": 4_000, "max-ref-age-ms": 5_000}


def moving_main(**retention: int | None) -> list[object]:
    """Return the updates of a rewrite of a table with one snapshot, which move `main` with this retention."""
    snapshot = {
        "snapshot-id": 2,
        "parent-snapshot-id": 1,
        "manifest-list": "file:///t/l",
        "summary": {"operation": "replace"},
    }
    move = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 2}
    return [{"action": "add-snapshot", "snapshot": snapshot}, {**move, **retention}]


def test_rewrite_moves_main_with_its_retention() -> None:
    """A rewrite may move `main` with the retention that the branch has, or without one."""
    main = SnapshotRef(snapshot_id=1, min_snapshots_to_keep=3, max_snapshot_age_ms=4_000, max_ref_age_ms=5_000)
    table = TableMetadata(
        location="file:///t",
        current_snapshot_id=1,
        snapshots=[Snapshot(snapshot_id=1, timestamp_ms=1, summary={})],
        refs={"main": main},
    )

    assert rewrite_request(moving_main(**RETENTION), table).snapshot
    assert rewrite_request(moving_main(), table).snapshot


@pytest.mark.parametrize("has_retention", [True, False])
@pytest.mark.parametrize("key", RETENTION)
@pytest.mark.parametrize("value", [1, 0, None])
def test_rewrite_that_changes_the_retention_of_main_is_refused(
    key: str, value: int | None, *, has_retention: bool
) -> None:
    """A rewrite may change no part of the retention of `main`, whether or not the branch has one."""
    main = SnapshotRef(snapshot_id=1, min_snapshots_to_keep=3, max_snapshot_age_ms=4_000, max_ref_age_ms=5_000)
    refs = {"main": main if has_retention else SnapshotRef(snapshot_id=1)}
    table = TableMetadata(
        location="file:///t",
        current_snapshot_id=1,
        snapshots=[Snapshot(snapshot_id=1, timestamp_ms=1, summary={})],
        refs=refs,
    )
    other = dict.fromkeys(RETENTION, None) if not has_retention else RETENTION

    with pytest.raises(BadRequest, match="retention of main"):
        rewrite_request(moving_main(**{**other, key: 7 if value is None and not has_retention else value}), table)


def test_checkpoints_are_carried_unless_rows_are_deleted() -> None:
    """A rewrite carries the newest value of each checkpoint. A deletion of rows carries none, since readers that
    continue after its snapshot would not process it.
    """
    snapshots = [
        Snapshot(snapshot_id=1, timestamp_ms=1, summary={"limnos.inputs": "old", "flink.job-id": "j"}),
        Snapshot(snapshot_id=2, timestamp_ms=2, parent_snapshot_id=1, summary={"limnos.inputs": "new", "owner": "x"}),
    ]
    table = TableMetadata(location="file:///t", current_snapshot_id=2, snapshots=snapshots)

    assert carried_summary(table, 7) == {"limnos.operation": "7", "limnos.inputs": "new", "flink.job-id": "j"}
    assert carried_summary(table, 7, deletes_rows=True) == {"limnos.operation": "7"}
