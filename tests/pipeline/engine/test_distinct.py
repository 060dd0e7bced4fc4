# SPDX-License-Identifier: Apache-2.0
"""Distinct keys counted with few groups: the number equals a plain count of distinct keys, for all types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from limnos.pipeline.engine.distinct import KeyCounts, key_counts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
COLUMNS = """
    id - 150 AS near, (id * 982451653) % 9223372036854775807 - 4611686018427387904 AS far, cast(id % 256 - 128 AS byte) AS tiny,
    cast(id % 7 AS short) AS small, nullif(cast(id % 11 AS int), 3) AS some, date_add(DATE '1969-12-01', cast(id % 90 AS int)) AS day,
    concat('k', id % 5) AS `na.me`, cast(id % 3 AS decimal(9, 2)) AS exact, cast(id % 13 AS double) AS real
"""


@pytest.mark.parametrize(
    "keys",
    [
        ("near",),
        ("far",),
        ("tiny",),
        ("some",),
        ("DAY",),
        ("na.me",),
        ("near", "small"),
        ("tiny", "some"),
        ("day", "na.me", "small"),
        ("real", "exact"),
        ("tiny", "small", "some", "day"),
        ("near", "far", "tiny", "small", "some", "day", "exact"),
    ],
)
def test_distinct_count_equals_plain_count(here: SparkSession, keys: tuple[str, ...]) -> None:
    """The count is correct for dense and sparse numbers, negative and extreme values, dates, strings and NULLs, alone
    and combined.
    """
    ends = "SELECT 9223372036854775807 AS id UNION ALL SELECT -9223372036854775808"
    frame = here.sql(f"SELECT {COLUMNS} FROM (SELECT id FROM range(300))").unionAll(
        here.sql(
            "SELECT"
            f" {COLUMNS.replace('id - 150', 'id').replace('(id * 982451653) % 9223372036854775807 - 4611686018427387904', 'id')}"
            f" FROM ({ends})"
        )
    )
    frame.createOrReplaceTempView("counted_keys")
    quoted = ", ".join(f"`{key}`" for key in keys)
    known = " AND ".join(f"`{key}` IS NOT NULL" for key in keys)
    rows, whole, distinct = here.sql(
        f"SELECT count(*), count_if({known}), count(DISTINCT {quoted}) FROM counted_keys"
    ).collect()[0]

    counts = key_counts(frame, keys)

    assert counts == KeyCounts(rows=rows, known=whole, distinct=distinct)
    assert counts.rows == 302


def test_single_duplicate_among_adjacent_keys_is_detected(here: SparkSession) -> None:
    """Each bit of a group is one key: one duplicate among sixty-four neighbors is found, and no false duplicate is
    reported.
    """
    every = here.range(-128, 128)

    assert key_counts(every, ["id"]).are_keys
    for twice in (-128, -65, -64, -1, 0, 63, 64, 127):
        counts = key_counts(every.unionAll(here.range(twice, twice + 1)), ["id"])
        assert (counts.rows, counts.distinct, counts.are_keys) == (257, 256, False)


def test_row_with_null_in_required_column_has_no_key(here: SparkSession) -> None:
    """A row with NULL in a required additional column has no key; without rows there are no duplicates."""
    rows = here.sql("SELECT id, nullif(id, 2) AS at FROM range(4)")

    assert key_counts(rows, ["id"], also=["at"]) == KeyCounts(rows=4, known=3, distinct=3)
    assert key_counts(rows.where("id < 0"), ["id"]) == KeyCounts(rows=0, known=0, distinct=0)
