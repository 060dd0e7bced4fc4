"""The demo's SQL as text."""

from __future__ import annotations

from limnos.spark.demo import statements


def test_only_arrivals_of_flights_in_the_air_are_blanked() -> None:
    """The first delivery lacks the arrival columns of the last evening and nothing else."""
    columns = statements.without_late_arrivals(["year", "arr_time", "dep_delay", "arr_delay"])

    assert columns[0] == "year"
    assert columns[2] == "dep_delay"
    assert columns[1].startswith("CASE WHEN month = 12 AND day = 30")
    assert columns[3].endswith("AS arr_delay")


def test_merge_updates_only_rows_that_differ() -> None:
    """A row that is the same already is not written again, and NULLs compare as values."""
    text = statements.merge("m.t", key=("k", "l"), others=("v", "w"))

    assert "ON t.k = s.k AND t.l = s.l" in text
    assert "WHEN MATCHED AND (NOT (t.v <=> s.v) OR NOT (t.w <=> s.w)) THEN UPDATE" in text
    assert "WHEN NOT MATCHED THEN INSERT *" in text


def test_partitioning_is_only_where_it_is_asked() -> None:
    """Raw tables are unpartitioned unless a column is named."""
    assert statements.create_raw("t", "a INT").endswith("USING iceberg")
    assert statements.create_raw("t", "a INT", partitioned_by="a").endswith("PARTITIONED BY (a)")
