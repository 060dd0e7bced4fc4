# SPDX-License-Identifier: Apache-2.0
"""Marks of cursors: what a checkpoint may say, and when an increment cannot continue."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import DateType, DecimalType, DoubleType, LongType, StringType, TimestampNTZType, TimestampType

from limnos.pipeline.engine.sources.database_increments import CursorMark, change_of, cursor_problem, read_mark


@pytest.mark.parametrize(
    "mark",
    [
        CursorMark(column="at", type="timestamp of UTC", value="1764403200000000", recent=3),
        CursorMark(column="at", type="timestamp_ntz", value="2026-11-29 10:00:00.5"),
        CursorMark(column="day", type="date", value="2026-11-29"),
        CursorMark(column="id", type="bigint", value="-7"),
        CursorMark(column="id", type="decimal(20,3)", value="12.345"),
        CursorMark(column="id", type="bigint", value=None),
    ],
)
def test_mark_is_read_as_it_was_written(mark: CursorMark) -> None:
    """Each type of cursor keeps its value in the text of a checkpoint."""
    assert read_mark(mark.text()) == mark


@pytest.mark.parametrize(
    "entries",
    [
        {"cursor": "id", "type": "bigint", "value": "1 OR 1=1"},
        {"cursor": "id", "type": "bigint", "value": "NaN"},
        {"cursor": "id", "type": "bigint", "value": 7},
        {"cursor": "at", "type": "timestamp of UTC", "value": "2026-11-29"},
        {"cursor": "at", "type": "timestamp of UTC", "value": "9" * 30},
        {"cursor": "at", "type": "timestamp_ntz", "value": "soon"},
        {"cursor": "day", "type": "date", "value": "2026-13-01"},
        {"cursor": 7, "type": "bigint", "value": "1"},
        {"topic": "clicks", "starts": [0], "ends": [1]},
        ["cursor"],
    ],
)
def test_other_texts_are_no_marks(entries: object) -> None:
    """Who may write the table can write the checkpoint: a text of another form is read as none."""
    assert read_mark(json.dumps(entries)) is None


def test_increment_continues_only_from_a_lower_mark_of_the_same_cursor() -> None:
    """Another column, type or zone, a missing mark and a lower value are reasons to read all rows."""
    now = CursorMark(column="at", type="timestamp of UTC", value="2000")

    assert change_of(CursorMark(column="AT", type="timestamp of UTC", value="2000"), now) is None
    assert change_of(CursorMark(column="at", type="timestamp of UTC", value=None), now) is None
    assert change_of(None, now) is not None
    for before in (
        CursorMark(column="id", type="timestamp of UTC", value="1000"),
        CursorMark(column="at", type="timestamp of Asia/Tokyo", value="1000"),
        CursorMark(column="at", type="timestamp of UTC", value="2001"),
    ):
        assert change_of(before, now) is not None
    assert "no rows" in str(change_of(now, CursorMark(column="at", type=now.type, value=None)))


def test_values_compare_as_the_database_compares_them() -> None:
    """Times without a zone, dates and numbers are compared by value and not as texts."""
    for kind, low, high in (
        ("timestamp_ntz", "2026-11-29 09:59:59.9", "2026-11-29 10:00:00"),
        ("date", "2026-09-30", "2026-10-01"),
        ("bigint", "9", "10"),
    ):
        lower, higher = (CursorMark(column="c", type=kind, value=value) for value in (low, high))
        assert change_of(lower, higher) is None
        assert change_of(higher, lower) is not None


@pytest.mark.parametrize(
    "kind,lateness,words",
    [
        (StringType(), None, "is string"),
        (DoubleType(), None, "is double"),
        (LongType(), "10 minutes", "write a number"),
        (TimestampType(), "1000", "write a time"),
        (DateType(), "2 hours", "write whole days"),
    ],
)
def test_unusable_cursor_is_refused(kind: object, lateness: str | None, words: str) -> None:
    """A column that does not order exactly, and a lateness of another type, are refused with what to write."""
    assert words in str(cursor_problem(kind, lateness))  # type: ignore[arg-type]


def test_usable_cursors_have_no_problem() -> None:
    """Numbers, dates and times are cursors, with a lateness of their type."""
    for kind, lateness in (
        (LongType(), "1000"),
        (DecimalType(20, 3), None),
        (DateType(), "1 day"),
        (TimestampType(), "10 minutes"),
        (TimestampNTZType(), "2h"),
    ):
        assert cursor_problem(kind, lateness) is None
