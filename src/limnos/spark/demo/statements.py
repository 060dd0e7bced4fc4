"""The demo's SQL: names, table definitions, the join, the rules, and MERGE.

Job: pure text, so that what runs can be read in one place and tested without Spark. It must not import PySpark.
"""

# ruff: noqa: S608 - every statement is put together from names of this module

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.spark.demo.expectations import Expectation, Unique

if TYPE_CHECKING:
    from collections.abc import Iterable

RAW = "main.raw.nyc"
CURATED = "main.curated.nyc"
FLIGHTS = f"{RAW}.flights"
DELAYS = f"{CURATED}.delays"

NAMESPACES = tuple(f"CREATE NAMESPACE IF NOT EXISTS {name}" for name in ("main.raw", RAW, "main.curated", CURATED))

FLIGHT_KEY = ("year", "month", "day", "carrier", "flight", "origin")
DELAY_KEY = ("flight_date", "carrier", "flight", "origin")

LATE_VIEW = "late"
"""Temporary view of the rows a MERGE takes in."""

LATE_DAY = "month = 12 AND day = 31"
IN_THE_AIR = "month = 12 AND day = 30 AND sched_dep_time >= 1800"
LATE_DAYS = "f.month = 12 AND f.day >= 30"
_ARRIVAL = ("arr_time", "arr_delay", "air_time")

_AFTER_WEATHER = "flight_date > DATE '2013-12-30' OR (flight_date = DATE '2013-12-30' AND scheduled_hour > 18)"

RAW_RULES = (
    Unique("a flight is delivered once", FLIGHT_KEY),
    Expectation("the flight leaves from New York", "origin IN ('EWR', 'JFK', 'LGA')"),
    Expectation("the flight goes somewhere else", "dest IS NOT NULL AND dest <> origin"),
    Expectation("the distance is positive", "distance > 0"),
    Expectation("the day is a day of 2013", "year = 2013 AND make_date(year, month, day) IS NOT NULL"),
    Expectation("a delay is less than a day", "dep_delay IS NULL OR dep_delay BETWEEN -120 AND 1440"),
)
DELAY_RULES = (
    Unique("a flight stands once in the table", DELAY_KEY),
    Expectation("the airline is known", "airline IS NOT NULL"),
    Expectation("the origin airport is known", "origin_name IS NOT NULL"),
    # The source's airports leave out Puerto Rico and the Virgin Islands.
    Expectation("the destination is known", "dest_name IS NOT NULL OR dest IN ('SJU', 'BQN', 'PSE', 'STT')"),
    # The source's weather ends on 30 December at 18 h, and skips an hour here and there before.
    Expectation("the weather was observed", f"temp IS NOT NULL OR {_AFTER_WEATHER}", tolerated=0.01),
    Expectation("a cancelled flight has no arrival", "NOT cancelled OR arr_delay IS NULL"),
    Expectation("most flights happen", "NOT cancelled", tolerated=0.10),
)

CREATE_DELAYS = f"""
CREATE TABLE IF NOT EXISTS {DELAYS} (
  flight_date DATE COMMENT 'Local day of the scheduled departure',
  carrier STRING, airline STRING, flight INT, tailnum STRING,
  origin STRING, origin_name STRING, dest STRING, dest_name STRING,
  scheduled_hour INT COMMENT 'Local hour of the scheduled departure',
  dep_delay INT COMMENT 'Minutes; negative is early; NULL when cancelled',
  arr_delay INT COMMENT 'Minutes; NULL when cancelled, diverted or not yet landed',
  cancelled BOOLEAN,
  air_time INT COMMENT 'Minutes', distance INT COMMENT 'Miles',
  plane_year INT, manufacturer STRING, model STRING, seats INT,
  temp DOUBLE COMMENT 'Degrees Fahrenheit', wind_speed DOUBLE COMMENT 'Miles per hour',
  precip DOUBLE COMMENT 'Inches', visib DOUBLE COMMENT 'Miles')
USING iceberg
PARTITIONED BY (months(flight_date))
COMMENT 'Flights out of New York in 2013, with airline, airports, plane and weather'
"""

COUNT_DELAY_KEYS = f"SELECT count(*), count(DISTINCT struct({', '.join(DELAY_KEY)})) FROM {DELAYS}"

COMMITS = f"""
SELECT date_format(committed_at, 'yyyy-MM-dd HH:mm:ss'), operation, CAST(summary['total-records'] AS BIGINT)
FROM {DELAYS}.snapshots ORDER BY committed_at
"""
HOURLY = f"""
SELECT origin, scheduled_hour, avg(dep_delay) FROM {DELAYS}
WHERE NOT cancelled AND scheduled_hour >= 5 GROUP BY origin, scheduled_hour ORDER BY origin, scheduled_hour
"""
AIRLINES = f"""
SELECT airline, count(*), count_if(arr_delay > 15) / count(*), count_if(cancelled) / count(*)
FROM {DELAYS} GROUP BY airline
"""


def raw(table: str) -> str:
    """The full name of a raw table."""
    return f"{RAW}.{table}"


def create_raw(table: str, columns: str, *, partitioned_by: str | None = None) -> str:
    """Make a raw table with the source's own columns, unless it is there."""
    partitions = f" PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
    return f"CREATE TABLE IF NOT EXISTS {raw(table)} ({columns}) USING iceberg{partitions}"


def without_late_arrivals(columns: Iterable[str]) -> list[str]:
    """Select list that blanks the arrival of flights that were still in the air."""
    return [
        f"CASE WHEN {IN_THE_AIR} THEN NULL ELSE {column} END AS {column}" if column in _ARRIVAL else column
        for column in columns
    ]


def clean_and_join(*, where: str = "true") -> str:
    """Flights with airline, airports, plane and the weather of the scheduled hour; one row per flight."""
    return f"""
SELECT make_date(f.year, f.month, f.day) AS flight_date,
       f.carrier, l.name AS airline, f.flight, f.tailnum,
       f.origin, o.name AS origin_name, f.dest, d.name AS dest_name,
       f.hour AS scheduled_hour, f.dep_delay, f.arr_delay, f.dep_time IS NULL AS cancelled,
       f.air_time, f.distance,
       p.year AS plane_year, p.manufacturer, p.model, p.seats,
       w.temp, w.wind_speed, w.precip, w.visib
FROM {FLIGHTS} f
LEFT JOIN {RAW}.airlines l ON l.carrier = f.carrier
LEFT JOIN {RAW}.airports o ON o.faa = f.origin
LEFT JOIN {RAW}.airports d ON d.faa = f.dest
LEFT JOIN {RAW}.planes p ON p.tailnum = f.tailnum
LEFT JOIN {RAW}.weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
WHERE {where}
"""


def late_delays_view() -> str:
    """The temporary view of the joined rows of the days that the late delivery touched."""
    return f"CREATE OR REPLACE TEMPORARY VIEW {LATE_VIEW} AS {clean_and_join(where=LATE_DAYS)}"


def count_differences(table: str, *, key: Iterable[str], others: Iterable[str]) -> str:
    """How many late rows are new to the table, and how many differ from its row of the same key."""
    key = tuple(key)
    return f"""
SELECT count_if(t.{key[0]} IS NULL), count_if(t.{key[0]} IS NOT NULL AND ({_differ(others)}))
FROM {LATE_VIEW} s LEFT JOIN {table} t ON {_same(key)}
"""


def merge(table: str, *, key: Iterable[str], others: Iterable[str]) -> str:
    """Insert the late rows that are new, update those that differ, leave the rest alone."""
    return f"""
MERGE INTO {table} t USING {LATE_VIEW} s ON {_same(key)}
WHEN MATCHED AND ({_differ(others)}) THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
"""


def _same(key: Iterable[str]) -> str:
    return " AND ".join(f"t.{column} = s.{column}" for column in key)


def _differ(columns: Iterable[str]) -> str:
    return " OR ".join(f"NOT (t.{column} <=> s.{column})" for column in columns)
