# SPDX-License-Identifier: Apache-2.0
"""Assessment of tables: finds needed maintenance from a table's metadata, and from its manifests if that is worthwhile.

Must not read files. Summaries of snapshots come from clients and may be wrong: they influence which maintenance is
proposed and reported, but never which files are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from limnos.formats.avro import BadAvro, field_names, values_of
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.errors import BadRequest, InvalidTable
from limnos.model.number_texts import count_with_noun
from limnos.rooms.maintenance.formats.expiry import ExpiryGuards, ExpiryRules, plan_expiry
from limnos.rooms.maintenance.formats.row_retention import RETENTION, RetentionRule, retention_terms
from limnos.rooms.maintenance.formats.table_metadata import TableMetadata, metadata_of

COMPACT: Final = "compact"
DELETES: Final = "deletes"
MANIFESTS: Final = "manifests"
EXPIRE: Final = "expire"
METADATA: Final = "metadata"
KINDS: Final = (COMPACT, DELETES, MANIFESTS, RETENTION, EXPIRE, METADATA)
"""Kinds of findings."""
TARGET_FILE_SIZE: Final = "write.target-file-size-bytes"
TARGET_BYTES_DEFAULT: Final = 128 << 20
SMALL_SHARE: Final = 0.75
"""The share of the target size below which a file is small."""
EXCESS_FILES_MIN: Final = 5
INPUT_FILES_MIN: Final = 5
"""The minimum number of small files in a partition for which rewriting is worthwhile."""
MANIFESTS_MIN: Final = 100
MANIFEST_ENTRIES_MIN: Final = 50
DOCUMENT_BYTES_MAX: Final = 256 << 10
OLD_FILES_MIN: Final = 100
READERS_MAX: Final = 100
INPUTS: Final = "limnos.inputs"
"""The summary key of the checkpoint of an incremental pipeline step: JSON of the snapshots that it has read, by
table.
"""


class AssessmentRules(msgspec.Struct, frozen=True, kw_only=True):
    """The thresholds for one table: those of its effective policies, else the defaults."""

    older_than_ms: int | None = None
    retain_last: int | None = None
    recent_ms: int = 3_600_000
    """The time in milliseconds for which a snapshot stays after it was last current, as in `ExpiryRules`."""
    snapshots_min: int = 10
    delete_files_min: int | None = None
    """The threshold of delete files; None for one delete file per eight data files."""
    data_file_mse_min: int | None = None
    """The threshold of the mean squared difference between file sizes and the target, in bytes squared; None for the
    default rule.
    """
    retention: RetentionRule | None = None
    """The rows that a policy deletes."""


class AssessmentFinding(msgspec.Struct, frozen=True, array_like=True):
    """Maintenance that a table needs: its kind, its benefit, the reason, and figures."""

    kind: str
    score: int
    """The approximate number of files or snapshots that the operation would remove."""
    reason: str
    figures: dict[str, int]


class ReadCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """A table that this table's writer reads incrementally, and the last snapshot that it has read."""

    source: str
    snapshot_id: int
    at_ms: int


class Assessment(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The result of assessing one table."""

    findings: tuple[AssessmentFinding, ...]
    manifest_list: str | None = None
    """The manifest list to read, if reading its manifests is worthwhile."""
    target_bytes: int = TARGET_BYTES_DEFAULT
    checkpoints: tuple[ReadCheckpoint, ...] = ()
    snapshot_id: int | None = None
    unreadable: str | None = None


class ManifestFigures(msgspec.Struct, frozen=True, array_like=True):
    """Counts from manifests: all data files, and the small ones in partitions that have enough small files to
    compact.
    """

    files: int
    small_files: int
    small_bytes: int
    partitions: int


class ManifestRow(msgspec.Struct, frozen=True, array_like=True):
    """A manifest of data files in a manifest list."""

    path: str
    size: int
    entries: int


def target_of(metadata: TableMetadata) -> int:
    """Return the target size of data files in bytes: `write.target-file-size-bytes`, else the default."""
    return metadata.number(TARGET_FILE_SIZE) or TARGET_BYTES_DEFAULT


def assess_table(body: bytes, location: str, *, rules: AssessmentRules, now_ms: int) -> Assessment:
    """Assess a table by its metadata only.

    Args:
        body: The metadata.
        location: The location of its metadata file, whose name contains the version (the count of commits).
        rules: The thresholds.
        now_ms: The store's time.
    """
    try:
        metadata = metadata_of(body)
    except InvalidTable as error:
        return Assessment(findings=(), unreadable=error.message)
    current = metadata.current
    findings: list[AssessmentFinding] = []
    wants_manifests = False
    if current is not None:
        files, size, deletes = (
            current.count(key) for key in ("total-data-files", "total-files-size", "total-delete-files")
        )
        wants_manifests = _is_fragmented(files, size, target=target_of(metadata), rules=rules)
        findings += _deletes(files, deletes, target=target_of(metadata), rules=rules)
        findings += _old_rows(metadata, rules, now_ms=now_ms)
    findings += _expiry(metadata, rules, now_ms=now_ms)
    commits = iceberg_metadata.version_of(location)
    findings += _metadata_files(metadata, len(body), version=commits)
    reads_manifests = current is not None and (wants_manifests or commits >= MANIFESTS_MIN)
    return Assessment(
        findings=tuple(findings),
        manifest_list=current.manifest_list if reads_manifests and current is not None else None,
        target_bytes=target_of(metadata),
        checkpoints=_read_checkpoints(metadata),
        snapshot_id=None if current is None else current.snapshot_id,
    )


def _is_fragmented(files: int | None, size: int | None, *, target: int, rules: AssessmentRules) -> bool:
    """Return whether a table has many more files than its total size needs.

    `target` is the target file size in bytes.
    """
    if not files or size is None:
        return False
    if rules.data_file_mse_min is not None:
        return files >= INPUT_FILES_MIN and (target - size // files) ** 2 >= rules.data_file_mse_min
    return files - -(-size // target) >= EXCESS_FILES_MIN and size / files < SMALL_SHARE * target


def _deletes(files: int | None, deletes: int | None, *, target: int, rules: AssessmentRules) -> list[AssessmentFinding]:
    """Return a finding if the table has many delete files. `target` is the target file size in bytes."""
    least = rules.delete_files_min if rules.delete_files_min is not None else max(1, (files or 0) // 8)
    if not deletes or deletes < least:
        return []
    reason = f"{deletes} delete files and {files or 0} data files: each reader applies the delete files"
    figures = {"delete_files": deletes, "data_files": files or 0, "target_bytes": target}
    return [AssessmentFinding(DELETES, deletes, reason, figures)]


def _old_rows(metadata: TableMetadata, rules: AssessmentRules, *, now_ms: int) -> list[AssessmentFinding]:
    """Return a finding if a row retention policy applies to the table and it has rows.

    Only a query can determine whether it has old rows.
    """
    if rules.retention is None or (metadata.current is not None and metadata.current.count("total-records") == 0):
        return []
    try:
        terms = retention_terms(metadata, rules.retention, now_ms=now_ms)
    except BadRequest:
        return []
    reason = f"rows whose {terms.column} is older than {rules.retention.days} days are deleted once a day"
    return [AssessmentFinding(RETENTION, 1, reason, {"days": rules.retention.days})]


def _expiry(metadata: TableMetadata, rules: AssessmentRules, *, now_ms: int) -> list[AssessmentFinding]:
    count = len(metadata.snapshots or ())
    if count <= rules.snapshots_min:
        return []
    terms = ExpiryRules(rules.older_than_ms, rules.retain_last, rules.recent_ms)
    plan = plan_expiry(metadata, terms, guards=ExpiryGuards(), now_ms=now_ms)
    if not plan.removed:
        return []
    reason = f"{len(plan.removed)} of {count} snapshots have expired"
    return [AssessmentFinding(EXPIRE, len(plan.removed), reason, {"snapshots": count, "removable": len(plan.removed)})]


def _metadata_files(metadata: TableMetadata, size: int, *, version: int) -> list[AssessmentFinding]:
    log = len(metadata.metadata_log or ())
    deletes_old = (metadata.text(iceberg_metadata.DELETE_AFTER_COMMIT) or "").lower() == "true"
    old = 0 if deletes_old else max(0, version - log)
    if size <= DOCUMENT_BYTES_MAX and old < OLD_FILES_MIN:
        return []
    parts = []
    if size > DOCUMENT_BYTES_MAX:
        parts.append(f"its metadata has {size >> 10} KiB, which each commit rewrites")
    if old >= OLD_FILES_MIN:
        parts.append(f"about {old} metadata files are outside of its metadata log and are kept")
    figures = {"document_bytes": size, "old_metadata_files": old, "metadata_log": log}
    score = size >> 10 if size > DOCUMENT_BYTES_MAX else 1  # old files do not slow readers or writers down
    return [AssessmentFinding(METADATA, score, "; ".join(parts), figures)]


def _read_checkpoints(metadata: TableMetadata) -> tuple[ReadCheckpoint, ...]:
    """Return the checkpoints of the incremental steps that write this table, from the newest snapshot of `main` with
    one.
    """
    if not any(INPUTS in (each.summary or ()) for each in metadata.snapshots or ()) or metadata.current is None:
        return ()
    for each in metadata.ancestors(metadata.current.snapshot_id):
        text = (each.summary or {}).get(INPUTS)
        if text is not None:
            return tuple(_inputs(text, at_ms=each.timestamp_ms)[:READERS_MAX])
    return ()


def _inputs(text: str, *, at_ms: int) -> list[ReadCheckpoint]:
    try:
        inputs = json.loads(text)
    except (ValueError, RecursionError):
        return []
    rows = inputs.items() if isinstance(inputs, dict) else ()
    return [
        ReadCheckpoint(name[:1000], state, at_ms)
        for name, state in rows
        if isinstance(state, int) and not isinstance(state, bool) and 0 <= state < 1 << 63
    ]


# ------------------------------------------------------------------------------------------- manifests


def read_manifest_rows(data: bytes) -> list[ManifestRow]:
    """Read the manifests of data files in a manifest list. Raises InvalidTable for a malformed list."""
    paths = (("manifest_path",), ("manifest_length",), ("content",), ("added_files_count",), ("existing_files_count",))
    try:
        rows = list(values_of(data, *paths, is_needed=True))
    except BadAvro as error:
        raise InvalidTable(f"A manifest list cannot be read: {error}") from error
    return [
        ManifestRow(path, _number(size), _number(added_count) + _number(existing_count))
        for path, size, content, added_count, existing_count in rows
        if isinstance(path, str) and not content
    ]


def read_small_files(manifests: Sequence[bytes], *, target_bytes: int) -> ManifestFigures:
    """Count the small data files by partition, in manifests of one table.

    Raises InvalidTable for a malformed manifest.
    """
    files, by_partition = 0, {}  # type: int, dict[tuple[object, ...], list[int]]
    for data in manifests:
        try:
            names = field_names(data, "data_file", "partition")
            paths = [("data_file", "partition", name) for name in names]
            columns = (("data_file", "file_size_in_bytes"), ("status",), ("data_file", "content"), *paths)
            for size, status, content, *partition in values_of(data, *columns, is_needed=True):
                if status == _DELETED or content:
                    continue
                files += 1
                if _number(size) < SMALL_SHARE * target_bytes:
                    totals = by_partition.setdefault(tuple(partition), [0, 0])
                    totals[0] += 1
                    totals[1] += _number(size)
        except BadAvro as error:
            raise InvalidTable(f"A manifest cannot be read: {error}") from error
    many = [pair for pair in by_partition.values() if pair[0] >= INPUT_FILES_MIN]
    return ManifestFigures(files, sum(one[0] for one in many), sum(one[1] for one in many), len(many))


_DELETED: Final = 2


def manifest_findings(
    rows: Sequence[ManifestRow],
    figures: ManifestFigures | None,
    *,
    target_bytes: int,
    manifests_read: int | None = None,
) -> list[AssessmentFinding]:
    """Return the findings about data files and manifests of a table's current snapshot.

    Args:
        rows: All rows of its manifest list.
        figures: The counts from the manifests that were read; None if none was.
        target_bytes: The target size of data files.
        manifests_read: How many manifests were read; None for all. With fewer, all counts of files are lower bounds.
    """
    findings: list[AssessmentFinding] = []
    if figures is not None and figures.small_files:
        left = figures.partitions + figures.small_bytes // target_bytes
        mean = figures.small_bytes // figures.small_files
        read = len(rows) if manifests_read is None else manifests_read
        least = "at least " if read < len(rows) else ""
        reason = (
            f"{least}{count_with_noun(figures.small_files, 'file')} of {size_text(mean)} on average in"
            f" {least}{count_with_noun(figures.partitions, 'partition')}; the target is {size_text(target_bytes)}"
        )
        if least:
            reason += f"; {read} of {len(rows)} manifests were read"
        figures_json = {
            "data_files": figures.files,
            "small_files": figures.small_files,
            "small_bytes": figures.small_bytes,
            "partitions": figures.partitions,
            "target_bytes": target_bytes,
            "manifests": len(rows),
            "manifests_read": read,
        }
        findings.append(AssessmentFinding(COMPACT, max(1, figures.small_files - left), reason, figures_json))
    entries = sum(row.entries for row in rows)
    if len(rows) > MANIFESTS_MIN and entries < MANIFEST_ENTRIES_MIN * len(rows):
        reason = f"{len(rows)} manifests of {entries // len(rows)} files on average: each scan opens them"
        findings.append(AssessmentFinding(MANIFESTS, len(rows), reason, {"manifests": len(rows), "entries": entries}))
    return findings


def size_text(size: int) -> str:
    """Format a size in bytes with a unit, such as `12.0 MiB`."""
    for unit, step in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << step:
            return f"{size / (1 << step):.1f} {unit}"
    return f"{size} bytes"


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
