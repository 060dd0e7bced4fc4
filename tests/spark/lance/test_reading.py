# SPDX-License-Identifier: Apache-2.0
"""Reading a table's files as tasks do, without Spark."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark

from limnos.model.errors import BadRequest, InvalidTable
from limnos.spark.lance.reading import LanceReader, LanceTableFiles, columns_of
from limnos.spark.lance.server_access import LanceOptions


@pytest.fixture
def files(tmp_path: Path) -> LanceTableFiles:
    """Two fragments in version 2, three in version 3."""
    for start in (0, 10, 20):
        lance.write_dataset(
            pa.table({"id": range(start, start + 10), "text": ["a"] * 10}), str(tmp_path / "t"), mode="append"
        )
    return LanceTableFiles(str(tmp_path / "t"), 2, {})


def test_fragments_of_one_version_are_divided_among_tasks(files: LanceTableFiles) -> None:
    """The twenty rows of version 2 are divided among two tasks, with the pushed filter; other filters are left to
    Spark.
    """
    reader = LanceReader(files, columns_of(files, LanceOptions(path=("lance", "t"), columns=("id",))))
    left = list(reader.pushFilters([spark.GreaterThan(("id",), 7), spark.EqualTo(("x",), 1.5)]))

    partition_rows = [[row for batch in reader.read(each) for row in batch.to_pylist()] for each in reader.partitions()]

    assert left == [spark.EqualTo(("x",), 1.5)]
    assert partition_rows == [[{"id": 8}, {"id": 9}], [{"id": value} for value in range(10, 20)]]


def test_a_table_without_rows_has_no_task(tmp_path: Path) -> None:
    """A table without rows has no task, and the read that Spark runs nevertheless returns nothing."""
    lance.write_dataset(pa.table({"id": pa.array([], pa.int64())}), str(tmp_path / "t"))
    files = LanceTableFiles(str(tmp_path / "t"), 1, {})
    reader = LanceReader(files, columns_of(files, LanceOptions(path=("lance", "t"))))

    assert reader.partitions() == []
    assert list(reader.read(None)) == []  # type: ignore[arg-type] # what Spark gives


@pytest.mark.parametrize("spelling", ["{other}", "file://{own}/%2e%2e/other"])
def test_table_with_files_of_another_table_is_not_opened(tmp_path: Path, spelling: str) -> None:
    """A task opens no table whose base path leads to another table."""
    own, other = tmp_path / "own", tmp_path / "other"
    lance.write_dataset(pa.table({"id": [1]}), str(other))
    dataset = lance.write_dataset(pa.table({"id": [1]}), str(own))
    dataset.add_bases([lance.DatasetBasePath(spelling.format(own=own, other=other), "x", True, 7)])

    with pytest.raises(InvalidTable, match="files in other places"):
        LanceTableFiles(f"file://{own}", 2, {}).open()


def test_missing_column_error_lists_existing_columns(files: LanceTableFiles) -> None:
    """The error for a missing column lists the existing ones."""
    with pytest.raises(BadRequest, match="has no column vector: it has id, text"):
        columns_of(files, LanceOptions(path=("lance", "t"), columns=("vector",)))
