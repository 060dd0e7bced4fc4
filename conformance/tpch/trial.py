# SPDX-License-Identifier: Apache-2.0
"""One trial of the pipeline: deliveries, runs, and a comparison of its tables with the expected ones.

May import the pipelines and the plain side. It must not know how either works.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.tpch.data import CHANGING, TABLES
from conformance.tpch.plain import checksum
from conformance.tpch.result_cache import ExpectedTable, expected_tables
from limnos import pipeline
from limnos.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.live import LiveServer

FILE = Path(__file__).parents[2] / "examples" / "tpch" / "pipeline.yaml"


_SHUFFLE_AT_SCALE_1 = 24
"""About 30 MB per task; Spark's default of 200 gives 200 empty tasks for two cores."""


@contextmanager
def running_spark(server: LiveServer, *, scale: float, memory: str) -> Iterator[SparkSession]:
    """Run Spark at a server, with two cores and settings for data of a scale, for the body of a `with`."""
    settings = {
        "spark.driver.memory": memory,
        "spark.log.level": "ERROR",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(4, round(_SHUFFLE_AT_SCALE_1 * scale))),
        "spark.ui.enabled": "false",
    }
    spark = session(server.uri, token=server.token, master="local[2]", config=settings)
    try:
        yield spark
    finally:
        spark.stop()


@dataclass(frozen=True, slots=True)
class Line:
    """One table: its rows and checksum, and the expected ones."""

    table: str
    found: tuple[int, int]
    wanted: tuple[int, int]

    @property
    def equal(self) -> bool:
        """Return whether both are the same."""
        return self.found == self.wanted

    def __str__(self) -> str:
        word = "equal" if self.equal else f"DIFFERS: {self.wanted[0]:,} rows expected"
        return f"{self.table:28} {self.found[0]:>10,} rows  {word}"


class Trial:
    """A copy of the pipeline's file with its data, run in one session."""

    def __init__(self, place: Path, spark: SparkSession, *, deliveries: Path) -> None:
        self.deliveries = deliveries
        self.directory = place / "pipeline"
        self.spark = spark
        self.directory.mkdir(parents=True, exist_ok=True)
        self.file = Path(shutil.copy(FILE, self.directory))

    def deliver(self, day: int) -> None:
        """Deliver a day's files to the pipeline's directory, as links, because they are not written."""
        for name in TABLES if day == 0 else CHANGING:
            target = self.directory / "data" / name / f"{day}.parquet"
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                os.link(self.deliveries / str(day) / f"{name}.parquet", target)

    def run(self) -> None:
        """Run the pipeline and publish."""
        pipeline.load(self.file).run(self.spark).require()

    def day(self, day: int) -> tuple[Line, ...]:
        """Deliver a day, run, and compare."""
        self.deliver(day)
        self.run()
        return tuple(self.compare(expected_tables(self.spark, self.deliveries, days=day)))

    def compare(self, tables: Mapping[str, ExpectedTable]) -> Iterator[Line]:
        """Compare each table with the plain computation for the days delivered so far."""
        for name, one in tables.items():
            frame = self.spark.table(f"main.{name}").select(*one.columns)
            yield Line(name, checksum(frame), one.sum)
