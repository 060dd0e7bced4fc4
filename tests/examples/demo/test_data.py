# SPDX-License-Identifier: Apache-2.0
"""The demo's data and its deliveries."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from examples.demo.data import (
    EXAMPLE,
    FIRST,
    LATE,
    Census,
    DemoTable,
    sources,
    take_census,
    write_base_data,
    write_late_data,
)
from limnos.pipeline.file import load

pytestmark = pytest.mark.slow

KEY = ("year", "month", "day", "carrier", "flight", "origin")
ARR_TIME = 6
"""Position of the arrival time in a row."""


@pytest.fixture(scope="module")
def demo_tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DemoTable]:
    """The real source data."""
    return sources(tmp_path_factory.mktemp("source"))


def test_census_counts_rows_and_values(tmp_path: Path) -> None:
    """`NA` and empty fields do not count as values."""
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,NA\n2,\n3,x\n")

    assert take_census(file) == Census(rows=3, filled={"a": 3, "b": 1})


def test_source_is_complete(demo_tables: dict[str, DemoTable]) -> None:
    """The source has five tables with the documented row counts."""
    rows = {name: source.census.rows for name, source in demo_tables.items()}

    assert rows == {"airlines": 16, "airports": 1458, "planes": 3322, "weather": 26115, "flights": 336776}


def test_deliveries_contain_every_flight(demo_tables: dict[str, DemoTable], tmp_path: Path) -> None:
    """Both deliveries together have every flight; the first lacks the last day, and arrivals of the evening before."""
    file = write_base_data(demo_tables, tmp_path)
    write_late_data(demo_tables, tmp_path)
    first, late = (_by_key(tmp_path / "data" / "flights" / name) for name in (FIRST, LATE))
    whole = _by_key(demo_tables["flights"].file)
    together = first | late
    differing = sum(together.get(key) != row for key, row in whole.items())
    blanked = {first[key][ARR_TIME] for key in late if key in first}

    assert file.read_bytes() == EXAMPLE.read_bytes()
    assert (len(together), differing) == (len(whole), 0)
    assert sum((key[1], key[2]) == ("12", "31") for key in first) == 0
    assert (len(whole) - len(first), len(late)) == (776, 994)
    assert blanked == {"NA"}


def test_second_layout_changes_no_file(demo_tables: dict[str, DemoTable], tmp_path: Path) -> None:
    """A second run finds the files of the first unchanged."""
    write_base_data(demo_tables, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*.csv")}

    write_base_data(demo_tables, tmp_path)

    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*.csv")} == before


def test_example_declares_tables_and_expectations() -> None:
    """The example declares five raw tables and one derived table, with the expectations that the data satisfies."""
    pipeline = load(EXAMPLE)

    assert [step.name for step in pipeline.steps] == [
        "raw.nyc.airlines",
        "raw.nyc.airports",
        "raw.nyc.planes",
        "raw.nyc.weather",
        "raw.nyc.flights",
        "curated.nyc.delays",
    ]
    assert sum(len(step.expectations) for step in pipeline.steps) == 16


def _by_key(file: Path) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return rows by key; each key must be unique."""
    with file.open(encoding="utf-8", newline="") as opened:
        reader = csv.reader(opened)
        names = next(reader)
        at = [names.index(name) for name in KEY]
        rows = [tuple(row) for row in reader]
    rows_by_key = {tuple(row[place] for place in at): row for row in rows}
    assert len(rows_by_key) == len(rows)
    return rows_by_key
