# SPDX-License-Identifier: Apache-2.0
"""Cells of previews: values that JSON lacks, long values, and vectors."""

from __future__ import annotations

import pyarrow as pa

from limnos.formats.preview_cells import CELL_CHARACTERS_MAX, UNSHOWN, cell_of, rows_of


def test_non_json_and_long_values_become_short_texts() -> None:
    """Values that JSON lacks are converted to texts, and long values are truncated."""
    assert [cell_of(float("nan")), cell_of(b"\x01"), cell_of({"a": [b"\x02", None]})] == [
        "nan",
        "0x01",
        {"a": ["0x02", None]},
    ]
    assert len(str(cell_of("x" * 5_000))) == CELL_CHARACTERS_MAX + 1
    assert str(cell_of([["y"] * 5_000])).endswith("…")


def test_vectors_are_shortened() -> None:
    """Of a long vector the first four numbers and the length are shown. A short one is shown as a list."""
    long = pa.array([[0.123456, -2.0, None, 4.0, 5.0, 6.0], None], pa.list_(pa.float32(), 6))
    halves = pa.array([[1.0] * 8, [2.0] * 8], pa.list_(pa.float16(), 8))
    short = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))
    table = pa.table({"long": long, "halves": halves, "short": short})

    whole, none = list(rows_of(table))

    assert whole == ["[0.1235, -2, null, 4, … 6 numbers]", "[1, 1, 1, 1, … 8 numbers]", [1.0, 2.0]]
    assert none == [None, "[2, 2, 2, 2, … 8 numbers]", [3.0, 4.0]]
    assert list(rows_of(table.slice(1))) == [none]


def test_times_and_nanoseconds_are_iso_texts() -> None:
    """Times of day and instants are ISO texts, including nanoseconds, for which Python has no type."""
    table = pa.table({"at": pa.array([1], pa.timestamp("ns")), "day": pa.array([1], pa.date32())})

    ((at, day),) = rows_of(table)

    assert (str(at).replace("T", " "), day) == ("1970-01-01 00:00:00.000000001", "1970-01-02")


def test_times_outside_python_range_are_texts() -> None:
    """Times after the year 9999, and those of an unknown time zone, are texts. The values beside them are shown."""
    far = 253_402_300_800  # the first second of the year 10000
    table = pa.table(
        {
            "at": pa.array([far, None, 2**62], pa.timestamp("s")),
            "zone": pa.array([far, None, 0], pa.timestamp("s", "Mars/Phobos")),
            "day": pa.array([2_932_897, None, 0], pa.date32()),
            "span": pa.array([2**62, None, 0], pa.duration("s")),
            "list": pa.array([[far], None, []], pa.list_(pa.timestamp("s"))),
        }
    )

    first, none, last = rows_of(table)

    assert first == ["10000-01-01 00:00:00", UNSHOWN, "10000-01-01", str(2**62), UNSHOWN]
    assert none == [None] * 5
    assert (str(last[0]), last[2:]) == (f"<value out of range: {2**62}>", ["1970-01-01", "0:00:00", []])
