# SPDX-License-Identifier: Apache-2.0
"""Keys of merged rows: NULL keys and duplicate keys are counted and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from limnos.pipeline.engine.keys import KeyViolation, are_distinct, keys_finding, require_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_unique_keys_satisfy_the_finding(here: SparkSession) -> None:
    """If every row has its own key, the finding is satisfied, also without rows."""
    frame = here.sql("SELECT * FROM VALUES (1, 'a'), (1, 'b'), (2, 'a') AS t(`k 1`, k2)")

    finding = keys_finding(frame, ("k 1", "k2"))
    empty = keys_finding(frame.where("k2 = 'z'"), ("k 1",))

    assert (finding.held, finding.checked, finding.broken, finding.sample) == (True, 3, 0, None)
    assert (empty.held, empty.checked) == (True, 0)


def test_null_and_duplicate_keys_are_counted(here: SparkSession) -> None:
    """Every row with a duplicate key counts; a NULL in a key column counts as a NULL key only; the most frequent keys
    are shown.
    """
    rows = "(1, 'a'), (1, 'a'), (1, 'a'), (2, 'b'), (2, 'b'), (NULL, 'c'), (3, NULL), (4, 'd')"
    frame = here.sql(f"SELECT * FROM VALUES {rows} AS t(k1, k2)")

    finding = keys_finding(frame, ("k1", "k2"))

    assert (finding.held, finding.checked, finding.broken) == (False, 8, 7)
    assert finding.message.startswith(
        "2 rows have a NULL in their key (k1, k2), 5 rows share their key (k1, k2) with another row: "
    )
    assert (finding.sample or "").startswith("k1=1, k2='a' (3 rows); k1=2, k2='b' (2 rows); ")
    with pytest.raises(KeyViolation, match=r"Step marts\.t: 2 rows have a NULL .* Nothing was written") as error:
        require_keys(frame, ("k1", "k2"), step="marts.t")
    assert error.value.finding == finding


@pytest.mark.parametrize(
    "query,known",
    [
        ("SELECT id AS k, count(*) AS n FROM range(9) GROUP BY id", True),
        ("SELECT DISTINCT id % 3 AS k FROM range(9)", True),
        ("SELECT count(*) AS k FROM range(9)", True),
        ("SELECT id % 3 AS k, id % 2 AS l, max(id) AS n FROM range(9) GROUP BY 1, 2", False),
        ("SELECT count(*) AS k, id AS n FROM range(9) GROUP BY id", False),
        ("SELECT id AS k FROM range(9)", False),
        ("SELECT cast(id AS int) AS k, count(*) AS n FROM range(9) GROUP BY id", False),
        ("SELECT id AS k FROM range(3) GROUP BY id UNION ALL SELECT id FROM range(3)", False),
        ("SELECT a.k, b.id FROM (SELECT id AS k FROM range(3) GROUP BY id) a JOIN range(3) b ON a.k >= b.id", False),
    ],
)
def test_group_by_keys_are_known_to_be_distinct(here: SparkSession, query: str, *, known: bool) -> None:
    """Keys that the query groups by are distinct by construction; after expressions, unions or joins they are
    counted.
    """
    assert are_distinct(here.sql(query), ("K",)) is known


def test_null_group_is_counted_as_row_without_key(here: SparkSession) -> None:
    """A group with NULL is still counted as a row without a key."""
    rows = here.sql("SELECT nullif(id, 2) AS k, count(*) AS n FROM range(3) GROUP BY 1")

    require_keys(rows.where("k IS NOT NULL"), ("k",), step="marts.t", distinct=True)
    with pytest.raises(KeyViolation, match="1 rows have a NULL in their key"):
        require_keys(rows, ("k",), step="marts.t", distinct=are_distinct(rows, ("k",)))
