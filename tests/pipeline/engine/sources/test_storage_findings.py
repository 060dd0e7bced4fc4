# SPDX-License-Identifier: Apache-2.0
"""Findings about several tables: files and locations that two of them have."""

from __future__ import annotations

from itertools import permutations

import pytest
from pyspark.sql import SparkSession

from limnos.pipeline.engine.sources.storage_findings import nested_tables, shared_files
from limnos.spark.verification.findings import FILE

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PLACES = {
    1: "file:///lake/a",
    2: "file:/lake/a/b//c/",
    3: "file:///lake/ab",
    4: "s3://bucket/t",
    5: "s3a://bucket/t/inner",
    6: "s3n://bucket/t",
    7: "gs://bucket/t",
    8: "file:///lake/other",
    9: "file:///lake/a/b",
    10: "/",
    11: "s3://bucket" + "/deep" * 200,
}
INSIDE = {(2, 1), (2, 9), (9, 1), (5, 4), (4, 6), (6, 4)}
"""Tables of `PLACES`, and the tables in whose locations they lie: the first of two tables at one place."""


def test_locations_inside_others_are_listed(spark: SparkSession) -> None:
    """A table inside another one has a finding for each level at which a table is, in any spelling of its location. Two
    at one place have one each. A place that begins with the same letters is no directory above.
    """
    rows = [(number, f"main.t{number}", "table", place) for number, place in PLACES.items()]
    rows += [(20, "main.v", "view", "file:///lake/a/view"), (21, "main.none", "table", None)]
    tables = spark.createDataFrame(rows, "id BIGINT, path STRING, kind STRING, location STRING")
    findings = nested_tables(tables).collect()
    words = "inside the location of main.t"

    assert {(row.id, int(row.actual.removeprefix(words))) for row in findings} == INSIDE
    assert len(findings) == len(INSIDE)
    assert {(row.finding, row.severity, row.kind) for row in findings} == {
        ("location inside another", "warning", "table")
    }
    assert {(row.id, row.path, row.file) for row in findings} <= {
        (number, f"main.t{number}", place) for number, place in PLACES.items()
    }


def test_many_tables_at_one_place_have_one_finding_each(spark: SparkSession) -> None:
    """The number of findings grows with the tables and not with their pairs."""
    rows = [(number, f"main.t{number}", "table", "s3://bucket/one") for number in range(1, 301)]
    tables = spark.createDataFrame(rows, "id BIGINT, path STRING, kind STRING, location STRING")
    findings = nested_tables(tables).collect()

    assert sorted(row.id for row in findings) == list(range(1, 301))
    assert {row.actual for row in findings if row.id > 1} == {"inside the location of main.t1"}
    assert {row.actual for row in findings if row.id == 1} == {"inside the location of main.t300"}


@pytest.mark.parametrize("order", list(permutations((3, 1, 2)))[::2])
def test_files_of_several_tables_are_listed(spark: SparkSession, order: tuple[int, ...]) -> None:
    """Each table with a file that another one has too has a finding, once for each file; own files have none."""
    rows = [(number, f"main.t{number}", name) for number in order for name in ("all", "all", f"own{number}")]
    rows += [(1, "main.t1", "two"), (3, "main.t3", "two")]
    frame = spark.createDataFrame(rows, "id BIGINT, path STRING, file STRING").selectExpr(
        f"'{FILE}' AS row", "id", "path", "'table' AS kind", "file"
    )
    findings = sorted((row.id, row.file, row.actual) for row in shared_files(frame).collect())

    assert findings == [
        (1, "all", "main.t3"),
        (1, "two", "main.t3"),
        (2, "all", "main.t1"),
        (3, "all", "main.t1"),
        (3, "two", "main.t1"),
    ]
