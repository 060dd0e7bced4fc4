# SPDX-License-Identifier: Apache-2.0
"""Spark in this process by PySpark, with a catalog of the session for each caller."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.engines.driver import Place
from conformance.engines.drivers.spark_sql import SparkSql
from conformance.engines.page import block
from conformance.engines.rows import Row
from conformance.kit.jars import cache_directory
from limnos.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOG = "spark.sql.catalog.lake"


class PySpark(SparkSql):
    """Any release of Spark; its driver names the JARs."""

    section = "Spark"

    def jars(self) -> Sequence[Path]:
        """Return Iceberg's runtime for this release, and its archives for an object store."""
        raise LookupError(self.title)

    def start(self, place: Place) -> None:
        from pyspark.sql import SparkSession

        super().start(place)
        os.environ["JAVA_HOME"] = str(find_java(cache=cache_directory()).home)
        builder = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(map(str, self.jars())))
        for name, value in self._settings("admin").items():
            if not name.startswith(_CATALOG):
                builder = builder.config(name, value)
        for name, value in (
            ("spark.ui.enabled", "false"),
            ("spark.sql.session.timeZone", "UTC"),
            ("spark.sql.shuffle.partitions", "1"),
            ("spark.driver.memory", "900m"),
            ("spark.sql.warehouse.dir", str(place.work / "none")),
        ):
            builder = builder.config(name, value)
        self.spark: SparkSession = builder.getOrCreate()

    def be(self, caller: str) -> None:
        self.catalog = f"lake_{caller}"
        for name, value in self._settings(caller).items():
            if name.startswith(_CATALOG):  # all other settings were set when Spark started
                self.spark.conf.set(name.replace(_CATALOG, f"spark.sql.catalog.{self.catalog}"), value)

    def _settings(self, caller: str) -> dict[str, str]:
        """Return the settings of the page."""
        place = self.place
        section = f"{self.section} on S3" if place.is_remote else self.section
        lines = block(section, uri=place.uri, token=place.tokens[caller], catalog=place.warehouse).splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def stop(self) -> None:
        self.spark.stop()

    def ask(self, text: str) -> list[Row]:
        return [[_plain(cell) for cell in row] for row in self.spark.sql(text).collect()]

    def rename(self, levels: Sequence[str], name: str, new: str) -> None:
        target = ".".join(map(self.quoted, (*levels, new)))  # Iceberg's catalog expects a target without the catalog
        self.ask(f"ALTER TABLE {self.table(levels, name)} RENAME TO {target}")


def _plain(cell: object) -> object:
    """Convert a cell to JSON values: a nested row becomes a list."""
    return list(cell) if isinstance(cell, tuple) else cell
