# SPDX-License-Identifier: Apache-2.0
"""Deliveries of TPC-H data: the same rows each time, and unique keys in each delivery."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conformance.tpch.data import TABLES, deliveries
from conformance.tpch.trial import FILE
from limnos.pipeline.file import load


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small base and two days."""
    directory = tmp_path_factory.mktemp("tpch")
    deliveries(directory, scale=0.01, days=2)
    return directory


@pytest.mark.parametrize(
    "name,key", [("customer", ["c_custkey"]), ("orders", ["o_orderkey"]), ("lineitem", ["l_orderkey", "l_linenumber"])]
)
def test_a_delivery_names_each_key_once(place: Path, name: str, key: list[str]) -> None:
    """Keys are unique in each delivery, so that it can be merged; new lines have keys that no earlier delivery had."""
    seen: set[tuple[object, ...]] = set()
    for day in range(3):
        table = pq.read_table(place / str(day) / f"{name}.parquet", columns=key)
        keys = {tuple(row.values()) for row in table.to_pylist()}

        assert len(keys) == table.num_rows
        assert name != "lineitem" or not keys & seen
        seen |= keys


def test_each_day_has_changed_added_and_deleted_rows(place: Path) -> None:
    """Each day has changed, added and deleted rows."""
    for name in ("customer", "orders"):
        table = pq.read_table(place / "2" / f"{name}.parquet")
        operations = table["op"].to_pylist()

        assert set(operations) == {"U", "D"}
        assert operations.count("D") < operations.count("U") / 5


def test_pipeline_has_eight_raw_tables_and_five_marts() -> None:
    """Eight raw tables and five marts, with merge, history and incremental steps."""
    steps = {step.name: step for step in load(FILE).steps}

    assert {f"raw.tpch.{name}" for name in TABLES} < set(steps)
    assert sum(name.startswith("mart.") for name in steps) == 5
    assert {step.write.mode.value for step in steps.values()} == {"replace", "append", "merge", "partitions", "history"}
    incremental = {name for name, step in steps.items() if step.incremental}
    assert incremental == {*(f"raw.tpch.{name}" for name in TABLES), "mart.tpch.late_lines"}
