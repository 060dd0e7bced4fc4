# SPDX-License-Identifier: Apache-2.0
"""Spark 4.1: the product's own PySpark."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

from conformance.engines.drivers.pyspark_sql import PySpark
from limnos.spark.jars import ensure_runtime, ensure_s3


class Engine(PySpark):
    """Spark 4.1."""

    title = f"Spark {importlib.metadata.version('pyspark')}"

    def jars(self) -> Sequence[Path]:
        return [ensure_runtime(), *([ensure_s3()] if self.place.is_remote else [])]
