# SPDX-License-Identifier: Apache-2.0
"""Row retention: the column, and the day before which rows are deleted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from limnos.model.errors import BadRequest
from limnos.rooms.maintenance.formats.assessment import AssessmentRules, assess_table
from limnos.rooms.maintenance.formats.row_retention import RETENTION, RetentionRule, retention_terms
from limnos.rooms.maintenance.formats.table_metadata import TableMetadata, metadata_of

DAY_MS = 86_400_000
NOW_MS = 20_000 * DAY_MS + DAY_MS // 2
"""Noon of 2024-10-04."""
STRUCT = {"type": "struct", "fields": [{"id": 9, "name": "ts", "type": "date", "required": False}]}
TYPES: dict[str, Any] = {
    "d": "date",
    "t": "timestamp",
    "z": "timestamptz",
    "n": "timestamp_ns",
    "s": "string",
    "i": "long",
    "nested": STRUCT,
}


def body(**more: object) -> bytes:
    """Return metadata of a table with a column of each type, and of a former schema with one more."""
    fields = [
        {"id": at, "name": name, "type": kind, "required": False} for at, (name, kind) in enumerate(TYPES.items())
    ]
    schemas = [
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [*fields, {"id": 50, "name": "gone", "type": "date", "required": True}],
        },
        {"type": "struct", "schema-id": 1, "fields": fields},
    ]
    return msgspec.json.encode({"location": "file:///t", "current-schema-id": 1, "schemas": schemas, **more})


def metadata() -> TableMetadata:
    """Return the same metadata, decoded."""
    return metadata_of(body())


@pytest.mark.parametrize("column", ["d", "t", "z"])
def test_rows_before_midnight_of_cutoff_day_are_deleted(column: str) -> None:
    """Rows before midnight of the day that many days ago are deleted, whatever the current hour is."""
    options = {"column": column, "column-type": TYPES[column], "before": "2024-09-27"}
    for now_ms in (NOW_MS - DAY_MS // 2, NOW_MS, NOW_MS + DAY_MS // 2 - 1):
        assert retention_terms(metadata(), RetentionRule(column, 7), now_ms=now_ms).options() == options

    assert retention_terms(metadata(), RetentionRule(column, 7), now_ms=NOW_MS + DAY_MS).before == "2024-09-28"
    assert retention_terms(metadata(), RetentionRule(column, 36_500), now_ms=NOW_MS).before == "1970-01-01"


@pytest.mark.parametrize(
    "column, text",
    [
        ("n", "has type timestamp_ns"),
        ("s", "has type string"),
        ("i", "has type long"),
        ("nested", "has type nested"),
        ("ts", "no column ts"),
        ("nested.ts", "no column nested.ts"),
        ("gone", "no column gone"),
        ("D", "no column D"),
    ],
)
def test_unusable_retention_columns_are_refused(column: str, text: str) -> None:
    """A column that is no date or timestamp, is nested, was dropped or is missing, is refused."""
    with pytest.raises(BadRequest, match=text):
        retention_terms(metadata(), RetentionRule(column, 7), now_ms=NOW_MS)


def test_only_table_with_rows_and_column_has_finding() -> None:
    """A table with rows, or an unknown number of rows, and a usable column has a finding. An empty table, or one
    without the column, has none.
    """

    def kinds(rule: RetentionRule | None, rows: str | None) -> list[str]:
        summary = {"operation": "append", **({} if rows is None else {"total-records": rows})}
        snapshot = {"snapshot-id": 5, "timestamp-ms": 1, "summary": summary}
        data = body(**{"current-snapshot-id": 5, "snapshots": [snapshot]})
        assessment = assess_table(
            data, "file:///t/metadata/1.json", rules=AssessmentRules(retention=rule), now_ms=NOW_MS
        )
        return [each.kind for each in assessment.findings]

    assert kinds(RetentionRule("d", 7), "3") == kinds(RetentionRule("d", 7), None) == [RETENTION]
    assert kinds(RetentionRule("d", 7), "0") == kinds(RetentionRule("s", 7), "3") == kinds(None, "3") == []
