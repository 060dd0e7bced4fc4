# SPDX-License-Identifier: Apache-2.0
"""Statistics of columns over manifests: sums, bounds that are not known, and hostile metadata."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from limnos.model.errors import InvalidTable, MissingFile, OutsideRoots, TooLarge
from limnos.spark.statistics import columns
from limnos.spark.statistics.columns import MeasuredTable, TableStatistics
from limnos.spark.verification.storage import files_for
from tests.iceberg_manifests import DELETED, POSITIONS, data_file, entry, listed, manifest, manifest_list

if TYPE_CHECKING:
    from limnos.client.values import Json

ONE, TWO, NINE = (number.to_bytes(4, "little") for number in (1, 2, 9))


class Table:
    """A table's directory, in which a test writes manifests."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, name: str, data: bytes) -> str:
        """Write a file. Returns its location."""
        (self.directory / name).write_bytes(data)
        return f"file://{self.directory}/{name}"

    def statistics(self, listing: bytes) -> TableStatistics:
        """Measure a table of the columns `n` (int, field 1) and `t` (string, field 2) with this manifest list."""
        fields = [
            {"id": 1, "name": "n", "type": "int", "required": False},
            {"id": 2, "name": "t", "type": "string", "required": False},
        ]
        metadata: Json = {
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
            "current-snapshot-id": 5,
            "snapshots": [{"snapshot-id": 5, "manifest-list": self.write("list", listing)}],
        }
        statistics = TableStatistics(metadata)
        statistics.read(files_for([f"file://{self.directory}"], {}))
        return statistics

    def rows(self, *files: dict[str, object]) -> list[dict[str, object]]:
        """Return the rows of a table with these entries in one manifest."""
        data = manifest(files)
        listing = manifest_list([listed(self.write("m", data), data)])
        return list(self.statistics(listing).rows(MeasuredTable(7, "main.a.t")))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """An empty directory of a table."""
    return Table(tmp_path)


def counts(low: bytes | None, high: bytes | None, *, nulls: int = 0) -> dict[str, object]:
    """Return the statistics of field 1 in a data file of ten rows."""
    bounds = {} if low is None or high is None else {"lower_bounds": {1: low}, "upper_bounds": {1: high}}
    return {"value_counts": {1: 10}, "null_value_counts": {1: nulls}, "column_sizes": {1: 100}, **bounds}


def test_live_data_files_are_added_up(table: Table) -> None:
    """Sums and bounds are over the live data files; deleted entries do not count, and delete files are only noted."""
    n, t = table.rows(
        entry(data_file("a", **counts(TWO, TWO, nulls=4))),
        entry(data_file("b", **counts(ONE, NINE))),
        entry(data_file("c", **counts(ONE, (1000).to_bytes(4, "little"))), status=DELETED),
        entry(data_file("d", content=POSITIONS)),
    )

    assert (n["files"], n["measured_files"], n["row_count"]) == (2, 2, 20)
    assert (n["value_count"], n["null_count"], n["nan_count"], n["byte_count"]) == (20, 4, None, 200)
    assert (n["lower"], n["upper"], n["has_deletes"]) == ("1", "9", True)
    assert (t["name"], t["files"], t["measured_files"], t["value_count"], t["lower"]) == ("t", 2, 0, None, None)


def test_bounds_are_unknown_if_a_file_states_none(table: Table) -> None:
    """A file with values and without bounds may have any value; one with nulls alone changes no bound."""
    bounded, nulls = entry(data_file("a", **counts(ONE, TWO))), entry(data_file("b", **counts(None, None, nulls=10)))
    unbounded = entry(data_file("c", **counts(None, None)))

    assert [each["lower"] for each in table.rows(bounded, nulls)] == ["1", None]
    assert [each["lower"] for each in table.rows(bounded, unbounded)] == [None, None]


def test_files_elsewhere_and_damaged_files_are_errors(
    table: Table, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manifest outside of the table is not opened; a missing or damaged one, and too many files, are errors."""
    data = manifest([entry(data_file("a")), entry(data_file("b"))])
    outside = tmp_path_factory.mktemp("outside") / "m"
    outside.write_bytes(data)
    cases = {
        OutsideRoots: f"file://{outside}",
        MissingFile: f"file://{table.directory}/none",
        InvalidTable: table.write("cut", data[: len(data) // 2]),
    }
    for error, path in cases.items():
        with pytest.raises(error):
            table.statistics(manifest_list([listed(path, data)]))
    monkeypatch.setattr(columns, "FILES_MAX", 1)
    with pytest.raises(TooLarge):
        table.statistics(manifest_list([listed(table.write("m", data), data)]))


def test_counts_of_hostile_manifests_concern_one_table(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts whose sum has more than 64 bits, and more columns of files than are read, are errors of the table."""
    huge = {"value_counts": {1: (1 << 63) - 1}}
    for other in (huge, {"record_count": (1 << 63) - 1}):
        with pytest.raises(InvalidTable, match="64 bits"):
            table.rows(entry(data_file("a", **huge, record_count=1)), entry(data_file("b", **other)))
    monkeypatch.setattr(columns, "CELLS_MAX", 3)
    assert len(table.rows(entry(data_file("a")))) == 2
    with pytest.raises(TooLarge, match="1 data files of 2 columns"):
        table.rows(entry(data_file("a")), entry(data_file("b")))
