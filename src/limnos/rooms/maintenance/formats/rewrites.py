# SPDX-License-Identifier: Apache-2.0
"""Rewrites of a table's files: checks the content of a maintenance operation's commit, and that it retains the rows.

Must not read files or know leases. The server trusts neither summaries nor executors: it compares the manifests of the
new snapshot with those of the previous one. Only the row counts of data files are compared, not the rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from limnos.formats.avro import BadAvro, values_of
from limnos.model.errors import BadRequest, CommitConflict, InvalidTable
from limnos.rooms.maintenance.formats.expiry import CHECKPOINT_PREFIXES
from limnos.rooms.maintenance.formats.table_metadata import MAIN, SnapshotRef, TableMetadata

OPERATION: Final = "limnos.operation"
"""The summary key for the id of the maintenance operation that created a snapshot."""
_NOT_CARRIED: Final = frozenset({OPERATION, "limnos.run", "limnos.step"})
_STATISTICS: Final = frozenset(
    {"set-statistics", "remove-statistics", "set-partition-statistics", "remove-partition-statistics"}
)
_DATA, _POSITIONS, _EQUALITY = 0, 1, 2
_DELETED: Final = 2
_PATH_FIELD: Final = 2147483546
"""The field id of the column of a position delete file that has the paths of data files (Iceberg, reserved ids)."""


class ManifestEntry(msgspec.Struct, frozen=True, array_like=True):
    """A manifest in a manifest list; `sequence` is the sequence number that its entries inherit, `least` the minimum
    sequence number of its entries.
    """

    path: str
    has_deletes: bool
    sequence: int
    least: int


class CheckedManifest(msgspec.Struct, frozen=True, array_like=True):
    """A manifest to compare: whether the snapshots before and after the rewrite contain it, and its sequence number."""

    before: bool
    after: bool
    sequence: int


class RewriteTerms(msgspec.Struct, frozen=True):
    """The manifests to compare, and the minimum sequence number of all data files after the rewrite."""

    manifests: list[CheckedManifest]
    least_after: int
    deletes_rows: bool = False
    """Whether the operation deletes rows."""
    is_complete: bool = False
    """Whether the manifests include all of the snapshot after the rewrite."""


class RewriteFigures(msgspec.Struct, frozen=True):
    """The effect of a rewrite: the counts of removed and added files, the bytes written, and the paths of the added
    files.
    """

    removed: int
    added: int
    bytes: int
    paths: tuple[str, ...]


class RewriteRequest(NamedTuple):
    """A commit of an operation: its new snapshot (None if it changes only statistics), and paths of statistics."""

    snapshot: Mapping[str, object] | None
    statistics: tuple[str, ...]


class LiveFile(NamedTuple):
    """A live data file or delete file of a snapshot."""

    content: int
    records: int
    sequence: int
    size: int
    about: str | None
    """The only data file to which a delete file applies, if it states one."""


def rewrite_request(
    updates: Sequence[object], metadata: TableMetadata, *, deletes_rows: bool = False
) -> RewriteRequest:
    """Check and convert the updates of a maintenance operation's commit.

    The operation retains all rows unless it `deletes_rows`.

    Raises:
        BadRequest: An update is not allowed for maintenance operations, or the snapshot is malformed.
        CommitConflict: The snapshot is for a former head or schema of the table. Iceberg's client then refreshes the
            table, validates its rewrite again, and repeats the commit.
    """
    snapshot: Mapping[str, object] | None = None
    statistics: list[str] = []
    for each in updates:
        update: dict[str, object] = each if isinstance(each, dict) else {}
        action = update.get("action")
        if action == "add-snapshot" and snapshot is None:
            snapshot = _snapshot(update, metadata, deletes_rows=deletes_rows)
        elif action == "set-snapshot-ref":
            _check_ref(update, metadata, snapshot=snapshot)
        elif action in _STATISTICS:
            statistics += _statistics_paths(update)
        elif action != "assign-uuid":
            raise BadRequest(
                f"A maintenance operation may not do '{str(action)[:50]}': it may only rewrite files of {MAIN}"
            )
    return RewriteRequest(snapshot, tuple(statistics))


def _snapshot(update: Mapping[str, object], metadata: TableMetadata, *, deletes_rows: bool) -> Mapping[str, object]:
    snapshot = update.get("snapshot")
    summary = snapshot.get("summary") if isinstance(snapshot, dict) else None
    if not isinstance(snapshot, dict) or not isinstance(summary, dict):
        raise BadRequest("The new snapshot has no summary")
    allowed_operations = ("delete", "overwrite") if deletes_rows else ("replace",)
    if summary.get("operation") not in allowed_operations:
        text, names = str(summary.get("operation"))[:50], "' or '".join(allowed_operations)
        raise BadRequest(f"A maintenance operation may only create snapshots of operation '{names}', not '{text}'")
    if not isinstance(snapshot.get("manifest-list"), str) or not isinstance(snapshot.get("snapshot-id"), int):
        raise BadRequest("The new snapshot has no manifest list or no id")
    if snapshot.get("schema-id") not in (None, metadata.current_schema_id):
        raise CommitConflict("The new snapshot has another schema than the table: a rewrite must keep the schema")
    if metadata.current is None or snapshot.get("parent-snapshot-id") != metadata.current.snapshot_id:
        raise CommitConflict(f"The new snapshot does not follow the head of {MAIN}: another commit came first")
    return snapshot


def _check_ref(update: Mapping[str, object], metadata: TableMetadata, *, snapshot: Mapping[str, object] | None) -> None:
    """Check that an update of a reference moves `main` to the new snapshot and does not change its retention.

    Raises BadRequest otherwise.
    """
    main_ref = metadata.references.get(MAIN, SnapshotRef(snapshot_id=0))
    retention = (main_ref.min_snapshots_to_keep, main_ref.max_snapshot_age_ms, main_ref.max_ref_age_ms)
    requested = tuple([update.get(key) for key in ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")])
    if update.get("ref-name") != MAIN or update.get("type", "branch") != "branch":
        raise BadRequest(f"A maintenance operation may only move branch {MAIN}")
    if snapshot is None or update.get("snapshot-id") != snapshot.get("snapshot-id"):
        raise BadRequest(f"A maintenance operation may only move {MAIN} to its own new snapshot")
    if requested not in (retention, (None, None, None)):
        raise BadRequest(f"A maintenance operation may not change the retention of {MAIN}")


def _statistics_paths(update: Mapping[str, object]) -> list[str]:
    paths = []
    for key in ("statistics", "partition-statistics"):
        about = update.get(key)
        if isinstance(about, dict):
            paths.append(str(about.get("statistics-path")))
    return paths


def carried_summary(metadata: TableMetadata, operation_id: int, *, deletes_rows: bool = False) -> dict[str, str]:
    """Return the entries that the server adds to the summary of a rewrite's snapshot: the operation's id, and for each
    checkpoint key the newest value.

    Readers and writers find their checkpoint by walking back from the head of `main`. Checkpoints copied to the head
    allow older snapshots to expire. They are not copied after a deletion of rows, because incremental readers must
    process the deletion.
    """
    carried = {OPERATION: str(operation_id)}
    if metadata.current is not None and not deletes_rows:
        for each in metadata.ancestors(metadata.current.snapshot_id):
            for key, value in (each.summary or {}).items():
                if key.startswith(CHECKPOINT_PREFIXES) and key not in _NOT_CARRIED:
                    carried.setdefault(key, value)
    return carried


# ------------------------------------------------------------------------------------------- manifests


def read_manifest_entries(data: bytes) -> list[ManifestEntry]:
    """Read the manifests of a manifest list. Raises InvalidTable for a malformed list."""
    names = (("manifest_path",), ("content",), ("sequence_number",), ("min_sequence_number",))
    try:
        rows = list(values_of(data, *names, is_needed=True))
    except BadAvro as error:
        raise InvalidTable(f"A manifest list cannot be read: {error}") from error
    return [
        ManifestEntry(str(path), bool(content), _number(number), _number(least))
        for path, content, number, least in rows
    ]


def check_rewrite(terms: RewriteTerms, manifests: Sequence[bytes]) -> RewriteFigures:
    """Check by record counts that a rewrite retains the rows of the previous snapshot, or only deletes rows.

    Args:
        terms: The manifests that only one of the two snapshots has, and all manifests of delete files.
        manifests: Their bytes.

    Raises:
        BadRequest: The commit does not only rewrite files; the message has the reason.
        InvalidTable: A manifest cannot be read.
    """
    former_files: dict[tuple[str, int], LiveFile] = {}
    new_files: dict[tuple[str, int], LiveFile] = {}
    for about, data in zip(terms.manifests, manifests, strict=True):
        for key, file in _live(data, inherited=about.sequence):
            if about.before:
                former_files[key] = file
            if about.after:
                if key in new_files:
                    raise BadRequest(f"The new snapshot has file {key[0]} twice")
                new_files[key] = file
    for key in former_files.keys() & new_files.keys():
        if former_files[key] != new_files[key]:
            raise BadRequest(f"The new snapshot changes the entry of file {key[0]}, which stays: its rows would differ")
    removed_files = {key: file for key, file in former_files.items() if key not in new_files}
    added_files = {key: file for key, file in new_files.items() if key not in former_files}
    if terms.deletes_rows:
        _check_deletion(removed_files, added_files, least_after=terms.least_after)
    else:
        _check_data(removed_files.values(), added_files.values(), before=former_files.values())
        applied = _applied_deletes(removed_files, added_files, least_after=terms.least_after)
        live = sorted([path.encode() for (path, _), file in new_files.items() if not file.content])
        ranges = _path_ranges(manifests) if applied and terms.is_complete else {}
        for (path, _), file in applied.items():
            low, high = ranges.get(path, (b"", b"")) if file.about is None else [file.about.encode()] * 2
            is_known = terms.is_complete and file.content == _POSITIONS and low
            if not is_known or _has_path(live, low=low, high=high):
                raise BadRequest(f"The new snapshot leaves out delete file {path}, which may still delete rows")
    size = sum(file.size for file in added_files.values())
    return RewriteFigures(len(removed_files), len(added_files), size, tuple(sorted({path for path, _ in added_files})))


def _check_deletion(
    removed: Mapping[tuple[str, int], LiveFile], added: Mapping[tuple[str, int], LiveFile], *, least_after: int
) -> None:
    """Check that a deletion of rows adds neither rows nor equality deletes, and does not restore deleted rows by
    removing a delete file.

    Raises BadRequest otherwise.
    """
    more = _records(added.values(), _DATA) - _records(removed.values(), _DATA)
    if more > 0:
        raise BadRequest(f"The new snapshot has {more} records more than the files that it replaces: not a deletion")
    if any(file.content == _EQUALITY for file in added.values()):
        raise BadRequest("The new snapshot adds equality deletes: a deletion of old rows may only add position deletes")
    replaced_paths = {path for (path, _), file in removed.items() if not file.content}
    renewed = {file.about: file.records for file in added.values() if file.content and file.about is not None}
    for (path, _), file in removed.items():
        is_kept = file.about in replaced_paths or renewed.get(file.about or "", 0) >= file.records
        if file.content and file.sequence >= least_after and not is_kept:
            raise BadRequest(f"The new snapshot leaves out delete file {path}, which may still delete rows")


def _check_data(removed: Iterable[LiveFile], added: Iterable[LiveFile], *, before: Iterable[LiveFile]) -> None:
    """Check the record counts of data files: equal without delete files, otherwise reduced by at most the count of
    position deletes. Raises BadRequest otherwise.
    """
    lost_records = _records(removed, _DATA) - _records(added, _DATA)
    if lost_records < 0:
        raise BadRequest(
            f"The new snapshot has {-lost_records} records more than the files that it replaces: not a rewrite"
        )
    if not lost_records or any(file.content == _EQUALITY for file in before):
        return
    deletable = _records(before, _POSITIONS)
    if lost_records > deletable:
        raise BadRequest(
            f"The new snapshot has {lost_records} records fewer than the files that it replaces, and delete files"
            f" explain {deletable} of them: not a rewrite"
        )


def _applied_deletes(
    removed: Mapping[tuple[str, int], LiveFile], added: Mapping[tuple[str, int], LiveFile], *, least_after: int
) -> dict[tuple[str, int], LiveFile]:
    """Return the removed delete files that may still apply to live rows, by sequence number and referenced data file.

    Empty if position deletes were rewritten. Raises BadRequest if the rewrite adds any other delete files, or deletes
    more positions.
    """
    new = [file for file in added.values() if file.content]
    dropped_files = [(path, file) for (path, _), file in removed.items() if file.content]
    if new:
        is_deletes_alone = len(new) == len(added) and len(dropped_files) == len(removed)
        if not is_deletes_alone or any(
            file.content == _EQUALITY for file in (*new, *[file for _, file in dropped_files])
        ):
            raise BadRequest("The new snapshot adds delete files: a rewrite may only replace position deletes by fewer")
        if _records(new, _POSITIONS) > _records([file for _, file in dropped_files], _POSITIONS):
            raise BadRequest("The new snapshot deletes more positions than the files that it replaces: not a rewrite")
        return {}
    replaced_paths = {path for (path, _), file in removed.items() if not file.content}
    dropped = {key: file for key, file in removed.items() if file.content and file.sequence >= least_after}
    return {key: file for key, file in dropped.items() if file.about not in replaced_paths}


def _path_ranges(manifests: Sequence[bytes]) -> dict[str, tuple[bytes, bytes]]:
    """Return the lower and upper bounds of the column `file_path` of each position delete file.

    A truncated upper bound covers all paths that begin with it. Files without bounds are omitted.
    """
    names = ("file_path", "lower_bounds", "upper_bounds")
    ranges = {}
    for data in manifests:
        for path, lows, highs in values_of(data, *[("data_file", name) for name in names]):
            low, high = _path_bound_of(lows), _path_bound_of(highs)
            if low and high:
                ranges[str(path)] = (low, high)
    return ranges


def _path_bound_of(pairs: object) -> bytes:
    """Return the bound of the column `file_path` among a delete file's bounds; empty if it is absent."""
    items = pairs if isinstance(pairs, list) else []
    return next((bytes(each["value"]) for each in items if each["key"] == _PATH_FIELD), b"")


def _has_path(sorted_paths: Sequence[bytes], *, low: bytes, high: bytes) -> bool:
    """Return whether one of the paths is between `low` and `high`, or begins with `high`."""
    at = bisect_left(sorted_paths, low)
    return at < len(sorted_paths) and (sorted_paths[at] <= high or sorted_paths[at].startswith(high))


def _live(data: bytes, *, inherited: int) -> Iterable[tuple[tuple[str, int], LiveFile]]:
    fields = ("file_path", "content", "record_count", "file_size_in_bytes", "content_offset", "referenced_data_file")
    columns = [("data_file", name) for name in fields]
    try:
        rows = list(values_of(data, *columns, ("status",), ("sequence_number",), is_needed=True))
    except BadAvro as error:
        raise InvalidTable(f"A manifest cannot be read: {error}") from error
    for path, content, records, size, offset, about, status, number in rows:
        if status != _DELETED:
            sequence = inherited if number is None else _number(number)
            referenced = about if isinstance(about, str) else None
            file = LiveFile(
                content=_number(content),
                records=_number(records),
                sequence=sequence,
                size=_number(size),
                about=referenced,
            )
            yield (str(path), _number(offset)), file


def _records(files: Iterable[LiveFile], content: int) -> int:
    return sum(file.records for file in files if file.content == content)


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


# ------------------------------------------------------------------------------------------- writers

QUIET_MS_MIN: Final = 600_000
QUIET_MS_MAX: Final = 3_600_000
OVERWRITES_PER_REWRITE: Final = 100
"""The number of commits that overwrite or delete rows after which a busy table is rewritten."""
RECHECK_MS_MIN: Final = 60_000
"""The minimum delay before the overwrites of a busy table are counted again, in milliseconds."""
_COMMITS_MAX: Final = 50


class WriterActivity(NamedTuple):
    """The recommended delay of a rewrite because of a table's writers, in milliseconds, and whether statements that
    overwrite or delete rows are to be expected during the rewrite.
    """

    pause_ms: int
    is_busy: bool


def writer_activity(metadata: TableMetadata, *, now_ms: int) -> WriterActivity:
    """Return how long a rewrite of a table waits for its writers, and whether they are busy.

    Appends never conflict with a rewrite. A statement that overwrites or deletes rows fails if a rewrite commits while
    the statement is executed and replaces its files. So a rewrite waits until the table is quiet, as `_quiet_ms`
    defines it. A table that is never quiet is rewritten after OVERWRITES_PER_REWRITE such statements since the last
    rewrite. This bounds the table's files, and the share of statements that can fail.
    """
    if metadata.current is None:
        return WriterActivity(0, is_busy=False)
    times: list[int] = []
    overwritten_ms: int | None = None
    overwrites, is_rewritten = 0, False
    for each in metadata.ancestors(metadata.current.snapshot_id):
        operation = (each.summary or {}).get("operation", "append")
        if operation == "replace":
            is_rewritten = True
            continue
        if len(times) < _COMMITS_MAX:
            times.append(each.timestamp_ms)
        elif is_rewritten or overwritten_ms is None:
            break
        if operation != "append":
            overwritten_ms = overwritten_ms or each.timestamp_ms
            overwrites += not is_rewritten
        if overwrites == OVERWRITES_PER_REWRITE:
            break
    if overwritten_ms is None:
        return WriterActivity(0, is_busy=False)
    gap_ms = _usual_gap_ms(times)
    quiet_ms = _quiet_ms(gap_ms)
    left_ms = max(0, min(quiet_ms, overwritten_ms + quiet_ms - now_ms))
    if overwrites == OVERWRITES_PER_REWRITE:
        return WriterActivity(0, is_busy=left_ms > 0)
    due_ms = max(RECHECK_MS_MIN, (OVERWRITES_PER_REWRITE - overwrites) * gap_ms) if gap_ms else quiet_ms
    return WriterActivity(min(left_ms, due_ms), is_busy=left_ms > 0)


def _usual_gap_ms(times: Sequence[int]) -> int:
    """Return the median time between commits, in milliseconds."""
    gaps = sorted(abs(late - early) for late, early in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else 0


def _quiet_ms(gap_ms: int) -> int:
    """Return the time without overwriting commits after which a table counts as quiet, in milliseconds.

    It is 20 times the median interval between commits, from ten minutes to an hour; ten minutes if the interval is at
    least twenty minutes.
    """
    if gap_ms >= 2 * QUIET_MS_MIN:
        return QUIET_MS_MIN
    return max(QUIET_MS_MIN, min(QUIET_MS_MAX, 20 * gap_ms))
