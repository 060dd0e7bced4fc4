# SPDX-License-Identifier: Apache-2.0
"""The assessment of maintenance needs from metadata and manifests."""

from __future__ import annotations

import json

import msgspec
import pytest
from pyiceberg.types import LongType, NestedField, StringType, StructType

from limnos.model.errors import InvalidTable
from limnos.rooms.maintenance.formats.assessment import (
    Assessment,
    AssessmentFinding,
    AssessmentRules,
    ManifestRow,
    assess_table,
    manifest_findings,
    read_manifest_rows,
    read_small_files,
)
from limnos.rooms.maintenance.formats.offloaded import OFFLOADED_WORK, AssessmentTerms
from tests.iceberg_manifests import DELETED, data_file, entry, listed, manifest, manifest_list
from tests.rooms.maintenance.formats.tables import NOW_MS, body, chain, snapshot, table

MB = 1 << 20


def assess(document: dict[str, object], *, version: int = 0, rules: AssessmentRules | None = None) -> Assessment:
    """Assess a document whose file has this version."""
    location = f"file:///t/metadata/{version:05d}-x.metadata.json"
    return assess_table(body(document), location, rules=rules or AssessmentRules(), now_ms=NOW_MS)


def kinds(assessment: Assessment) -> list[str]:
    """Return the kinds of the findings."""
    return [each.kind for each in assessment.findings]


def totals(files: int, size: int, deletes: int = 0) -> dict[str, object]:
    """Return a table whose current snapshot has these totals."""
    summary = {"total_data_files": str(files), "total_files_size": str(size), "total_delete_files": str(deletes)}
    return table([snapshot(1, age_days=1, **summary)])


def test_healthy_table_has_no_findings() -> None:
    """A table without snapshots, one with few files, and one with large files have no findings."""
    for document in (table(), totals(3, 3000), totals(100, 100 * 128 * MB)):
        assessment = assess(document)
        assert (assessment.findings, assessment.manifest_list) == ((), None)


def test_many_small_files_require_reading_manifests() -> None:
    """The manifests are read only if the totals show many files that are small relative to the table's target size."""
    assert assess(totals(40, 40 * MB)).manifest_list == "file:///t/metadata/snap-1.avro"
    target = {"write.target-file-size-bytes": str(MB)}
    assert assess({**totals(40, 40 * MB), "properties": target}).manifest_list is None


def test_compaction_policy_threshold_decides() -> None:
    """If a policy sets a threshold, its rule decides. A table of few files has no finding nevertheless."""
    rules = AssessmentRules(data_file_mse_min=405_323_966_463_344)
    assert assess(totals(40, 40 * 127 * MB), rules=rules).manifest_list is None
    assert assess(totals(5, 5 * 90 * MB), rules=rules).manifest_list is not None
    assert assess(totals(4, 4000), rules=rules).manifest_list is None


def test_invalid_summary_counts_cause_no_finding() -> None:
    """Counts that are missing or no numbers cause no finding and no error."""
    for text in ("", "-5", "many", "1e9", "9" * 30, "٣"):
        summary = {"total_data_files": text, "total_files_size": text, "total_delete_files": text}
        assert assess(table([snapshot(1, **summary)])).findings == ()


def test_delete_files_are_a_finding() -> None:
    """One delete file for eight data files is a finding, or the ratio of a policy."""
    assert kinds(assess(totals(16, 16 * 128 * MB, 2))) == ["deletes"]
    assert kinds(assess(totals(16, 16 * 128 * MB, 1))) == []
    assert kinds(assess(totals(16, 16 * 128 * MB, 1), rules=AssessmentRules(delete_files_min=1))) == ["deletes"]


def test_old_snapshots_are_a_finding() -> None:
    """Old snapshots are a finding if there are more than the minimal number and some may be removed."""
    assert kinds(assess(table(chain(10)))) == []
    (finding,) = assess(table(chain(12, first_age_days=20))).findings
    assert (finding.kind, finding.score, finding.figures) == ("expire", 11, {"snapshots": 12, "removable": 11})
    assert kinds(assess(table(chain(12, first_age_days=2, step_days=0.1)))) == []
    assert kinds(assess(table(chain(3)), rules=AssessmentRules(snapshots_min=2))) == ["expire"]


def test_metadata_files_and_large_documents_are_findings() -> None:
    """A large document, and metadata files that have left the log, are findings, unless the table deletes such files
    itself.
    """
    assert kinds(assess({**table(), "comment": "x" * (257 << 10)})) == ["metadata"]
    assert kinds(assess(table(), version=99)) == []
    assert kinds(assess(table(), version=100)) == ["metadata"]
    deletes = {"write.metadata.delete-after-commit.enabled": "True"}
    assert kinds(assess(table(properties=deletes), version=500)) == []


def test_metadata_files_have_lowest_score() -> None:
    """The score of old metadata files is below that of every other finding, because they cost no reader anything. A
    large document has a score.
    """
    (old,) = assess(table(), version=5_000).findings
    (large,) = assess({**table(), "comment": "x" * (257 << 10)}, version=5_000).findings

    assert (old.score, large.score) == (1, 257)


def test_newest_checkpoint_of_main_is_read() -> None:
    """The newest checkpoint of `main` is read, and invalid parts of it are ignored."""
    rows = chain(3)
    rows[0]["summary"]["limnos.inputs"] = json.dumps({"main.a.old": 5})
    rows[1]["summary"]["limnos.inputs"] = json.dumps({"main.a.t": 17, "main.a.v": "view", "x": True, "y": -1})
    checkpoints = assess(table(rows)).checkpoints
    assert [(each.source, each.snapshot_id, each.at_ms) for each in checkpoints] == [
        ("main.a.t", 17, rows[1]["timestamp-ms"])
    ]
    for odd in ("", "[]", "{", "5", "[" * 100_000):
        rows[1]["summary"]["limnos.inputs"] = odd
        assert assess(table(rows)).checkpoints == ()


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"location": 5}', b'{"location": "x", "snapshots": {}}'])
def test_unreadable_document_has_no_findings(data: bytes) -> None:
    """An unreadable document is reported as such and has no findings."""
    assessment = assess_table(data, "x", rules=AssessmentRules(), now_ms=NOW_MS)
    assert assessment.findings == ()
    assert assessment.unreadable


def files(partition: dict[str, object], *sizes: int, status: int = 1) -> list[dict[str, object]]:
    """Return entries of data files of one partition."""
    data_files = [
        data_file(f"file:///t/{size}.parquet", file_size_in_bytes=size, partition=partition) for size in sizes
    ]
    return [entry(each, status=status) for each in data_files]


CITY = StructType(NestedField(1000, "city", StringType(), required=False))


def test_small_files_are_counted_per_partition() -> None:
    """Only a partition with enough small files counts, because files of different partitions cannot be merged."""
    rows = [row for city in "abcdefgh" for row in files({"city": city}, MB)]
    spread = manifest(rows, partition=CITY)
    assert read_small_files([spread], target_bytes=128 * MB).small_files == 0
    hot = manifest([*rows, *files({"city": "a"}, *[MB] * 5, 127 * MB)], partition=CITY)
    assert msgspec.to_builtins(read_small_files([hot], target_bytes=128 * MB)) == [14, 6, 6 * MB, 1]
    two = read_small_files([spread, manifest(files({"city": "b"}, *[MB] * 4), partition=CITY)], target_bytes=128 * MB)
    assert (two.small_files, two.partitions) == (5, 1)


def test_deleted_entries_and_delete_files_do_not_count() -> None:
    """Deleted entries and delete files do not count as data files."""
    deleted_entries = files({}, *[MB] * 6, status=DELETED)
    deletes = [entry(data_file(f"file:///t/{n}.parquet", content=1, file_size_in_bytes=1)) for n in range(6)]
    assert read_small_files([manifest([*deleted_entries, *deletes])], target_bytes=128 * MB).files == 0


def test_numeric_partition_values_are_distinct() -> None:
    """A partition with numeric values is a partition of its own."""
    by_number = StructType(NestedField(1000, "day", LongType(), required=False))
    rows = [row for day in (1, 2) for row in files({"day": day}, *[MB] * 5)]
    assert read_small_files([manifest(rows, partition=by_number)], target_bytes=128 * MB).partitions == 2


def test_manifest_findings_have_readable_reasons() -> None:
    """The reason of a finding has readable numbers. Many small manifests are a finding, too."""
    figures = read_small_files([manifest(files({}, *[2 * MB] * 40))], target_bytes=128 * MB)
    (finding,) = manifest_findings([ManifestRow("m", 1, 40)], figures, target_bytes=128 * MB)
    assert (finding.kind, finding.score) == ("compact", 39)
    assert finding.reason == "40 files of 2.0 MiB on average in 1 partition; the target is 128.0 MiB"
    many = manifest_findings([ManifestRow("m", 1, 2)] * 101, None, target_bytes=1)
    assert [(each.kind, each.score) for each in many] == [("manifests", 101)]
    assert manifest_findings([ManifestRow("m", 1, 60)] * 101, None, target_bytes=1) == []


def test_partially_read_manifests_give_lower_bounds() -> None:
    """If not all manifests were read, the reason says that the counts are lower bounds, and the figures have the number
    of manifests read.
    """
    figures = read_small_files([manifest(files({}, *[2 * MB] * 40))], target_bytes=128 * MB)
    rows = [ManifestRow("m", 1, 40)] * 4
    (part,) = manifest_findings(rows, figures, target_bytes=128 * MB, manifests_read=1)
    (whole,) = manifest_findings(rows[:1], figures, target_bytes=128 * MB, manifests_read=1)

    assert part.reason.startswith("at least 40 files of 2.0 MiB on average in at least 1 partition;")
    assert part.reason.endswith("; 1 of 4 manifests were read")
    read = [(each.figures["manifests"], each.figures["manifests_read"]) for each in (part, whole)]
    assert read == [(4, 1), (1, 1)]
    assert "at least" not in whole.reason


def test_data_manifests_are_read_from_manifest_list() -> None:
    """From a manifest list, the manifests of data files are read with their numbers of live files."""
    rows = [
        listed("file:///a", b"12", added_files_count=3, existing_files_count=4),
        listed("file:///d", b"1", deletes=True),
    ]
    assert read_manifest_rows(manifest_list(rows)) == [ManifestRow("file:///a", 2, 7)]


def test_damaged_manifests_are_refused() -> None:
    """Bytes that are not a manifest or manifest list are refused."""
    for data in (b"", b"Obj\x01", manifest([])[:-20]):
        with pytest.raises(InvalidTable):
            read_manifest_rows(data)
        with pytest.raises(InvalidTable):
            read_small_files([data], target_bytes=1)


def test_documents_are_assessed_in_one_batch() -> None:
    """Several documents are assessed in one call, each by its own rules."""
    terms = AssessmentTerms(NOW_MS, [("x", AssessmentRules()), ("x", AssessmentRules(snapshots_min=2))])
    bodies = [body(table(chain(3)))] * 2
    (text,) = OFFLOADED_WORK["maintenance-assess"](msgspec.json.encode(terms), *bodies)
    assessments = msgspec.json.decode(text, type=list[Assessment])
    assert [[finding.kind for finding in each.findings] for each in assessments] == [[], ["expire"]]
    assert isinstance(assessments[1].findings[0], AssessmentFinding)
