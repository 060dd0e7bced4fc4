# SPDX-License-Identifier: Apache-2.0
"""Spark 3.5: a separate PySpark, with Iceberg's runtime for it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

from conformance.engines.archives import spark_35_jars
from conformance.engines.drivers.pyspark_sql import PySpark


class Engine(PySpark):
    """Spark 3.5."""

    title = f"Spark {importlib.metadata.version('pyspark')}"

    def jars(self) -> Sequence[Path]:
        return spark_35_jars(with_s3=self.place.is_remote)
