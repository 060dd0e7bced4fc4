# SPDX-License-Identifier: Apache-2.0
"""Facts of a document beside its schema: totals of the current snapshot, as its summary claims them."""

from __future__ import annotations

import json

import pytest

from limnos.formats.iceberg.schema_columns import (
    NO_TOTALS,
    SnapshotTotals,
    document_facts,
    facts_with_totals,
    snapshot_totals,
)


def document(**summary: object) -> bytes:
    """Return a document whose current snapshot has a summary."""
    snapshots = [
        {"snapshot-id": 1, "summary": {"total-records": "9", "total-files-size": "9"}},
        {"snapshot-id": 2, "summary": {key.replace("_", "-"): value for key, value in summary.items()}},
    ]
    return json.dumps({"current-snapshot-id": 2, "snapshots": snapshots}).encode()


def test_totals_are_those_of_the_current_snapshot() -> None:
    """Older snapshots do not count."""
    assert snapshot_totals(document(total_records="3", total_files_size="700")) == SnapshotTotals(3, 700)


@pytest.mark.parametrize("value", ["", "-1", "1e9", "9" * 19, "٣", 3, None, ["3"], {}])
def test_total_that_is_no_count_is_unknown(value: object) -> None:
    """Writers write the summary, so a text that is no count of 64 bits, or another value, is no total."""
    assert snapshot_totals(document(total_records=value, total_files_size="1")) == SnapshotTotals(None, 1)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"snapshots": 3}', b'{"current-snapshot-id": 7, "snapshots": [{"snapshot-id": 1}]}']
)
def test_document_without_a_snapshot_has_no_totals(body: bytes) -> None:
    """Views, empty tables and malformed documents have none."""
    assert snapshot_totals(body) == NO_TOTALS


@pytest.mark.parametrize(
    "body",
    [
        document(total_records="3", total_files_size="700"),
        b'{"last-updated-ms": 5, "properties": {"comment": "c", "n": 1}, "current-snapshot-id": 7, "snapshots": 3}',
        b'{"last-updated-ms": "x", "current-snapshot-id": 2, ' + document(total_records="4")[1:],
        b'{"current-version-id": 2, "versions": [{"version-id": 2, "timestamp-ms": 9}]}',
        b'{"snapshots": [{"snapshot-id": 1, "summary": []}], "last-updated-ms": 1}',
        b"[]",
        b"",
    ],
)
def test_facts_and_totals_are_read_at_once(body: bytes) -> None:
    """Both are what their own reads return, also if only one of them is readable."""
    assert facts_with_totals(body) == (document_facts(body), snapshot_totals(body))


@pytest.mark.parametrize("millis", [1 << 62, -(1 << 62), 253_402_300_800_000])
def test_time_that_no_calendar_has_is_unknown(millis: int) -> None:
    """Readers compute in microseconds and years of four digits: one table must not fail the read of all."""
    assert document_facts(json.dumps({"last-updated-ms": millis}).encode()).changed_at is None
    versions = [{"version-id": 1, "timestamp-ms": millis}]
    view = json.dumps({"current-version-id": 1, "versions": versions}).encode()
    assert document_facts(view).changed_at is None
