"""The demo's source files and their census, counted without Spark."""

from __future__ import annotations

from pathlib import Path

from limnos.spark.demo import data

ROWS = {"airlines": 16, "airports": 1_458, "planes": 3_322, "weather": 26_115, "flights": 336_776}


def test_the_five_tables_have_the_published_rows(tmp_path: Path) -> None:
    """The package holds five tables of known size."""
    found = data.sources(tmp_path)

    assert {name: source.census.rows for name, source in found.items()} == ROWS


def test_column_types_cover_every_column_of_the_files(tmp_path: Path) -> None:
    """The declared columns are those of each file, in its order."""
    found = data.sources(tmp_path)

    for source in found.values():
        assert tuple(part.split()[0] for part in source.columns.split(", ")) == source.column_names


def test_unpacking_again_keeps_the_file(tmp_path: Path) -> None:
    """The packed file is unpacked once; a file cut short is unpacked again."""
    file = data.sources(tmp_path)["flights"].file
    size = file.stat().st_size
    file.write_bytes(b"year,month\n")

    again = data.sources(tmp_path)["flights"].file

    assert (again, again.stat().st_size) == (file, size)


def test_census_takes_empty_and_na_for_missing(tmp_path: Path) -> None:
    """An empty field and NA are no values; everything else is one."""
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,x\nNA,y\n3,\n")

    found = data.take_census(file)

    assert found == data.Census(rows=3, filled={"a": 2, "b": 2})
