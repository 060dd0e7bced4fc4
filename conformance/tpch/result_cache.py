# SPDX-License-Identifier: Apache-2.0
"""Cached results of the plain computation: each day's tables as Parquet, with their times and checksums.

Job: the expected tables of a day, so that a repeated or interrupted trial does not compute them again. May import the
plain side; it must not know of the product.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.tpch.plain import checksum, expected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class ExpectedTable:
    """The expected table: its columns, and its number of rows with their checksum."""

    columns: tuple[str, ...]
    sum: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Day:
    """All tables after a number of days, and the time to compute and write them."""

    seconds: float
    tables: dict[str, ExpectedTable]


def expected_tables(spark: SparkSession, deliveries: Path, *, days: int) -> dict[str, ExpectedTable]:
    """Return the same without writing anything: for small data."""
    frames = expected(spark, deliveries, days=days)
    return {name: ExpectedTable(tuple(frame.columns), checksum(frame)) for name, frame in frames.items()}


def computed(spark: SparkSession, place: Path, *, days: int) -> Day:
    """Return the day from `place/plain/<days>.json`, or compute it and write it there."""
    cache_file = place / "plain" / f"{days}.json"
    if cache_file.exists():
        return _read(cache_file)
    written = place / "plain" / str(days)
    seconds, tables = 0.0, {}
    for name, frame in expected(spark, place / "deliveries", days=days).items():
        seconds += _write(frame, written / name)
        tables[name] = ExpectedTable(tuple(frame.columns), checksum(spark.read.parquet(str(written / name))))
    shutil.rmtree(written)
    day = Day(seconds, tables)
    cache_file.write_text(json.dumps(asdict(day)), encoding="utf-8")
    return day


def _write(frame: DataFrame, target: Path) -> float:
    began = time.monotonic()
    # Compressed as by Iceberg: the same work on both sides.
    frame.write.mode("overwrite").option("compression", "zstd").parquet(str(target))
    return time.monotonic() - began


def _read(file: Path) -> Day:
    document = json.loads(file.read_text(encoding="utf-8"))
    tables = {
        name: ExpectedTable(tuple(each["columns"]), (int(each["sum"][0]), int(each["sum"][1])))
        for name, each in document["tables"].items()
    }
    return Day(float(document["seconds"]), tables)
